// Configurations of kernels that compute tiles: how many stages of a pipeline shared memory holds.
#pragma once

#include <cstdint>
#include <optional>

namespace sinter {

/// The most stages of `stage_bytes` each, from `least` to `most`, that `bytes` of shared memory
/// hold. nullopt: it does not hold the least.
std::optional<int64_t> stages_that_fit(int64_t bytes, int64_t stage_bytes, int64_t least,
                                       int64_t most);

}  // namespace sinter
