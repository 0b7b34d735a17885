// The safetensors format: u64 header length, a JSON header {name: {dtype, shape, data_offsets}},
// then the tensors' bytes, little-endian, row-major, without holes or overlaps.
#pragma once

#include <vector>

#include "frontends/files/atomic_file.h"
#include "frontends/files/bounded_file.h"
#include "ir/tensor_source.h"

namespace sinter {

/// Element types of the format: name, bits.
// clang-format off
#define SINTER_FILE_DTYPES(X) \
  X(BOOL, 8) X(F4, 4) X(F6_E2M3, 6) X(F6_E3M2, 6) X(U8, 8) X(I8, 8) X(F8_E5M2, 8) \
  X(F8_E4M3, 8) X(F8_E8M0, 8) X(F8_E4M3FNUZ, 8) X(F8_E5M2FNUZ, 8) X(I16, 16) X(U16, 16) \
  X(F16, 16) X(BF16, 16) X(I32, 32) X(U32, 32) X(F32, 32) X(C64, 64) X(F64, 64) \
  X(I64, 64) X(U64, 64)
// clang-format on

enum class FileDType : uint8_t {
#define X(name, bits) name,
  SINTER_FILE_DTYPES(X)
#undef X
};

std::string_view to_string(FileDType dtype);
std::optional<FileDType> parse_file_dtype(std::string_view text);
int64_t size_bits(FileDType dtype);
/// The type of the compiler that the elements have, nullopt if it has none.
std::optional<DType> to_dtype(FileDType dtype);
/// Elements of a file's type are read as `wanted`: they have that type, or are I64 and read as i32,
/// each value checked to fit.
inline bool reads_as(FileDType found, DType wanted) {
  return to_dtype(found) == wanted || (found == FileDType::I64 && wanted == DType::i32);
}
FileDType to_file_dtype(DType dtype);

/// Bytes of a dense tensor. A failure (without a place) if a dim is negative, or if the product
/// leaves 63 bits even with dims of zero counted as one, so that no partial product can overflow.
Result<uint64_t> tensor_bytes(FileDType dtype, llvm::ArrayRef<int64_t> dims);

/// One entry of a header, checked. The offset counts from the start of the data section.
struct FileTensor {
  std::string name;
  FileDType dtype = FileDType::F32;
  std::vector<int64_t> dims;
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct LoadedTensor {
  FileDType dtype = FileDType::F32;
  std::vector<int64_t> dims;
  std::vector<std::byte> bytes;
};

/// One file, its header validated as a whole when it is opened; data is read on demand.
/// As a TensorSource it shows the tensors that to_dtype() has a type for.
class SafetensorsFile final : public TensorSource {
 public:
  static Result<SafetensorsFile> open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  /// By name.
  llvm::ArrayRef<FileTensor> tensors() const { return tensors_; }
  const FileTensor* entry(std::string_view name) const;

  /// A whole tensor of any element type.
  Result<LoadedTensor> read_tensor(std::string_view name) const;

  std::optional<TensorType> find(std::string_view name) const override;
  Status read(std::string_view name, std::span<std::byte> out) const override;
  Error missing(std::string_view name) const override;
  std::vector<std::string> names() const override;
  std::vector<std::string> files() const override { return {path()}; }

 private:
  SafetensorsFile(BoundedFile file, std::vector<FileTensor> tensors, uint64_t data_start)
      : file_(std::move(file)), tensors_(std::move(tensors)), data_start_(data_start) {}
  Status read_entry(const FileTensor& tensor, std::span<std::byte> out) const;
  /// An I64 tensor as i32.
  Status read_narrowed(const FileTensor& tensor, std::span<std::byte> out) const;

  BoundedFile file_;
  std::vector<FileTensor> tensors_;
  uint64_t data_start_ = 0;
};

/// The header of a file with `data_bytes` bytes after it, every entry checked, sorted by name.
/// Errors name `path`. Needs memory in proportion to `header`.
Result<std::vector<FileTensor>> parse_safetensors_header(std::string_view header,
                                                         uint64_t data_bytes,
                                                         const std::string& path);

/// The elements of an I32 or I64 tensor; a failure (without a place) for other types, and for
/// values outside 32 bits.
Result<std::vector<int32_t>> to_i32(const LoadedTensor& tensor);

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

/// A tensor for write_safetensors(); borrows the bytes.
struct NamedTensor {
  std::string name;
  FileDType dtype = FileDType::F32;
  std::vector<int64_t> dims;
  std::span<const std::byte> bytes;
};

/// Writes a whole file or none. The same tensors give the same bytes, whatever their order here:
/// wide element types first, then by name, so that every tensor is aligned to its element.
Status write_safetensors(const std::string& path, llvm::ArrayRef<NamedTensor> tensors);

}  // namespace sinter
