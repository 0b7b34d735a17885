// Changes that would let two values share a kernel.
#pragma once

#include <memory>

#include "driver/compile/compile.h"

namespace sinter {

/// Answers for the refusals of one compilation. What an answer claims of another numerics, another
/// entry or other sizes was asked of the fusion engine.
class Changes {
 public:
  /// Keeps a reference to `compiled`.
  explicit Changes(const Compiled& compiled);
  ~Changes();

  /// The change that would lift this refusal in entry `entry`; a sentence without a full stop.
  std::string text(size_t entry, ValueId a, ValueId b, const Verdict& refusal) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sinter
