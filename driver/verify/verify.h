// The contract, checked: strict, fused equals unfused bit for bit, and how far both are from
// float64 and from reference tensors; fast, fused is about as close to float64 as unfused.
#pragma once

#include "driver/backend.h"
#include "driver/opened_model.h"
#include "driver/run/entry_calls.h"
#include "driver/verify/error_bound.h"
#include "runtime/compare.h"

namespace sinter {

struct VerifyOptions {
  std::shared_ptr<Backend> backend;
  std::vector<DType> dtypes;  // empty: f32, f16, bf16, or a module's own
  /// A file of tensors; empty: none. Of a language model see ReferenceFile; of a module its
  /// outputs, as compare_outputs finds them, of each entry's last call.
  std::string reference;
  uint64_t seed = 1;  // of tokens and inputs where there is no reference
  OpenOptions open;   // `dtypes` count instead of its type
  /// The calls of a module, for all its entries; a language model takes none. Fast numerics take
  /// the symbols alone.
  CallsOptions calls;
  /// Of a module with collectives: threads on the CPU. Rank r has weights and inputs of the seeds
  /// plus r. Without float64 and a reference, which know one rank.
  size_t ranks = 1;
  int64_t steps = 16;   // of decoding after the first call
  bool forced = false;  // decode seeded tokens, not the likeliest
  /// Compile options of the fused plan; the unfused plan has the same passes, device and numerics.
  /// With fast numerics only the bounds are checked, over 16 seeds; no reference, and at most 4
  /// steps.
  CompileOptions compile;
};

/// One value against another.
struct ValueCheck {
  std::string name;
  double max_abs = 0, max_ulp = 0;
  double allowed = 0;  // of max_abs
  bool passed = false;
};

struct DTypeReport {
  std::optional<DType> dtype;  // none: a module's own
  /// Fused against unfused: values that both plans store, over all calls made.
  int64_t calls = 0, values = 0, elements = 0;
  std::string difference;          // the first node that differs and how; empty: none
  std::vector<ErrorBound> bounds;  // fast numerics: of every float result
  int64_t fused_launches = 0, unfused_launches = 0;
  int64_t rounded_matrices = 0;  // of codes, whose elements both plans round, in all entries
  /// The errors against float64 of the first output (logits), for a module of the farthest one;
  /// absent if float64 would take too long.
  std::optional<Accuracy> fused_error, unfused_error;
  std::string float64_value;  // of a module: the output that is farthest off, which they are of
  /// GPU: calls in which every kernel without a contraction gave the bits of the host's evaluation.
  int64_t host_checked_calls = 0;
  uint64_t reduced_hash = 0;   // of the results of all_reduce in all calls, in order
  int64_t reduced_values = 0;  // how many there are, which all ranks have
  size_t ranks = 1;
  uint64_t logits_hash = 0;            // of all decoding steps, in order
  std::vector<ValueCheck> reference;   // of language models: f32 only
  std::vector<int32_t> tokens;         // greedy continuation of the first sequence
  std::optional<bool> tokens_match;    // the reference's
  std::optional<bool> recorded_match;  // GPU: decoding by recorded graphs gave the same tokens
};

struct VerifyReport {
  std::vector<DTypeReport> dtypes;
  bool passed() const;
};

/// A module that was opened, the same way: all its entries are called. `path`, types and the
/// reference of the options are not read.
Result<VerifyReport> verify_opened(const OpenedModel& model, const VerifyOptions& options);

/// Loads, compiles and runs the model on the CPU, freed buffers poisoned with NaN. A broken promise
/// is not an Error but a report that has not `passed`.
Result<VerifyReport> verify_model(const std::string& path, const VerifyOptions& options);

}  // namespace sinter
