// The GGUF container, versions 2 and 3: typed metadata, and tensors of blocks. Split files
// (NAME-00001-of-00003.gguf) are one model.
//
// Files are untrusted: every count, length, size and offset is checked against the file's size
// before memory is taken for it, which is at most a small multiple of the header's bytes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frontends/files/bounded_file.h"
#include "frontends/gguf/gguf_value.h"

namespace sinter {

enum class GgufType : uint8_t {
#define SINTER_GGUF_TYPE(name, id, elements, bytes) name,
#include "frontends/gguf/gguf_types.def"
};

/// An element type: its name, its id in the file, and its blocks.
struct GgufTypeInfo {
  std::string_view name;
  uint32_t id;
  int64_t block_elements, block_bytes;
};
const GgufTypeInfo& gguf_type_info(GgufType type);

struct GgufTensor {
  std::string name;
  GgufType type;
  std::vector<int64_t> dims;  // row-major, the reverse of the file's order: the last is a row
  uint64_t begin, bytes;      // in the file that has it
  uint32_t file;              // index of GgufFile::files
};

/// A model's files, their headers checked as a whole. Tensors are read on demand.
class GgufFile {
 public:
  /// `path`: the file, or any of the files of a split model, which lie in one folder. Errors: a
  /// version that is not read, big-endian numbers, and whatever breaks the format, with the file,
  /// and the key or tensor.
  static Result<GgufFile> open(const std::string& path);

  /// The metadata of the first file.
  const std::map<std::string, GgufValue, std::less<>>& metadata() const { return metadata_; }
  const GgufValue* find(std::string_view key) const;
  uint32_t version() const { return version_; }
  /// In the order of the files.
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  std::vector<std::string> files() const;
  /// Fills `out` with bytes from `begin` on of a tensor, which is one of tensors().
  Status read(const GgufTensor& tensor, uint64_t begin, std::span<std::byte> out) const;

 private:
  Status check_names() const;

  uint32_t version_ = 0;
  std::map<std::string, GgufValue, std::less<>> metadata_;
  std::vector<GgufTensor> tensors_;
  std::vector<BoundedFile> files_;
};

/// The first file of the model that a file at `path` is part of, as its name says it.
std::string first_gguf_file(const std::string& path);

}  // namespace sinter
