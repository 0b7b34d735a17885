// One step of sequences that decode together: entry `decode`, then entry `sample` on its logits.
#pragma once

#include <map>
#include <memory>

#include "driver/generate/generator.h"

namespace sinter {

/// A sequence's part of a step: the inputs of `decode` and `sample`
/// (frontends/model/build_model.h).
struct StepRow {
  int32_t token = 0;  // that is fed
  int32_t pos = 0, slot = 0, first = 0;
  int32_t step = 0;  // tokens that were chosen for the sequence before this one
  Sampling sampling;
};

/// Runs steps on a session. On a GPU logits stay in its memory.
class DecodeSteps {
 public:
  /// For at most `most` sequences. The session, of `executable`, must outlive this; its values of R
  /// are `rows`.
  static Result<std::unique_ptr<DecodeSteps>> create(std::shared_ptr<const Executable> executable,
                                                     Session& session, int64_t rows, int64_t most);
  virtual ~DecodeSteps() = default;

  /// The next token of each sequence; 1 to `most` rows with distinct slots.
  virtual Result<std::vector<int32_t>> run(llvm::ArrayRef<StepRow> rows) = 0;
};

/// Inputs of `decode` and `sample` by name, `logits` excepted.
using StepInputs = std::map<std::string, HostTensor, std::less<>>;
StepInputs step_inputs(llvm::ArrayRef<StepRow> rows);

/// The entry's tensors in its order: the tensors of `inputs`, and `logits`, unless null. The
/// tensors must outlive the result.
Result<std::vector<const HostTensor*>> in_order(const EntryPlan& entry, const StepInputs& inputs,
                                                const HostTensor* logits);

/// The tokens that `sample` chooses from logits [rows, vocabulary] of the host.
Result<std::vector<int32_t>> sample_tokens(const Program& program, Session& session,
                                           llvm::ArrayRef<int64_t> symbol_values,
                                           const HostTensor& logits, llvm::ArrayRef<StepRow> rows);

}  // namespace sinter
