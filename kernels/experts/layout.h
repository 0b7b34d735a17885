// The sizes that the kernel of `expert_linear` and its emitter share.
#pragma once

namespace sinter {

constexpr int kExpertThreads = 256;
constexpr int kExpertWarpRows = 4;  // rows of a matrix that a warp multiplies together
constexpr int kExpertBlockRows = kExpertThreads / 32 * kExpertWarpRows;

}  // namespace sinter
