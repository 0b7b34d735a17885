// The safetensors format: u64 header length, a JSON header {name: {dtype, shape, data_offsets}},
// then the tensors' bytes, little-endian, row-major, without holes or overlaps.
#pragma once

#include <map>
#include <vector>

#include "frontends/files/atomic_file.h"
#include "frontends/files/tensor_file.h"

namespace sinter {

Result<TensorFile> open_safetensors(const std::string& path);
Result<TensorFile> open_safetensors(BoundedFile file);

/// The header of a file with `data_bytes` bytes after it, every entry checked, sorted by name.
/// Errors name `path`. Needs memory in proportion to `header`.
Result<std::vector<FileTensor>> parse_safetensors_header(std::string_view header,
                                                         uint64_t data_bytes,
                                                         const std::string& path);

/// A tensor in the header of a file that is written.
struct TensorEntry {
  std::string name;
  FileDType dtype = FileDType::F32;
  std::vector<int64_t> dims;
};

/// Writes a whole file or none, a tensor at a time, so that only one is in memory.
class SafetensorsWriter {
 public:
  using Metadata = std::map<std::string, std::string>;

  /// The file has the tensors in this order. `metadata` stands in its header.
  static Result<SafetensorsWriter> create(const std::string& path,
                                          llvm::ArrayRef<TensorEntry> tensors,
                                          const Metadata& metadata = {});
  /// All bytes of the tensor `index` of the header, each once, in any order.
  Status write(size_t index, std::span<const std::byte> bytes);
  /// Gives the file its name, when all tensors were written.
  Status commit();

 private:
  struct Place {
    uint64_t begin = 0, bytes = 0;  // in the file
    bool written = false;
  };
  SafetensorsWriter(AtomicFile file, std::vector<Place> places)
      : file_(std::move(file)), places_(std::move(places)) {}

  AtomicFile file_;
  std::vector<Place> places_;
};

/// The order of tensors in a file that this program writes: wide element types first, then by name,
/// so that every tensor is aligned to its element.
void sort_entries(std::vector<TensorEntry>& entries);

/// Writes a whole file or none, in the order of sort_entries(): the same tensors give the same
/// bytes, whatever their order here.
Status write_safetensors(const std::string& path, llvm::ArrayRef<NamedTensor> tensors);

}  // namespace sinter
