// A benchmark's figures as a table and as JSON.
#pragma once

#include "driver/bench/bench.h"

namespace sinter {

/// A line per case and plan: median and 95th percentile of the device's time, the host's median,
/// the rate, its share of the ceiling, launches; the speedup of the fused plan's median; the
/// profile of a token where there is one; the forms of kernels where they were tuned.
std::string bench_text(const BenchReport& report);
/// The same with every sample, the profile as "decode_kernels". No date, no host name: equal
/// figures give equal text.
std::string bench_json(const BenchReport& report);

}  // namespace sinter
