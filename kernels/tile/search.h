// The search for the configuration of a kernel that computes tiles: a family gives a table of
// candidates and a cost function.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace sinter {

/// The most stages of `stage_bytes` each, from `least` to `most`, that `bytes` of shared memory
/// hold. nullopt: it does not hold the least.
std::optional<int64_t> stages_that_fit(int64_t bytes, int64_t stage_bytes, int64_t least,
                                       int64_t most);

/// The candidate of the least cost, the first of several. cost(candidate): nullopt if the device
/// cannot have it. A later candidate takes the place of an earlier one if it costs less than
/// `share` of it. nullopt: no candidate fits.
template <typename Candidates, typename Cost>
auto cheapest(const Candidates& candidates, Cost cost, double share = 1) {
  std::optional<typename Candidates::value_type> best;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& candidate : candidates) {
    const std::optional<double> costs = cost(candidate);
    if (!costs || (best && !(*costs < share * least))) continue;
    best = candidate;
    least = *costs;
  }
  return best;
}

}  // namespace sinter
