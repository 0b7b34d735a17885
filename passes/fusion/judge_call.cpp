// The judge's checks of library calls: which ops a call may do beside its anchor.
//
//   %p = linear %x, %w, %b        one call: C = gelu_tanh(A B + b)
//   %y = gelu_tanh %p
#include "passes/fusion/judge_checks.h"

namespace sinter {

std::optional<ValueId> library_call(const Question& q) {
  // Where no call does more than its anchor, the two ops are what could have been one.
  const ValueId pair[] = {std::min(q.a, q.b), std::max(q.a, q.b)};
  const bool strict = q.problem.numerics() == Numerics::strict;
  const Members members = strict ? Members(pair) : Members(q.members);
  for (const KernelFamily* family : q.problem.families()) {
    if (!family->call_of) continue;
    if (const auto anchor = family->call_of(q.problem, members)) return anchor;
  }
  return std::nullopt;
}

std::optional<Verdict> checks::call(Question& q) {
  q.merged = q.groups.shape(q.groups.find(*q.call));
  return std::nullopt;
}

std::optional<Verdict> checks::numerics(Question& q) {
  if (q.problem.numerics() != Numerics::strict) return std::nullopt;
  return refuse(Reason::numerics_strict,
                fmt::format("in the call of {}", q.problem.name(std::min(q.a, q.b))));
}

}  // namespace sinter
