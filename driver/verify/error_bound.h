// The promise of fast numerics about one value: over many calls its error against float64 is hardly
// more than the unfused plan's.
//
// For the largest errors, the mean over the calls is compared. The maximum over all calls depends
// on a single element: of two equally good plans, one exceeds the other by more than a factor of
// 1.5 about once in a hundred times.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "runtime/evaluate/host_tensor.h"

namespace sinter {

inline constexpr double kMaxRmsRatio = 1.05, kMaxMaxRatio = 1.5;

/// Errors over all elements and calls.
struct ErrorSum {
  double squares = 0, maxima = 0;  // of elements, of calls
  int64_t elements = 0, calls = 0;
  double max = 0;
  double rms() const {
    return elements == 0 ? 0 : std::sqrt(squares / static_cast<double>(elements));
  }
  double mean_max() const { return calls == 0 ? 0 : maxima / static_cast<double>(calls); }
};

struct ErrorBound {
  std::string value;  // "decode %logits"
  ErrorSum fused, unfused;
  double ulp = 0;  // of the value's type, where the fused plan is farthest off
  /// The module chooses experts by numbers that are rounded (op top_k). Between two experts that
  /// are nearly equal any rounding may decide, so that the result has no bound.
  bool chooses = false;

  /// Numbers where the unfused plan has numbers, if the module chooses. Else RMS at most 1.05 of
  /// the unfused plan's, mean maximum at most 1.5 of its and one ulp more. NaN and infinity against
  /// a number count as infinitely far.
  bool holds() const;
};

/// Adds one call's result, of a float type, to the bound called `value`, which is made on first
/// use.
Status add_errors(const std::string& value, const HostTensor& fused, const HostTensor& unfused,
                  const HostTensor& precise, std::vector<ErrorBound>& bounds);

}  // namespace sinter
