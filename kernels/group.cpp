#include "kernels/group.h"

#include "kernels/family.h"

namespace sinter {

bool GroupShape::closed() const { return !anchor && family->kind != KernelFamily::Kind::rows; }

ValueId GroupView::anchor() const {
  if (shape.anchor) return *shape.anchor;
  const auto at = llvm::find_if(
      members, [&](ValueId id) { return shape.family->computes(problem.graph()[id]); });
  SINTER_CHECK(at != members.end(), "a group of {} without an anchor", shape.family->name);
  return *at;
}

std::optional<Verdict> needs_no_result(const GroupView& group) {
  const FusionProblem& problem = group.problem;
  const ValueId anchor = group.anchor();
  llvm::SmallVector<ValueId, 8> takers = {anchor}, useful;
  llvm::append_range(takers, group.shape.companions);
  for (ValueId member : group.epilogue)
    if (llvm::any_of(problem.facts(member).reads,
                     [&](const Read& read) { return llvm::is_contained(takers, read.root); }))
      takers.push_back(member);
  for (ValueId taker : takers) llvm::append_range(useful, problem.up_to(taker, group.epilogue));
  for (ValueId member : group.epilogue)
    if (!llvm::is_contained(useful, member))
      return refuse(Reason::anchor_other_block,
                    fmt::format("{} does not need {}", problem.name(member), problem.name(anchor)));
  return std::nullopt;
}

}  // namespace sinter
