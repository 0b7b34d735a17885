// The judge's checks of a library call: which ops it may do beside its product.
//
//   %p = linear %x, %w, %b        one call: C = gelu_tanh(A B + b)
//   %y = gelu_tanh %p
#include "passes/judge_checks.h"

namespace sinter {

std::optional<ProductEpilogue> library_call(const Question& q) {
  // Where no call does more than its product, the two ops are what could have been one.
  const ValueId pair[] = {std::min(q.a, q.b), std::max(q.a, q.b)};
  const bool strict = q.problem.options().numerics == Numerics::strict;
  const Members members = strict ? Members(pair) : Members(q.members);
  const std::optional<ProductEpilogue> epilogue = product_epilogue(q.problem.graph(), members);
  if (!epilogue) return std::nullopt;
  // The call stores its last value alone.
  for (ValueId member : members)
    if (member != epilogue->result && q.problem.read_outside(member, members)) return std::nullopt;
  return epilogue;
}

std::optional<Verdict> checks::call(Question& q) {
  q.merged = q.groups.shape(q.groups.find(q.call->product));
  return std::nullopt;
}

std::optional<Verdict> checks::numerics(Question& q) {
  if (q.problem.options().numerics != Numerics::strict) return std::nullopt;
  return refuse(Reason::numerics_strict,
                fmt::format("in the call of {}", q.problem.name(std::min(q.a, q.b))));
}

}  // namespace sinter
