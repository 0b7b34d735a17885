// Helpers that the doors share.
#pragma once

#include <xxhash.h>

#include "fuzz/targets.h"

namespace sinter::fuzz {

/// A file without a folder, whose bytes can be exchanged.
class MemoryFile {
 public:
  MemoryFile();
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;

  void put(std::string_view bytes);
  const std::string& path() const { return path_; }

 private:
  int descriptor_;
  std::string path_;
};

/// An empty folder, removed with what is in it.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The bytes as a file; one at a time for each kind.
const std::string& as_file(std::string_view bytes);

inline uint64_t hash_of(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

/// A refusal, checked.
Outcome refused(Error error);
inline Outcome read_as(std::string text) { return {std::move(text), {}}; }

std::string bytes_of(const std::string& path);
/// A file of the tests' folder.
std::string golden(std::string_view name);

// The doors, by file.
Outcome read_safetensors(std::string_view bytes);
std::vector<std::string> safetensors_seeds();
Outcome read_numpy(std::string_view bytes);
std::vector<std::string> npy_seeds();
std::vector<std::string> npz_seeds();
Outcome read_gguf(std::string_view bytes);
std::vector<std::string> gguf_seeds();
Outcome read_shard_index(std::string_view bytes);
std::vector<std::string> shard_index_seeds();
Outcome read_quantized(std::string_view bytes);
std::vector<std::string> quantized_seeds();
Outcome read_config(std::string_view bytes);
std::vector<std::string> config_seeds();
Outcome read_spec_json(std::string_view bytes);
std::vector<std::string> spec_seeds();
Outcome read_llama2c(std::string_view bytes);
std::vector<std::string> llama2c_seeds();
Outcome read_module_text(std::string_view bytes);
std::vector<std::string> module_seeds();
Outcome read_tokenizer_json(std::string_view bytes);
std::vector<std::string> tokenizer_json_seeds();
Outcome read_tokenizer_model(std::string_view bytes);
std::vector<std::string> tokenizer_model_seeds();
Outcome read_tokenizer_bin(std::string_view bytes);
std::vector<std::string> tokenizer_bin_seeds();

Outcome read_tokenizer_config(std::string_view bytes);
std::vector<std::string> tokenizer_config_seeds();
Outcome read_plan_json(std::string_view bytes);
std::vector<std::string> plan_seeds();
Outcome read_manifest_json(std::string_view bytes);
std::vector<std::string> manifest_seeds();

}  // namespace sinter::fuzz
