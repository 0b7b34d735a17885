// One call of one entry on the host: buffers, steps, results.
#pragma once

#include "runtime/host/executable.h"
#include "runtime/host/kernel.h"

namespace sinter {

/// The data of a call; all of it outlives the call.
struct HostCall {
  const Program& program;
  const EntryPlan& entry;
  llvm::ArrayRef<HostKernel> kernels;     // of the program
  llvm::ArrayRef<HostTensor> weights;     // of the program
  std::vector<HostTensor>& states;        // of the session
  llvm::ArrayRef<int64_t> symbol_values;  // valid
  llvm::ArrayRef<const HostTensor*> inputs;
  const CallOptions& options;
};
Result<RunResult> run_entry(const HostCall& call);

}  // namespace sinter
