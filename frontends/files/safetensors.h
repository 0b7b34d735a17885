// The safetensors format: u64 header length, a JSON header {name: {dtype, shape, data_offsets}},
// then the tensors' bytes, little-endian, row-major, without holes or overlaps.
#pragma once

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

/// Writes a whole file or none, one tensor after another, so that only one is in memory at a time.
class SafetensorsWriter {
 public:
  /// The file has the tensors in this order.
  static Result<SafetensorsWriter> create(const std::string& path,
                                          llvm::ArrayRef<TensorEntry> tensors);
  /// All bytes of the next tensor.
  Status write(std::span<const std::byte> bytes);
  /// Gives the file its name, when all tensors were written.
  Status commit();

 private:
  SafetensorsWriter(AtomicFile file, std::vector<uint64_t> sizes)
      : file_(std::move(file)), sizes_(std::move(sizes)) {}

  AtomicFile file_;
  std::vector<uint64_t> sizes_;
  size_t next_ = 0;
};

/// Writes a whole file or none. The same tensors give the same bytes, whatever their order here:
/// wide element types first, then by name, so that every tensor is aligned to its element.
Status write_safetensors(const std::string& path, llvm::ArrayRef<NamedTensor> tensors);

}  // namespace sinter
