#include "passes/fusion/fusion_costs.h"

#include "passes/fusion/fusion_state.h"

namespace sinter {

namespace {

FusionProblem problem_at(const FusionProblem& problem, llvm::ArrayRef<int64_t> sizes,
                         const DeviceDescription* board) {
  if (!board) return problem.at(sizes);
  return FusionProblem(problem.graph(), problem.symbols(), *board, problem.numerics(),
                       problem.families())
      .at(sizes);
}

}  // namespace

FusionCosts::FusionCosts(const Fusion& fusion, llvm::ArrayRef<int64_t> sizes,
                         const DeviceDescription* board)
    : fusion_(fusion), problem_(problem_at(fusion.state->problem, sizes, board)) {}

std::vector<PartView> FusionCosts::parts(const Group& group) const {
  const Groups& groups = fusion_.state->groups;
  std::vector<PartView> parts;
  for (const Group& part :
       group.parts.empty() ? llvm::ArrayRef(group) : llvm::ArrayRef(group.parts))
    parts.push_back({part.members, groups.shape(groups.find(part.members[0]))});
  return parts;
}

double FusionCosts::seconds(const Group& group) const {
  return kernel_seconds(problem_, parts(group));
}

double FusionCosts::seconds() const {
  double sum = 0;
  for (const Group& group : fusion_.grouping.groups) sum += seconds(group);
  return sum;
}

std::vector<GroupMerge> FusionCosts::merges() const {
  std::vector<GroupMerge> merges;
  const size_t size = problem_.graph().size();
  std::vector<uint32_t> group_of(size);
  std::vector<std::vector<ValueId>> members(size);
  for (uint32_t i = 0; i < size; ++i) {
    group_of[i] = i;
    members[i] = {{i}};
  }
  for (size_t i = 0; i < fusion_.ledger.size(); ++i) {
    const LedgerEntry& entry = fusion_.ledger[i];
    if (!entry.verdict.accepted()) continue;
    const uint32_t a = group_of[entry.a.index], b = group_of[entry.b.index];
    GroupMerge merge{i, members[a], std::move(members[b]), 0};
    llvm::append_range(members[a], merge.second);
    llvm::sort(members[a]);
    for (ValueId member : merge.second) group_of[member.index] = a;
    merge.saved_bytes = problem_.traffic(merge.first).total() +
                        problem_.traffic(merge.second).total() -
                        problem_.traffic(members[a]).total();
    merges.push_back(std::move(merge));
  }
  return merges;
}

}  // namespace sinter
