// The float types that kernels read and write.
#pragma once

#include "ir/dtype.h"

namespace sinter {

inline constexpr DType kFloats[] = {DType::f32, DType::f16, DType::bf16};

}  // namespace sinter
