// What a plan costs, in numbers, for one choice of sizes.
#pragma once

#include "driver/compile/stated_sizes.h"

namespace sinter {

struct PlanCosts {
  uint64_t kernels = 0;   // distinct ones that the entry launches
  uint64_t launches = 0;  // all steps: kernels, library calls, copies
  uint64_t gemms = 0;     // library calls among the launches
  uint64_t copies = 0;    // copies among the launches
  double bytes = 0;       // moved through memory
};
PlanCosts plan_costs(const Program& program, const EntryPlan& entry, llvm::ArrayRef<int64_t> sizes);
double step_bytes(const Program& program, const EntryPlan& entry, const Step& step,
                  llvm::ArrayRef<int64_t> sizes);

/// A table: per entry kernels, launches and bytes moved at these sizes, unfused → fused.
std::string summary_table(const Program& unfused, const Program& fused,
                          llvm::ArrayRef<int64_t> sizes);
/// A table: every kernel, how often each entry launches it, and the values of its first launch.
std::string kernel_table(const Program& program);

}  // namespace sinter
