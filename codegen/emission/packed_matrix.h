// The type of a packed matrix in kernel text (kernels/common/packed_matrix.cuh).
#pragma once

#include <string>

#include "ir/code_format.h"

namespace sinter {

/// "PackedMatrix<codes::int4, 4, 128, f16, false, false, 4096>": rows of `length` codes.
std::string packed_matrix(const CodeFormat& format, int64_t length);

}  // namespace sinter
