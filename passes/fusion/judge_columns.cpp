// The judge's checks of kernels of columns. A member is one of
//
// - the reductions, all over one space [outer, reduced, inner];
// - before them: an element for each of the space, computed where a thread walks it;
// - after them: an element for each result, computed when the sums are complete.
//
// A reduction over trailing axes is never with them: its rows are what columns cut apart.
#include "ir/op_roles.h"
#include "passes/fusion/judge_checks.h"

namespace sinter {
namespace {

enum class Side : uint8_t { prologue, reduction, epilogue, neither };

Side side_of(const FusionProblem& problem, const ColumnSpace& space, ValueId id) {
  const Op& op = problem.graph()[id];
  const OpFacts& facts = problem.facts(id);
  if (op_class(op) == OpClass::reduce) return Side::reduction;
  if (same_elements(facts.dims, space.dims)) return Side::prologue;
  return same_elements(facts.dims, space.kept()) ? Side::epilogue : Side::neither;
}

/// True if the read lands on the element of the value that its reader is at.
bool reads_own_element(const FusionProblem& problem, const Read& read) {
  const DimsRef dims = problem.graph()[read.root].type.dims;
  return !read.loaded && volume(dims) == volume(read.space) &&
         linearize(dims, read.coords) == linearize(read.space, identity_map(read.space.size()));
}

}  // namespace

std::optional<Verdict> checks::column_space(Question& q) {
  if (auto refusal = stays_alone(q)) return refusal;
  const GroupShape &a = q.first_shape(), &b = q.second_shape();
  GroupShape& m = q.merged;
  for (const GroupShape* shape : {&a, &b}) {
    if (shape->columns) continue;
    if (shape->row_prefix || shape->anchor)
      return refuse(Reason::space_reduction,
                    q.problem.name(q.groups.members(a.columns ? q.first : q.second)[0]));
  }
  const auto differ = [&](DimsRef x, DimsRef y) {
    return refuse(Reason::space_prefix,
                  fmt::format("{} against {}", q.problem.show(x), q.problem.show(y)));
  };
  if (a.columns && b.columns && !(*a.columns == *b.columns))
    return a.columns->dims == b.columns->dims ? refuse(Reason::space_reduction, q.problem.name(q.b))
                                              : differ(a.columns->dims, b.columns->dims);
  m = a.columns ? a : b;
  m.reduced = std::max(a.reduced, b.reduced);
  for (ValueId id : q.members) {
    if (side_of(q.problem, *m.columns, id) == Side::neither)
      return differ(q.problem.facts(id).dims, m.columns->dims);
    if (op_class(q.problem.graph()[id]) == OpClass::append)
      return refuse(Reason::space_reduction, q.problem.name(id));
  }
  return std::nullopt;
}

std::optional<Verdict> checks::column_port(Question& q) {
  for (ValueId reader : q.members)
    for (const Read& read : q.problem.facts(reader).reads) {
      if (!llvm::is_contained(q.members, read.root)) continue;
      if (read.loaded) return refuse(q.problem, Reason::port_gathered, reader, read.root);
      const bool in_epilogue = side_of(q.problem, *q.merged.columns, reader) == Side::epilogue;
      const bool from_prologue = side_of(q.problem, *q.merged.columns, read.root) == Side::prologue;
      if (in_epilogue == from_prologue || !reads_own_element(q.problem, read))
        return refuse(q.problem, Reason::port_other_element, reader, read.root);
    }
  return std::nullopt;
}

}  // namespace sinter
