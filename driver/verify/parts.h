// The parts of `verify`: both plans of a model, comparison of their runs, the reference file.
#pragma once

#include "driver/backend.h"
#include "driver/compile/compile.h"
#include "driver/generate/decoder.h"
#include "driver/run/entry_calls.h"
#include "driver/verify/text_calls.h"
#include "driver/verify/verify.h"
#include "frontends/files/tensor_file.h"
#include "runtime/executable.h"

namespace sinter {

/// The fused and the unfused plan of one frozen module, with weights.
struct Plans {
  Module module;  // frozen
  std::shared_ptr<const Executable> fused, unfused;

  /// Values that both plans store in buffers of an entry, in its order; of one with variants, of
  /// all of them.
  std::vector<std::string> common_values(std::string_view entry) const;
};
/// `compiling`: of the fused plan; the unfused one has its passes, its device and its numerics.
Result<Plans> make_plans(const OpenedModel& model, const CompileOptions& compiling,
                         Backend& backend);

/// Adds one call's comparison to the report; the first difference is named in the entry's order.
Status compare_runs(std::string_view entry, const RunResult& fused, const RunResult& unfused,
                    DTypeReport& report);
Status compare_states(const Session& fused, const Session& unfused, const Program& program,
                      DTypeReport& report);

/// Runs an entry's calls in float64 without roundings, each with empty states, and measures the
/// first output of both plans' runs against theirs.
Status measure_float64(const Plans& plans, std::string_view entry,
                       llvm::ArrayRef<DecoderCall> calls, llvm::ArrayRef<RunResult> fused,
                       llvm::ArrayRef<RunResult> unfused, DTypeReport& report);

/// The number of elements of all weights together.
double weight_elements(const Program& program);
/// Seeded ids of the vocabulary; two sequences of them, that fit the model's context.
std::vector<int32_t> random_ids(int64_t vocabulary, int64_t count, uint64_t seed);
std::vector<std::vector<int32_t>> random_tokens(const ModelSpec& spec, uint64_t seed);
/// Evaluating kernels on the host, and all in float64, is for models of the size of tests.
bool is_small(const Plans& plans, TextList texts);

/// The session of a module's entries that the options ask for.
Result<EntryCalls> module_calls(const Model& model, const VerifyOptions& options);

/// All calls of a module's session, fused beside unfused, beside float64 and a reference. Errors: a
/// reference file that has a tensor of no value, or none of an output.
Status verify_module(const Plans& plans, const Model& model, const VerifyOptions& options,
                     DTypeReport& report);

/// Compares those outputs of an entry that the file has tensors of (tensor_of), by name. f32 may
/// differ as the values of a language model may, f16 and bf16 by a few roundings, integers not.
/// Errors: a tensor of another type or shape.
Status compare_outputs(const TensorFile& file, const Entry& entry,
                       llvm::ArrayRef<std::string> names, llvm::ArrayRef<HostTensor> outputs,
                       DTypeReport& report);

/// Fills report.bounds. Errors: a model that is too large for float64 on the host.
Status verify_fast(const Plans& plans, const Model& model, const VerifyOptions& options,
                   DTypeReport& report);

/// Reference tensors of a model: input_ids [S, T], logits [S, T, V] or last_hidden_state [S, T, D],
/// hidden_0 .. hidden_L (hidden_state_name), greedy [1, n], nll_mean [1]; all but the first are
/// optional.
class ReferenceFile {
 public:
  static Result<ReferenceFile> open(const std::string& path);

  std::vector<std::vector<int32_t>> sequences() const { return sequences_; }
  int64_t longest() const { return static_cast<int64_t>(sequences_[0].size()); }  // all are equal
  /// Compares the tensors with float32 calls of all sequences, in order, that kept the hidden
  /// values; nothing for other types.
  Status check(const ModelSpec& spec, llvm::ArrayRef<RunResult> calls, DTypeReport& report) const;
  /// Whether the tokens are the reference's as far as both go; nothing without either.
  std::optional<bool> tokens_match(llvm::ArrayRef<int32_t> tokens) const;

 private:
  explicit ReferenceFile(TensorFile file) : file_(std::move(file)) {}
  Status check_values(const HostTensor& value, const std::string& tensor, const std::string& name,
                      DTypeReport& report) const;
  Status check_loss(const HostTensor& logits, DTypeReport& report) const;

  TensorFile file_;
  std::vector<std::vector<int32_t>> sequences_;
  std::vector<int32_t> greedy_;
};

/// Calls of an encoder (text_calls), fused beside unfused. `small`: float64 on the host is worth
/// waiting for.
Status verify_encoder(const Plans& plans, const ModelSpec& spec, llvm::ArrayRef<TextList> calls,
                      const ReferenceFile* reference, bool small, bool on_gpu, DTypeReport& report);

}  // namespace sinter
