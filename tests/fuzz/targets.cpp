#include "fuzz/targets.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "frontends/files/json.h"
#include "fuzz/reading.h"

namespace sinter::fuzz {
namespace {

size_t whole(std::string_view file) { return file.size(); }
size_t of_safetensors(std::string_view file) {
  uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  return sizeof length + length;
}
size_t of_npy(std::string_view file) {
  return 10 + static_cast<unsigned char>(file[8]) + 256 * static_cast<unsigned char>(file[9]);
}
size_t of_llama2c(std::string_view file) { return file.starts_with("24ka") ? 256 : 28; }

constexpr Target kTargets[] = {
    {"safetensors", read_safetensors, safetensors_seeds, of_safetensors},
    {"npy", read_numpy, npy_seeds, of_npy},
    {"npz", read_numpy, npz_seeds, whole},
    {"gguf", read_gguf, gguf_seeds, whole},
    {"shard_index", read_shard_index, shard_index_seeds, whole},
    {"quantized", read_quantized, quantized_seeds, whole},
    {"config", read_config, config_seeds, whole},
    {"spec", read_spec_json, spec_seeds, whole},
    {"tokenizer_json", read_tokenizer_json, tokenizer_json_seeds, whole},
    {"tokenizer_model", read_tokenizer_model, tokenizer_model_seeds, whole},
    {"tokenizer_bin", read_tokenizer_bin, tokenizer_bin_seeds, whole},
    {"tokenizer_config", read_tokenizer_config, tokenizer_config_seeds, whole},
    {"llama2c", read_llama2c, llama2c_seeds, of_llama2c},
    {"sir", read_module_text, module_seeds, whole},
    {"plan", read_plan_json, plan_seeds, whole},
    {"manifest", read_manifest_json, manifest_seeds, whole},
};

}  // namespace

llvm::ArrayRef<Target> targets() { return kTargets; }

const Target* find_target(std::string_view name) {
  for (const Target& target : kTargets)
    if (name == target.name) return &target;
  return nullptr;
}

MemoryFile::MemoryFile()
    : descriptor_(::memfd_create("sinter", MFD_CLOEXEC)),
      path_(fmt::format("/proc/self/fd/{}", descriptor_)) {
  if (descriptor_ < 0) std::abort();
}
MemoryFile::~MemoryFile() { ::close(descriptor_); }

void MemoryFile::put(std::string_view bytes) {
  if (::ftruncate(descriptor_, 0) != 0) std::abort();
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count =
        ::pwrite(descriptor_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (count <= 0) std::abort();
    done += static_cast<size_t>(count);
  }
}

ScratchFolder::ScratchFolder()
    : path_((std::filesystem::temp_directory_path() / "sinter_fuzz_XXXXXX").string()) {
  if (!::mkdtemp(path_.data())) std::abort();
}
ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

const std::string& as_file(std::string_view bytes) {
  static MemoryFile file;
  file.put(bytes);
  return file.path();
}

Outcome refused(Error error) {
  constexpr size_t kLongestMessage = 2000;
  std::string broken;
  const std::string message = error.message();
  if (error.code != ExitCode::bad_input)
    broken = fmt::format("an error of kind {}", static_cast<int>(error.code));
  else if (message.find('\n') != std::string::npos || message.empty())
    broken = "an error that is not one line";
  else if (message.size() > kLongestMessage)
    broken = fmt::format("an error of {} bytes", message.size());
  else if (!is_utf8(message))
    broken = "an error that is not UTF-8";
  return {tl::make_unexpected(std::move(error)), std::move(broken)};
}

std::string golden(std::string_view name) {
  return bytes_of(fmt::format("{}/{}", SINTER_TESTS_DIR, name));
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) std::abort();
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace sinter::fuzz
