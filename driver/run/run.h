// One forward pass: tensors or tokens in, tensors out.
#pragma once

#include "driver/ready_model.h"

namespace sinter {

struct RunOptions {
  std::shared_ptr<Backend> backend;
  std::vector<std::string> keep;  // values to return beside the outputs
  CompileOptions compile;
  /// Values of symbols that no input tensor's shape tells.
  std::vector<std::pair<std::string, int64_t>> symbols;
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
Result<TokenRun> run_tokens(const LoadedModel& model, const std::vector<int32_t>& tokens,
                            int64_t more, const RunOptions& options);

/// Compiles and runs an entry on the tensors of a safetensors file, one for each input by its name.
/// Symbols take their values from the tensors' shapes; states start as zeros.
Result<std::vector<NamedHostTensor>> run_inputs(const LoadedModel& model, const std::string& entry,
                                                const std::string& path, const RunOptions& options);

/// Writes tensors as safetensors; the file appears as a whole or not at all.
Status write_tensors(const std::string& path, llvm::ArrayRef<NamedHostTensor> tensors);

}  // namespace sinter
