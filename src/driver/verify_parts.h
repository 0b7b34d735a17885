// The parts of `verify`: both plans of a model, comparison of their runs, the reference file.
#pragma once

#include "driver/backend.h"
#include "driver/compile.h"
#include "driver/verify.h"
#include "frontends/safetensors.h"
#include "runtime/executor.h"

namespace sinter {

/// The fused and the unfused plan of one frozen module, with weights.
struct Plans {
  Module module;  // frozen
  std::shared_ptr<const Model> fused, unfused;

  /// Values that both plans store in buffers of an entry, in its order.
  std::vector<std::string> common_values(std::string_view entry) const;
};
Result<Plans> make_plans(const LoadedModel& model, const std::string& target, Backend& backend);

/// Adds one call's comparison to the report; the first difference is named in the entry's order.
Status compare_runs(std::string_view entry, const RunResult& fused, const RunResult& unfused, DTypeReport& report);
Status compare_states(const Session& fused, const Session& unfused, const Program& program,
                      DTypeReport& report);

/// Runs `prefill` in float64 without roundings and measures both plans' logits against it.
Status measure_float64(const Plans& plans, llvm::ArrayRef<std::vector<int32_t>> tokens,
                       const HostTensor& fused, const HostTensor& unfused, DTypeReport& report);

/// Reference tensors of a language model: input_ids [S, T], logits [S, T, V], hidden_0 (embed) ..
/// hidden_L (final_norm), greedy [1, n], nll_mean [1]; all but the first are optional.
class ReferenceFile {
 public:
  static Result<ReferenceFile> open(const std::string& path);

  std::vector<std::vector<int32_t>> sequences() const { return sequences_; }
  /// Compares the tensors with a float32 prefill of all sequences that kept the hidden values;
  /// nothing for other types.
  Status check(const RunResult& run, DTypeReport& report) const;
  std::optional<bool> tokens_match(llvm::ArrayRef<int32_t> tokens) const;

 private:
  explicit ReferenceFile(SafetensorsFile file) : file_(std::move(file)) {}
  Status check_values(const HostTensor& value, const std::string& tensor, const std::string& name, DTypeReport& report) const;
  Status check_loss(const HostTensor& logits, DTypeReport& report) const;

  SafetensorsFile file_;
  std::vector<std::vector<int32_t>> sequences_;
  std::vector<int32_t> greedy_;
};

}  // namespace sinter
