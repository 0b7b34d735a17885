// The judge's check of space: do two groups walk the same rows?
#include <algorithm>

#include "kernels/registry.h"
#include "passes/fusion/judge_checks.h"

namespace sinter {
namespace {

Dims common_prefix(DimsRef a, DimsRef b) {
  Dims prefix;
  for (size_t i = 0; i < std::min(a.size(), b.size()) && a[i] == b[i]; ++i) prefix.push_back(a[i]);
  return prefix;
}

}  // namespace

std::optional<Verdict> checks::space(Question& q) {
  if (auto refusal = stays_alone(q)) return refusal;
  const GroupShape &a = q.first_shape(), &b = q.second_shape();
  GroupShape& m = q.merged;
  const auto differ = [&](DimsRef x, DimsRef y) {
    return refuse(Reason::space_prefix,
                  fmt::format("{} against {}", q.problem.show(x), q.problem.show(y)));
  };
  if (a.row_prefix && b.row_prefix && *a.row_prefix != *b.row_prefix)
    return differ(DimsRef(a.prefix).take_front(*a.row_prefix),
                  DimsRef(b.prefix).take_front(*b.row_prefix));
  m.prefix = common_prefix(a.prefix, b.prefix);
  m.row_prefix = a.row_prefix ? a.row_prefix : b.row_prefix;
  if (m.row_prefix && m.prefix.size() < *m.row_prefix) return differ(a.prefix, b.prefix);
  m.reduced = std::max(a.reduced, b.reduced);
  if (m.prefix.empty() && !m.row_prefix && !(a.prefix.empty() && b.prefix.empty())) {
    // Without a common axis only equal numbers of elements can be walked together.
    const Dims &x = q.problem.facts(q.a).dims, &y = q.problem.facts(q.b).dims;
    if (volume(x) != volume(y)) return differ(x, y);
  }
  m.family = &family_of_rows(
      llvm::to_vector(llvm::map_range(q.members, [&](ValueId id) { return &q.problem.facts(id); })),
      q.problem.families());
  m.rows = row_axes(q.problem, q.members, m);
  return std::nullopt;
}

}  // namespace sinter
