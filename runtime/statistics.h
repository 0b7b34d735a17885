// Summaries of repeated measurements.
#pragma once

#include <utility>
#include <vector>

namespace sinter {

/// The value below which `share` (0 .. 1) of the samples lie, interpolated linearly between the two
/// nearest in order (Hyndman and Fan's type 7); 0 without samples.
double quantile(std::vector<double> samples, double share);
inline double median(std::vector<double> samples) { return quantile(std::move(samples), 0.5); }
/// 0 without samples.
double mean(const std::vector<double>& samples);

}  // namespace sinter
