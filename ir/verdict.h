// The answer to "may these share a kernel?": what the engine branches on, files and prints.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace sinter {

/// id, what it means for a person; the verdict's detail follows the sentence. Two reasons may have
/// one id: programs treat them alike, people read the sentence that fits.
#define SINTER_REASONS(X)                                                                      \
  X(fused, "fused", "they share a kernel")                                                     \
  X(fused_horizontal, "fused.horizontal", "they share a kernel, each in blocks of its own")    \
  X(space_prefix, "space.prefix", "their rows differ")                                         \
  X(space_reduction, "space.reduction", "a reduction runs over axes that are not a row's own") \
  X(port_closed, "port.closed",                                                                \
    "this kernel has no fusion port there: the value goes through memory")                     \
  X(port_of_call, "port.closed", "a library call: its inputs and outputs go through memory")   \
  X(port_other_element, "port.other_element",                                                  \
    "one reads elements that the other's threads do not hold")                                 \
  X(port_gathered, "port.gathered",                                                            \
    "one reads the other at places that are known only at run time")                           \
  X(state_version, "state.version", "one writes the state that the other reads")               \
  X(anchor_second, "anchor.second", "a kernel is built around one product")                    \
  X(anchor_other_block, "anchor.other_block",                                                  \
    "the epilogue of a block has the sums of its own rows alone")                              \
  X(convexity_path, "convexity.path", "a path leaves the kernel and comes back")               \
  X(numerics_strict, "numerics.strict", "only fast numerics allow it")                         \
  X(profit_configuration, "profit.configuration", "no kernel configuration fits the device")   \
  X(profit_slower, "profit.slower", "apart they are faster")                                   \
  X(forbidden, "constraint.forbidden", "the caller forbids it")                                \
  X(stopped, "constraint.stopped", "the engine was told to stop before it")                    \
  X(no_candidate, "candidate.none", "they share no value")                                     \
  X(no_kernel, "candidate.no_kernel", "it needs no kernel: it is a way of reading another value")

enum class Reason : uint8_t {
#define X(name, id, text) name,
  SINTER_REASONS(X)
#undef X
};
std::string_view reason_id(Reason reason);
std::string_view reason_text(Reason reason);

struct Verdict {
  Reason reason = Reason::fused;
  std::string detail;         // the values that decided, e.g. "rows [N] and [M]"
  std::vector<ValueId> path;  // convexity: from one to the other through what stands between

  bool accepted() const { return reason == Reason::fused || reason == Reason::fused_horizontal; }
};

/// A refusal without a path.
inline Verdict refuse(Reason reason, std::string detail) { return {reason, std::move(detail), {}}; }

}  // namespace sinter
