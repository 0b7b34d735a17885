// NumPy's .npz: a zip archive with a member NAME.npy for each tensor. Members that are stored as
// they are can be read; compressed ones are refused.
#pragma once

#include "frontends/files/tensor_file.h"

namespace sinter {

Result<TensorFile> open_npz(BoundedFile file);

/// Writes a whole file or none. The same tensors give the same bytes: a member has no time.
Status write_npz(const std::string& path, llvm::ArrayRef<NamedTensor> tensors);

}  // namespace sinter
