// `verify --invariant`: runs a plan in many ways and compares a token's results bit for bit
// (docs/invariance.md).
#pragma once

#include "driver/verify/self_options.h"

namespace sinter {

/// A way to compute the tokens of a text.
struct InvariantWay {
  std::string name;
  int64_t calls = 0, tokens = 0;  // made, compared with the text alone
  std::string difference;         // of the first token that differs; empty: none
};

struct InvariantReport {
  DType dtype = DType::f32;
  std::string device;
  std::vector<int64_t> texts;  // tokens of the texts that are compared
  std::vector<InvariantWay> ways;
  std::string left_out;  // which ways and why; empty: none
  double seconds = 0;    // for all calls

  bool passed() const;
};

/// The check alone, of a language model or an encoder. Tokens are seeded. A broken promise is no
/// Error but a report that has not `passed`; results that are not finite are an Error.
Result<InvariantReport> check_invariance(const Executable& executable, const ModelSpec& spec,
                                         const SelfOptions& options, const SelfLimits& limits = {});

/// Loads and compiles the model, or takes an invariant plan. Errors: a module, another plan.
Result<InvariantReport> verify_invariance(const std::string& path, const SelfOptions& options);

std::string invariant_text(const InvariantReport& report);
/// One object: passed, dtype, device, texts, ways: [{way, calls, tokens, equal, difference}],
/// left_out, seconds.
std::string invariant_json(const InvariantReport& report);

}  // namespace sinter
