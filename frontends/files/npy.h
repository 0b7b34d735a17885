// NumPy's .npy: a magic, a header that is a Python dictionary {descr, fortran_order, shape}, the
// elements. Little-endian elements in C order are read and written.
#pragma once

#include "frontends/files/atomic_file.h"
#include "frontends/files/tensor_file.h"

namespace sinter {

inline constexpr std::string_view npy_magic = "\x93NUMPY";

/// The tensor, without a name.
Result<TensorFile> open_npy(BoundedFile file);

/// The tensor without a name that the bytes from `begin` to `end` of the file are, all of them.
/// `crc`: of the bytes before the elements. Errors name `where`.
struct NpyTensor {
  FileTensor tensor;
  uint32_t crc = 0;
};
Result<NpyTensor> read_npy(const BoundedFile& file, uint64_t begin, uint64_t end,
                           const std::string& where);

/// The bytes before the elements. A failure (without a place) for a type that NumPy lacks.
Result<std::string> npy_header(FileDType dtype, llvm::ArrayRef<int64_t> dims);

/// Writes a whole file or none, its elements in pieces.
class NpyWriter {
 public:
  static Result<NpyWriter> create(const std::string& path, FileDType dtype,
                                  llvm::ArrayRef<int64_t> dims);
  /// The next elements.
  Status write(std::span<const std::byte> bytes);
  /// Gives the file its name, when all elements were written.
  Status commit();

 private:
  NpyWriter(AtomicFile file, uint64_t missing) : file_(std::move(file)), missing_(missing) {}

  AtomicFile file_;
  uint64_t missing_;  // bytes
};

}  // namespace sinter
