// Two benchmarks side by side.
#pragma once

#include "driver/bench/bench.h"

namespace sinter {

/// A case of a benchmark as its JSON has it. Times in seconds.
struct SavedCase {
  std::string name;                                    // "decode"
  std::vector<std::pair<std::string, int64_t>> sizes;  // "context", 1024
  double fused_s = 0, unfused_s = 0;                   // medians
};

struct SavedBench {
  std::string model, device;
  std::vector<SavedCase> cases;

  /// The case of that name and sizes; null: it has none.
  const SavedCase* find(const BenchCase& one) const;
};

/// Reads what `bench --json` printed. Errors: another file, a damaged one.
Result<SavedBench> read_bench(const std::string& path);

}  // namespace sinter
