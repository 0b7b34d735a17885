// `verify --self` of an encoder: pieces of a text, alone and several in a call, at several lengths.
#pragma once

#include "driver/verify/self_options.h"

namespace sinter {

/// The hidden states beside an evaluation in float64 without roundings.
struct PreciseHidden {
  int64_t calls = 0, tokens = 0;
  /// Root mean square errors of the call that is nearest to its bound, or beyond it.
  double fused_rms = 0, unfused_rms = 0, allowed = 0;  // hidden_bound of loss_bound.h
  bool holds = true;                                   // in every call
  double seconds = 0;
};

struct EncoderReport {
  DType dtype = DType::f32;
  std::string device;
  bool strict = true;
  bool random_text = false;                 // the model has no tokenizer
  std::vector<std::vector<int64_t>> calls;  // the lengths of each call's texts
  std::string left_out;                     // which calls and why; empty: none
  DTypeReport comparison;                   // calls, values, elements, difference
  int64_t tokens = 0;                       // of all calls
  double fused_s = 0, unfused_s = 0;        // for all calls, results copied to the host
  std::optional<PreciseHidden> precise;
  std::string not_precise;  // why there is no comparison with float64
  int64_t weight_bytes = 0;
  int64_t fused_arena_bytes = 0, unfused_arena_bytes = 0;  // of the largest call
  int64_t peak_bytes = 0;                                  // of the host's memory
  double plans_s = 0;                                      // for compiling and loading both plans

  bool passed() const;
};

/// A usage error where the options say what an encoder cannot do.
Status check_encoder_options(const SelfOptions& options);

/// The check alone. `text`: tokens of the vocabulary; texts are pieces of it. Of `options` are
/// used: backend and the memory for activations.
Result<EncoderReport> check_self_encoder(const Plans& plans, const ModelSpec& spec,
                                         llvm::ArrayRef<int32_t> text, const SelfOptions& options,
                                         const SelfLimits& limits = {});

/// Lengths of the texts of each call, calls of fewer tokens first: single texts from 1 token to all
/// positions, and calls of 2, 4 and 8 texts, no call of more rows than there are positions.
std::vector<std::vector<int64_t>> self_call_lengths(int64_t positions, bool invariant = false);

}  // namespace sinter
