// The costs of a plan in numbers, for one choice of sizes.
#pragma once

#include "driver/compile/compile.h"

namespace sinter {

struct PlanCosts {
  uint64_t kernels = 0;   // distinct ones that the entry launches
  uint64_t launches = 0;  // all steps: kernels, library calls, copies
  uint64_t gemms = 0;     // library calls among the launches
  uint64_t copies = 0;    // copies among the launches
  double bytes = 0;       // moved through memory; of a cache that attention reads, all rows
  double arena_bytes = 0;
};
PlanCosts plan_costs(const Program& program, const EntryPlan& entry, llvm::ArrayRef<int64_t> sizes);

/// A table: per entry kernels, launches, bytes moved, arena and predicted time at the fused plan's
/// sizes, unfused → fused.
std::string summary_table(const Compiled& unfused, const Compiled& fused);
/// A table: every kernel, how often each entry launches it, and the values of its first launch.
std::string kernel_table(const Program& program);

}  // namespace sinter
