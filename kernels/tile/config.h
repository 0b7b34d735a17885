// Configurations of kernels that compute tiles: how many stages of a pipeline shared memory holds.
#pragma once

#include <cstdint>
#include <optional>

namespace sinter {

/// The elements of a tile that take as long as a row or a column of its operands, which are copied
/// and read from shared memory: tiles of 128 rows and columns are 5 % slower than tiles of 256
/// rows.
constexpr int64_t kElementsOfRow = 16;

/// The most stages of `stage_bytes` each, from `least` to `most`, that `bytes` of shared memory
/// hold. nullopt: it does not hold the least.
std::optional<int64_t> stages_that_fit(int64_t bytes, int64_t stage_bytes, int64_t least,
                                       int64_t most);

}  // namespace sinter
