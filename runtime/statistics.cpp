#include "runtime/statistics.h"

#include <algorithm>
#include <numeric>

namespace sinter {

double quantile(std::vector<double> samples, double share) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const double at = std::clamp(share, 0.0, 1.0) * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<size_t>(at);
  if (below + 1 >= samples.size()) return samples.back();
  return samples[below] + (at - static_cast<double>(below)) * (samples[below + 1] - samples[below]);
}

double mean(const std::vector<double>& samples) {
  if (samples.empty()) return 0;
  return std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
}

}  // namespace sinter
