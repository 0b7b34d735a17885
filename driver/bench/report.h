// A benchmark's figures as a table and as JSON.
#pragma once

#include "driver/bench/against.h"

namespace sinter {

/// A line per case and plan: median and 95th percentile of the device's time, the host's median,
/// the rate, its share of the ceiling, launches; the speedup of the fused plan's median; the
/// profile of a token where there is one; the forms of kernels where they were tuned.
std::string bench_text(const BenchReport& report);
/// The same with every sample, the profile as "decode_kernels". No date, no host name: equal
/// figures give equal text.
std::string bench_json(const BenchReport& report);

/// The cases as a table of Markdown, and as CSV with a line for each plan of a case (times in
/// seconds). `against`: with the times of the same cases there; null: without.
std::string bench_markdown(const BenchReport& report, const SavedBench* against = nullptr);
std::string bench_csv(const BenchReport& report, const SavedBench* against = nullptr);
/// Medians here and there.
std::string bench_against_text(const BenchReport& report, const SavedBench& against);
/// A page (driver/page): the cases, and a profile of a token where there is one.
std::string bench_html(const BenchReport& report, const SavedBench* against = nullptr);
/// "decode, context 1024, tokens 128", without a batch of one.
std::string case_title(const BenchCase& one);

}  // namespace sinter
