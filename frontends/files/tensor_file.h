// Files of named tensors, each a range of the file's bytes: safetensors, and NumPy's .npy and .npz.
#pragma once

#include <vector>

#include "frontends/files/bounded_file.h"
#include "ir/tensor_source.h"

namespace sinter {

/// Element types of safetensors, which stand for the types of all files here: name, bits.
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

/// What to do about a tensor that is not there; `first`: of those that are, null: there are none.
std::string missing_hint(const std::string* first);

/// Bytes of a dense tensor. A failure (without a place) if a dim is negative, or if the product
/// leaves 63 bits even with dims of zero counted as one, so that no partial product can overflow.
Result<uint64_t> tensor_bytes(FileDType dtype, llvm::ArrayRef<int64_t> dims);

/// Axes that a tensor of a file may have.
inline constexpr size_t max_file_rank = 64;

/// One tensor of a file, its header checked. The offsets count from the start of the data section.
struct FileTensor {
  std::string name;
  FileDType dtype = FileDType::F32;
  std::vector<int64_t> dims;
  uint64_t begin = 0;
  uint64_t end = 0;
  /// CRC-32 in a zip archive: of the member's bytes before the tensor's, and of all its bytes.
  struct Crc {
    uint32_t before = 0, whole = 0;
  };
  std::optional<Crc> crc = {};
};

struct LoadedTensor {
  FileDType dtype = FileDType::F32;
  std::vector<int64_t> dims;
  std::vector<std::byte> bytes;
};

/// Tensors of files, of any element type. As a TensorSource it shows those that to_dtype() has a
/// type for.
class FileTensors : public TensorSource {
 public:
  /// The entry of a tensor in a file's header; null: there is none of that name.
  virtual const FileTensor* entry(std::string_view name) const = 0;
  /// Fills `out` with exactly the bytes of a tensor of any element type.
  virtual Status read_raw(std::string_view name, std::span<std::byte> out) const = 0;
};

/// One file, its headers validated as a whole when it is opened; data is read on demand.
class TensorFile final : public FileTensors {
 public:
  /// `tensors` by name, each once, inside the file; their offsets count from `data_start`.
  TensorFile(BoundedFile file, std::vector<FileTensor> tensors, uint64_t data_start)
      : file_(std::move(file)), tensors_(std::move(tensors)), data_start_(data_start) {}

  const std::string& path() const { return file_.path(); }
  /// By name.
  llvm::ArrayRef<FileTensor> tensors() const { return tensors_; }
  const FileTensor* entry(std::string_view name) const override;
  Status read_raw(std::string_view name, std::span<std::byte> out) const override;
  /// Whether this is a .npy: one tensor, which the file has no name for.
  bool is_unnamed() const { return tensors_.size() == 1 && tensors_.front().name.empty(); }
  /// Names the tensor of a .npy.
  void set_name(std::string name);

  /// A whole tensor of any element type.
  Result<LoadedTensor> read_tensor(std::string_view name) const;

  std::optional<TensorType> find(std::string_view name) const override;
  Status read(std::string_view name, std::span<std::byte> out) const override;
  Error missing(std::string_view name) const override;
  std::vector<std::string> names() const override;
  std::vector<std::string> files() const override { return {path()}; }

 private:
  Status read_entry(const FileTensor& tensor, std::span<std::byte> out) const;
  /// An I64 tensor as i32.
  Status read_narrowed(const FileTensor& tensor, std::span<std::byte> out) const;
  /// Fails if the bytes read are not those that the archive has the checksum of.
  Status check_crc(const FileTensor& tensor, uint32_t found) const;

  BoundedFile file_;
  std::vector<FileTensor> tensors_;
  uint64_t data_start_ = 0;
};

/// The elements of an I32 or I64 tensor; a failure (without a place) for other types, and for
/// values outside 32 bits.
Result<std::vector<int32_t>> to_i32(const LoadedTensor& tensor);

/// A tensor that is written; borrows the bytes.
struct NamedTensor {
  std::string name;
  FileDType dtype = FileDType::F32;
  std::vector<int64_t> dims;
  std::span<const std::byte> bytes;
};

/// A file of any of the formats, told by its name (.npy, .npz) and else by its first bytes.
Result<TensorFile> open_tensor_file(const std::string& path);

/// Writes a whole file or none: .npy, .npz or, under every other name, safetensors. Errors: a .npy
/// of more or fewer than one tensor; an element type or a name that the format lacks.
Status write_tensor_file(const std::string& path, llvm::ArrayRef<NamedTensor> tensors);

/// By name. An error, "hint" its hint, if two have one name.
Status sort_by_name(std::vector<FileTensor>& tensors, const std::string& path,
                    const std::string& hint);

}  // namespace sinter
