// The parts of `verify --invariant`: draws, comparisons, and the ways of each kind of model.
#pragma once

#include <random>

#include "driver/verify/invariant.h"

namespace sinter {

/// The state that the ways of a model share.
struct InvarianceCheck {
  const Executable& executable;
  const ModelSpec& spec;
  const SelfOptions& options;
  InvariantReport& report;
  int64_t most_tokens = 0;  // of a language model's text
  int64_t work = 0;         // tokens that are worth waiting for
  std::mt19937_64 bits;

  const Program& program() const { return executable.program(); }
  /// The options of every call: freed memory is filled with NaN.
  static CallOptions poisoned() { return {.poison_freed = true, .keep = {}}; }
  bool on_gpu() const { return options.backend->on_gpu(); }
  /// A drawn number, both ends included.
  int64_t draw(int64_t least, int64_t most);
  /// Drawn tokens.
  std::vector<int32_t> text(int64_t tokens);
  /// The way of that name, perhaps a new one.
  InvariantWay& way(std::string_view name);
  /// An error where results are not finite: equal bits would prove nothing.
  Status check_finite(const HostTensor& results) const;
};

/// Compares `count` rows of a result, from `row` on, with the rows of the text alone, from `token`
/// on. `call`: how the result was computed.
Status compare_rows(const HostTensor& result, int64_t row, const HostTensor& alone, int64_t token,
                    int64_t count, std::string_view call, InvariantWay& way);

Status check_decoder_ways(InvarianceCheck& check);
Status check_encoder_ways(InvarianceCheck& check);

}  // namespace sinter
