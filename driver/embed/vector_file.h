// Vectors of texts as a file of NumPy.
#pragma once

#include "frontends/files/npy.h"

namespace sinter {

/// A .npy of float32 [texts, width], written as a whole or not at all; one vector is held at a
/// time.
class VectorFile {
 public:
  /// An error of the code `usage` where the name does not end in .npy.
  static Status check_name(const std::string& path);
  static Result<VectorFile> create(const std::string& path, size_t texts, int64_t width);
  /// The next vector, of `width` numbers, rounded to float32.
  Status write(llvm::ArrayRef<double> vector);
  /// Gives the file its name, when all vectors were written.
  Status commit() { return file_.commit(); }

 private:
  explicit VectorFile(NpyWriter file) : file_(std::move(file)) {}

  NpyWriter file_;
};

}  // namespace sinter
