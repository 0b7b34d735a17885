// A folder with a module of some kernels alone, and what they read.
#pragma once

#include "driver/bisect/bisect.h"
#include "driver/bisect/judge_plans.h"

namespace sinter {

/// The ops of some groups of an entry as a module with one entry, beside it what it needs.
struct KernelModule {
  Module module;
  std::vector<std::pair<std::string, HostTensor>> inputs;   // by "ENTRY.NAME"
  std::vector<std::pair<std::string, HostTensor>> weights;  // by the weight's name
  std::vector<std::string> sizes;                           // "N=3", of symbols that no input tells
};

/// `members`: computing ops of the frozen module's entry. Values that they read of other ops, and
/// of the call's inputs, are inputs, as the unfused plan's call `call` has them; states that they
/// write are filled by an entry `fill` first.
Result<KernelModule> kernel_module(const Module& frozen, size_t entry,
                                   llvm::ArrayRef<ValueId> members, const PlanJudge& judge,
                                   size_t call);

/// Writes model.sir, model.safetensors with the weights, inputs.safetensors, reproduce.sh and
/// about.json, and runs the module, fused and unfused. The folder appears as a whole; what
/// check_reproducer_folder allows is replaced.
Result<Reproducer> write_reproducer(const std::string& folder, const KernelModule& kernel,
                                    const GuiltyFusions& guilty, const BisectOptions& options,
                                    uint64_t model_weight_bytes, int64_t runs);

}  // namespace sinter
