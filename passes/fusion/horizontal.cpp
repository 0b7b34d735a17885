#include "passes/fusion/horizontal.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <cmath>

#include "ir/op_roles.h"
#include "kernels/cost.h"
#include "kernels/pointers.h"
#include "passes/fusion/judge_checks.h"

namespace sinter {
namespace {

// A part costs the compiler a walk over the kernel's other parts.
constexpr size_t kMaxParts = 192;

}  // namespace

HorizontalFusion::HorizontalFusion(const FusionState& state)
    : state_(state), dag_(state.groups.dag()), parts_(state.problem.graph().size()) {
  for (uint32_t i = 0; i < parts_.size(); ++i) parts_[i] = {i};
}

// Readers of one value can run at about the same time: neither waits long for the other's operands.
// A weight says nothing of the time.
bool HorizontalFusion::share_a_value(ValueId a, ValueId b) const {
  const FusionProblem& problem = state_.problem;
  return llvm::any_of(problem.facts(a).reads, [&](const Read& x) {
    return problem.graph()[x.root].kind != OpKind::weight &&
           llvm::any_of(problem.facts(b).reads, [&](const Read& y) { return x.root == y.root; });
  });
}

bool HorizontalFusion::has_rows(uint32_t kernel) const {
  return llvm::all_of(parts_[kernel], [&](uint32_t part) {
    const GroupShape& own = state_.groups.shape(part);
    // Side results of rows take all registers of a block, and their blocks walk many rows.
    return !own.lone && !own.columns && own.family->kind == KernelFamily::Kind::rows &&
           !own.family->side_result;
  });
}

bool HorizontalFusion::reduces(uint32_t kernel) const {
  return llvm::any_of(dag_.members(kernel),
                      [&](ValueId member) { return state_.problem.facts(member).reduces; });
}

std::optional<Decision> HorizontalFusion::judge(ValueId a, ValueId b) const {
  return share_a_value(a, b) ? judge(a, b, kMaxOps) : std::nullopt;
}

std::optional<Decision> HorizontalFusion::judge_independent(ValueId a, ValueId b) const {
  return judge(a, b, SIZE_MAX);
}

std::optional<Decision> HorizontalFusion::judge(ValueId a, ValueId b, size_t most_ops) const {
  const uint32_t x = dag_.find(a), y = dag_.find(b);
  if (x == y || !has_rows(x) || !has_rows(y) || dag_.depends(x, y)) return std::nullopt;
  const Members in_x = dag_.members(x), in_y = dag_.members(y);
  std::optional<Verdict> refusal = constraints(state_, a, b, in_x, in_y, true);
  if (!refusal) refusal = state_conflict(state_.problem, in_x, in_y);
  if (!refusal && (reduces(x) || reduces(y))) {
    // Only a kernel of elements overwrites what it reads.
    refusal = state_conflict(state_.problem, in_x, in_x);
    if (!refusal) refusal = state_conflict(state_.problem, in_y, in_y);
  }
  if (!refusal) refusal = profit(x, y, most_ops);
  Verdict verdict = refusal ? std::move(*refusal) : Verdict{Reason::fused_horizontal, "", {}};
  return Decision{std::move(verdict), x, y, {}, merges_};
}

std::optional<size_t> HorizontalFusion::level(uint32_t kernel,
                                              const std::map<uint32_t, size_t>& before) const {
  const FusionProblem& problem = state_.problem;
  const Graph& graph = problem.graph();
  const DeviceDescription& device = problem.device();
  const auto is_small = [&](ValueId value) {
    return problem.bytes(value) <= device.launch_s * device.memory_bytes_per_s;
  };
  const auto is_replaced = [&](ValueId state) {
    return llvm::any_of(dag_.members(kernel), [&](ValueId member) {
      return replaces_state(graph[member]) &&
             operand_with(graph[member], OperandRole::state) == state;
    });
  };
  if (!has_rows(kernel)) return std::nullopt;
  size_t level = 0;
  for (ValueId member : dag_.members(kernel)) {
    if (op_class(graph[member]) == OpClass::append && !replaces_state(graph[member]))
      return std::nullopt;
    for (const Read& read : problem.facts(member).reads) {
      if (graph[read.root].kind == OpKind::state && !is_replaced(read.root)) return std::nullopt;
      if (!computes(graph[read.root]) || dag_.find(read.root) == kernel) continue;
      const auto at = before.find(dag_.find(read.root));
      if (at == before.end()) return std::nullopt;
      level = std::max(level, at->second + 1);
    }
    const bool leaves = llvm::any_of(problem.users(member),
                                     [&](ValueId user) { return dag_.find(user) != kernel; });
    if (leaves && !is_small(member)) return std::nullopt;
  }
  return level;
}

std::vector<std::vector<ValueId>> HorizontalFusion::beginnings() const {
  const Graph& graph = state_.problem.graph();
  std::vector<std::pair<uint32_t, uint32_t>> kernels;  // position, representative
  for (uint32_t i = 0; i < graph.size(); ++i)
    if (computes(graph.ops()[i]))
      if (const uint32_t kernel = dag_.find({i}); dag_.members(kernel)[0] == ValueId{i})
        kernels.push_back({dag_.position(kernel), kernel});
  std::sort(kernels.begin(), kernels.end());
  std::map<uint32_t, size_t> level_of;
  std::vector<std::vector<ValueId>> levels;
  for (const auto& [position, kernel] : kernels) {
    const std::optional<size_t> own = level(kernel, level_of);
    if (!own) continue;
    level_of[kernel] = *own;
    if (levels.size() <= *own) levels.resize(*own + 1);
    levels[*own].push_back(dag_.members(kernel)[0]);
  }
  for (std::vector<ValueId>& one : levels) std::sort(one.begin(), one.end());
  return levels;
}

double HorizontalFusion::seconds(llvm::ArrayRef<uint32_t> parts) const {
  llvm::SmallVector<PartView, 4> views;
  for (uint32_t part : parts)
    views.push_back({state_.groups.members(part), state_.groups.shape(part)});
  return kernel_seconds(state_.problem, views);
}

std::optional<Verdict> HorizontalFusion::profit(uint32_t x, uint32_t y, size_t most_ops) const {
  llvm::SmallVector<uint32_t, 4> parts(parts_[x].begin(), parts_[x].end());
  parts.append(parts_[y].begin(), parts_[y].end());
  const size_t held =
      pointers(state_.problem, dag_.members(x)) + pointers(state_.problem, dag_.members(y));
  const size_t ops = dag_.members(x).size() + dag_.members(y).size();
  const bool is_too_large = ops > most_ops || held > kMaxParameters || parts.size() > kMaxParts;
  const double together = is_too_large ? INFINITY : seconds(parts);
  if (std::isinf(together))
    return refuse(Reason::profit_configuration,
                  fmt::format("{} parts, {} ops, {} pointers", parts.size(), ops, held));
  return slower(together, seconds(parts_[x]) + seconds(parts_[y]));
}

void HorizontalFusion::merge(const Decision& decision) {
  SINTER_CHECK(decision.verdict.reason == Reason::fused_horizontal && decision.merges == merges_,
               "a decision of {} merges after {}: {}", decision.merges, merges_,
               reason_id(decision.verdict.reason));
  uint32_t x = decision.first, y = decision.second;
  if (dag_.members(x)[0] > dag_.members(y)[0]) std::swap(x, y);
  llvm::SmallVector<uint32_t, 1> parts = std::move(parts_[x]);
  parts.append(parts_[y].begin(), parts_[y].end());
  parts_[dag_.merge(x, y)] = std::move(parts);
  ++merges_;
}

Grouping HorizontalFusion::grouping() const {
  Grouping rows = state_.groups.grouping(state_.problem), result;
  result.group_of.assign(rows.group_of.size(), UINT32_MAX);
  std::vector<std::pair<uint32_t, uint32_t>> order;  // position, representative
  for (const Group& group : rows.groups) {
    const uint32_t kernel = dag_.find(group.members[0]);
    if (dag_.members(kernel)[0] == group.members[0])
      order.push_back({dag_.position(kernel), kernel});
  }
  std::sort(order.begin(), order.end());
  for (const auto& [position, kernel] : order) {
    Group group{llvm::SmallVector<ValueId, 4>(dag_.members(kernel)), 0, {}};
    for (uint32_t part : parts_[kernel])
      group.parts.push_back(std::move(rows.groups[rows.group_of[part]]));
    if (group.parts.size() == 1) group = Group(std::move(group.parts[0]));
    for (ValueId member : group.members)
      result.group_of[member.index] = static_cast<uint32_t>(result.groups.size());
    result.groups.push_back(std::move(group));
  }
  return result;
}

}  // namespace sinter
