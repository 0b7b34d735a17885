#include "passes/fusion/group_shape.h"

#include "kernels/registry.h"

namespace sinter {
namespace {

/// The rows of a kernel around `id` are the rows of its first operand that neighbours may join,
/// else its result's rows. A kernel that takes no neighbours may have companions.
void add_anchor(const FusionProblem& problem, ValueId id, GroupShape& shape) {
  const Ports ports = problem.ports(id);
  if (!ports.any_open() && !shape.family->is_companion) return;
  shape.anchor = id;
  shape.max_blocks = ports.max_blocks;
  const auto open =
      llvm::find_if(ports.operands, [](const auto& place) { return is_open(place.port); });
  const size_t k = open - ports.operands.begin();
  const uint32_t axes = k < ports.operands.size() ? open->row_axes : ports.result.row_axes;
  shape.prefix = k < ports.operands.size() ? problem.facts(id).reads[k].space : shape.prefix;
  shape.prefix.resize(axes, Dim(1));
  shape.row_prefix = axes;
}

}  // namespace

GroupShape shape_of(const FusionProblem& problem, ValueId id) {
  const OpFacts& facts = problem.facts(id);
  GroupShape shape;
  shape.prefix = facts.dims;
  shape.family = problem.family(id);
  if (shape.family)
    add_anchor(problem, id, shape);
  else
    shape.family = &family_of_rows({&facts}, problem.families());
  shape.columns = facts.columns;
  shape.lone = facts.reduces && !facts.kept_axes && !shape.columns;
  shape.reduced = facts.reduced_upper_bound;
  if (facts.reduces) {
    shape.row_prefix = facts.kept_axes.value_or(0);
    shape.prefix.resize(*shape.row_prefix, Dim(1));
  }
  shape.rows = row_axes(problem, id, shape);
  return shape;
}

uint32_t row_axes(const FusionProblem& problem, Members members, const GroupShape& shape) {
  if (shape.row_prefix) return *shape.row_prefix;
  // Elementwise groups may cut their space anywhere in the shared axes: rows as short as they can
  // be while still worth a few vector accesses.
  constexpr double kMinWidth = 256;  // elements
  auto rows = static_cast<uint32_t>(shape.prefix.size());
  const auto narrow = [&](ValueId id) {
    double width = 1;
    for (Dim dim : DimsRef(problem.facts(id).dims).drop_front(rows)) width *= problem.extent(dim);
    return width < kMinWidth;
  };
  while (rows > 0 && llvm::all_of(members, narrow)) --rows;
  return rows;
}

}  // namespace sinter
