// One forward pass: tensors or tokens in, tensors out.
#pragma once

#include "driver/ready_plan.h"
#include "driver/run/entry_calls.h"

namespace sinter {

struct RunOptions {
  std::shared_ptr<Backend> backend;
  std::vector<std::string> keep;  // values and modules to return beside the outputs
  CompileOptions compile;
};

struct NamedHostTensor {
  std::string name;
  HostTensor tensor;
};

/// Compiles and runs `prefill` on one sequence; then, if `more` > 0, decodes greedily. The result
/// holds the prefill's outputs and kept values; `tokens` the continuation.
struct TokenRun {
  std::vector<NamedHostTensor> values;
  std::vector<int32_t> tokens;
};
Result<TokenRun> run_tokens(const OpenedModel& model, const std::vector<int32_t>& tokens,
                            int64_t more, const RunOptions& options);

/// Compiles the model and calls entries in one session, whose states start as zeros. The results
/// come from each entry's last call, named as EntryCalls::result_name says; a value of
/// RunOptions::keep is one of every called entry that stores it.
Result<std::vector<NamedHostTensor>> run_inputs(const OpenedModel& model,
                                                const CallsOptions& options, const RunOptions& run);

/// Writes tensors in the format of the name, as write_tensor_file does.
Status write_tensors(const std::string& path, llvm::ArrayRef<NamedHostTensor> tensors);

}  // namespace sinter
