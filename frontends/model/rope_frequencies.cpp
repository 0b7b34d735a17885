#include <algorithm>
#include <cmath>
#include <numbers>

#include "frontends/model/model_spec.h"

namespace sinter {

namespace {

/// 1 where a wavelength is short enough to stay, 0 where it is stretched in full.
double llama3_keep(const Rope& rope, double base) {
  const double context = static_cast<double>(rope.original_max_positions);
  const double wavelength = 2.0 * std::numbers::pi / base;
  const double blend = (context / wavelength - rope.low_freq_factor) /
                       (rope.high_freq_factor - rope.low_freq_factor);
  return std::min(1.0, std::max(0.0, blend));
}

/// The pair, as a real number, that turns `turns` times in the original context.
double yarn_pair(const Rope& rope, double turns) {
  const double context = static_cast<double>(rope.original_max_positions);
  return static_cast<double>(rope.rotary) * std::log(context / (turns * 2.0 * std::numbers::pi)) /
         (2.0 * std::log(rope.theta));
}

/// 1 for pairs up to the one that turns beta_fast times, 0 from the one that turns beta_slow times.
double yarn_keep(const Rope& rope, int64_t pair) {
  double low = yarn_pair(rope, rope.beta_fast), high = yarn_pair(rope, rope.beta_slow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(rope.rotary - 1));
  if (high == low) high += 0.001;
  const double ramp = (static_cast<double>(pair) - low) / (high - low);
  return 1.0 - std::min(1.0, std::max(0.0, ramp));
}

}  // namespace

std::vector<double> rope_frequencies(const Rope& rope, int64_t max_positions) {
  std::vector<double> frequencies;
  const auto& factors =
      max_positions <= rope.original_max_positions ? rope.short_factors : rope.long_factors;
  const auto blend = [&](double base, double keep) {
    return base * ((1.0 - keep) / rope.factor + keep);
  };
  for (int64_t i = 0; i < rope.rotary / 2; ++i) {
    const double base =
        std::pow(rope.theta, -2.0 * static_cast<double>(i) / static_cast<double>(rope.rotary));
    switch (rope.scaling) {
      case RopeScaling::none:
        frequencies.push_back(base);
        break;
      case RopeScaling::linear:
        frequencies.push_back(base / rope.factor);
        break;
      case RopeScaling::llama3:
        frequencies.push_back(blend(base, llama3_keep(rope, base)));
        break;
      case RopeScaling::yarn:
        frequencies.push_back(blend(base, yarn_keep(rope, i)));
        break;
      case RopeScaling::longrope:
        frequencies.push_back(base / factors[static_cast<size_t>(i)]);
        break;
    }
  }
  return frequencies;
}

}  // namespace sinter
