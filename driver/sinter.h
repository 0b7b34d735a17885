// Sinter's face for other programs: compile a model, ask why, run it. Installed; needs neither LLVM
// nor CUDA headers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/error.h"

namespace sinter {

/// How a model is compiled.
struct ModelOptions {
  std::string dtype;                            // "fp32", "fp16", "bf16"; empty: the model's own
  std::optional<std::uint64_t> random_weights;  // a seed: stand-in weights
  std::string target = "sm_90a";                // a named device description
  bool fuse = true;
  bool fast = false;  // fast numerics, where it fuses
};

/// Why two values share a kernel or not.
struct WhyAnswer {
  bool same_kernel = false;
  std::string reason;             // an id, e.g. "convexity.path"
  std::string detail;             // a sentence
  std::vector<std::string> path;  // values from one to the other, where that is the reason
};

/// A compiled model. Immutable; copies share it, between threads too.
class CompiledModel {
 public:
  /// Reads a Hugging Face folder, a llama2.c file, a spec or a module and compiles it. Reads no
  /// weights.
  static Result<CompiledModel> compile(const std::string& path, const ModelOptions& options = {});

  std::vector<std::string> entries() const;
  /// Kernel launches and library calls of one run of an entry.
  Result<std::int64_t> launches(const std::string& entry) const;
  Result<WhyAnswer> why(const std::string& entry, const std::string& a, const std::string& b) const;
  /// plan.json, the module after all passes as text IR, and the CUDA text of every kernel.
  std::string plan_json() const;
  std::string module_text() const;
  std::vector<std::string> kernel_sources() const;

  /// Runs a language model on the CPU: a prefill of `tokens`, then `more` greedy tokens, returned.
  Result<std::vector<std::int32_t>> generate(const std::vector<std::int32_t>& tokens,
                                             std::int64_t more) const;

 private:
  struct Data;
  explicit CompiledModel(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

}  // namespace sinter
