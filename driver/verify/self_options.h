// Options of `verify --self`.
#pragma once

#include <functional>

#include "driver/generate/prefill_chunk.h"
#include "driver/verify/parts.h"
#include "driver/verify/self_limits.h"

namespace sinter {

struct SelfOptions {
  std::shared_ptr<Backend> backend;
  OpenOptions open;
  uint64_t seed = 1;             // of the tokens where the model has no tokenizer
  std::optional<int64_t> steps;  // tokens to generate, as far as the positions allow; none: 32
  /// Compile options of the fused plan; the unfused plan has the same passes, device and numerics.
  /// With fast numerics equal bits and tokens are not required, and a model that is too large for
  /// float64 is an error.
  CompileOptions compile;
  std::function<void(const std::string&)> on_stage;  // what begins; may be empty
  PrefillOptions prefill;                            // calls of the text have at most 128 tokens

  void stage(const std::string& text) const {
    if (on_stage) on_stage(text);
  }
};

}  // namespace sinter
