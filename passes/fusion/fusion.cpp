#include "passes/fusion/fusion.h"

#include <llvm/ADT/DenseSet.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "kernels/family.h"
#include "kernels/pointers.h"
#include "passes/fusion/horizontal.h"
#include "passes/fusion/judge.h"
#include "passes/fusion/memory_order.h"

namespace sinter {
namespace {

struct Candidate {
  ValueId a, b;        // ops, a before b
  double gain;         // bytes that need not be read or written again
  bool apart = false;  // consumers of one value
};

/// Producer and consumer, and consumers of one value in sequence; by gain, then by op. Of the same
/// gain a producer comes first: with its last consumer its value is not written either.
std::vector<Candidate> candidates(const FusionProblem& problem) {
  const Graph& graph = problem.graph();
  std::vector<Candidate> list;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Members users = problem.users({i});
    const double size = users.empty() ? 0 : problem.bytes({i});
    if (computes(graph.ops()[i]))
      for (ValueId user : users) list.push_back({{i}, user, users.size() == 1 ? 2 * size : size});
    for (size_t k = 1; k < users.size(); ++k) list.push_back({users[k - 1], users[k], size, true});
  }
  std::sort(list.begin(), list.end(), [](const Candidate& x, const Candidate& y) {
    return std::tuple(-x.gain, x.apart, x.a, x.b) < std::tuple(-y.gain, y.apart, y.a, y.b);
  });
  // The same pair may share several values: one question, at its largest gain.
  llvm::DenseSet<std::pair<uint32_t, uint32_t>> asked;
  std::vector<Candidate> once;
  for (const Candidate& candidate : list)
    if (asked.insert({candidate.a.index, candidate.b.index}).second) once.push_back(candidate);
  return once;
}

/// True if no kernel can hold the ops of both groups: the judge would refuse them, now and when
/// they have grown. A library call is no such kernel.
bool too_large_together(const FusionState& state, ValueId a, ValueId b) {
  size_t ops = 0;
  for (ValueId op : {a, b}) {
    const uint32_t group = state.groups.find(op);
    if (state.groups.shape(group).family->kind == KernelFamily::Kind::call) return false;
    ops += state.groups.members(group).size();
  }
  return ops > kMaxOps;
}

/// Asks all candidates, those first that stand first, until nothing changes; what is refused. A
/// refusal may fall when neighbours have merged: candidates of the merged groups are asked again
/// before what follows them, the others when all have been asked. Groups that are too large
/// together are asked about once, at the end, for the reason.
std::vector<LedgerEntry> merge_all(FusionState& state, llvm::ArrayRef<Candidate> candidates,
                                   std::vector<LedgerEntry>& ledger) {
  std::vector<llvm::SmallVector<uint32_t, 4>> of_op(state.problem.graph().size());
  for (uint32_t i = 0; i < candidates.size(); ++i)
    for (ValueId op : {candidates[i].a, candidates[i].b}) of_op[op.index].push_back(i);
  std::map<uint32_t, std::optional<Verdict>> refused;  // of candidates; absent: too large together
  std::set<uint32_t> open;
  for (uint32_t i = 0; i < candidates.size(); ++i) open.insert(i);
  for (bool changed = false; !open.empty();) {
    const uint32_t i = *open.begin();
    open.erase(open.begin());
    refused.erase(i);
    const auto [a, b, gain, apart] = candidates[i];
    Groups& groups = state.groups;
    if (groups.find(a) == groups.find(b)) {
      // They share a kernel already.
    } else if (too_large_together(state, a, b)) {
      refused[i] = std::nullopt;
    } else {
      ++state.statistics.judged;
      Decision decision = judge(state, a, b);
      if (decision.accepted()) {
        groups.merge(decision);
        ++state.statistics.accepted;
        ledger.push_back({a, b, std::move(decision.verdict)});
        changed = true;
        for (ValueId member : groups.members(groups.find(a)))
          for (uint32_t k : of_op[member.index])
            if (const auto at = refused.find(k); at != refused.end() && at->second) open.insert(k);
      } else {
        refused[i] = std::move(decision.verdict);
      }
    }
    if (!open.empty() || !changed) continue;
    for (const auto& [k, verdict] : refused)
      if (verdict) open.insert(k);
    changed = false;
  }
  std::vector<LedgerEntry> entries;
  for (auto& [i, verdict] : refused) {
    const auto [a, b, gain, apart] = candidates[i];
    if (!verdict) {
      ++state.statistics.judged;
      verdict = judge(state, a, b).verdict;
      SINTER_CHECK(!verdict->accepted(), "a kernel of {} and {} is too large",
                   state.problem.name(a), state.problem.name(b));
    }
    entries.push_back({a, b, std::move(*verdict)});
  }
  return entries;
}

/// Joins kernels at the beginning of the entry, level by level: neighbours first, then what came of
/// them, so that a kernel of n parts is priced about log n times.
void fuse_beginnings(HorizontalFusion& horizontal, FusionState& state,
                     std::vector<LedgerEntry>& ledger) {
  const auto merge = [&](ValueId a, ValueId b) {
    std::optional<Decision> decision = horizontal.judge_independent(a, b);
    if (!decision) return false;
    ++state.statistics.judged;
    if (!decision->accepted()) return false;
    horizontal.merge(*decision);
    ++state.statistics.accepted;
    ledger.push_back({a, b, std::move(decision->verdict)});
    return true;
  };
  for (std::vector<ValueId>& level : horizontal.beginnings()) {
    for (bool changed = true; changed;) {
      std::vector<ValueId> joined;
      for (size_t i = 0; i < level.size(); ++i) {
        joined.push_back(level[i]);
        if (i + 1 < level.size() && merge(level[i], level[i + 1])) ++i;
      }
      changed = joined.size() < level.size();
      level = std::move(joined);
    }
  }
  // Without some of the fusions the neighbours are others.
  if (state.allowed)
    for (const auto& [a, b, is_horizontal] : *state.allowed)
      if (is_horizontal) merge(a, b);
}

/// The refusals that remain when kernels of different rows share launches. They are judged in the
/// order of the candidates; a refusal without such a verdict keeps its reason.
std::vector<LedgerEntry> fuse_horizontally(HorizontalFusion& horizontal, FusionState& state,
                                           std::vector<LedgerEntry> refused,
                                           std::vector<LedgerEntry>& ledger) {
  for (LedgerEntry& entry : refused) {
    std::optional<Decision> decision = horizontal.judge(entry.a, entry.b);
    if (!decision) continue;
    ++state.statistics.judged;
    entry.verdict = decision->verdict;
    if (!decision->accepted()) continue;
    horizontal.merge(*decision);
    ++state.statistics.accepted;
    ledger.push_back(entry);
  }
  llvm::erase_if(refused,
                 [&](const LedgerEntry& entry) { return horizontal.together(entry.a, entry.b); });
  return refused;
}

/// The fusions of the options, among those that the engine would make.
std::set<std::tuple<ValueId, ValueId, bool>> chosen(const Fusion& all,
                                                    const FusionOptions& options) {
  std::set<std::tuple<ValueId, ValueId, bool>> fusions;
  int64_t number = 0;
  for (const LedgerEntry& entry : all.ledger) {
    if (!entry.verdict.accepted() || number == options.stop_after) break;
    if (!options.only || std::binary_search(options.only->begin(), options.only->end(),
                                            options.first_number + number))
      fusions.insert({entry.a, entry.b, entry.verdict.reason == Reason::fused_horizontal});
    ++number;
  }
  return fusions;
}

/// Notes what the finished ledger says of two ops and of each group.
void index_ledger(const Fusion& fusion, FusionState& state) {
  for (size_t i = 0; i < fusion.ledger.size(); ++i) {
    const auto& [a, b, verdict] = fusion.ledger[i];
    if (!verdict.accepted())
      state.refusals.try_emplace({std::min(a, b).index, std::max(a, b).index}, i);
    else if (!verdict.detail.empty())
      state.details[fusion.grouping.group_of[a.index]] = i;
  }
}

}  // namespace

Fusion fuse(const Graph& graph, llvm::ArrayRef<Symbol> symbols, const DeviceDescription& device,
            const FusionOptions& options, Families families) {
  auto state = std::make_shared<FusionState>(graph, symbols, device, options, families);
  Fusion fusion;
  if (!options.enabled) {
    fusion.grouping = state->groups.grouping(state->problem);
    fusion.state = state;
    return fusion;
  }
  std::optional<int64_t> possible;
  if (options.only || options.stop_after >= 0) {
    FusionOptions unlimited = options;
    unlimited.only.reset();
    unlimited.stop_after = -1;
    const Fusion all = fuse(graph, symbols, device, unlimited, families);
    state->allowed = chosen(all, options);
    possible = all.statistics.accepted;
  }
  std::vector<Candidate> open;
  for (const auto& [x, y] : options.required) {
    const ValueId a = root_of(graph, graph.find(x)), b = root_of(graph, graph.find(y));
    if (a != b && computes(graph[a]) && computes(graph[b]))
      open.push_back({std::min(a, b), std::max(a, b), 0});
  }
  for (const Candidate& candidate : candidates(state->problem)) open.push_back(candidate);
  std::vector<LedgerEntry> refused = merge_all(*state, open, fusion.ledger);
  HorizontalFusion horizontal(*state);
  fuse_beginnings(horizontal, *state, fusion.ledger);
  refused = fuse_horizontally(horizontal, *state, std::move(refused), fusion.ledger);
  std::sort(refused.begin(), refused.end(), [](const LedgerEntry& x, const LedgerEntry& y) {
    return std::pair(x.a, x.b) < std::pair(y.a, y.b);
  });
  for (LedgerEntry& entry : refused) {
    add_witness(state->groups, entry.a, entry.b, entry.verdict);
    fusion.ledger.push_back(std::move(entry));
  }
  fusion.grouping = memory_order(graph, horizontal.grouping());
  index_ledger(fusion, *state);
  fusion.statistics = state->statistics;
  fusion.statistics.possible = possible.value_or(fusion.statistics.accepted);
  fusion.state = state;
  return fusion;
}

Verdict Fusion::why(ValueId a, ValueId b) const {
  const Graph& graph = state->problem.graph();
  for (ValueId* id : {&a, &b}) {
    const ValueId root = root_of(graph, *id);
    if (!computes(graph[root])) return {Reason::no_kernel, graph[*id].name, {}};
    *id = root;
  }
  if (grouping.group_of[a.index] == grouping.group_of[b.index]) {
    const bool same_rows = state->groups.find(a) == state->groups.find(b);
    Verdict verdict{same_rows ? Reason::fused : Reason::fused_horizontal, "", {}};
    // The verdict from when the kernel grew.
    if (const auto at = state->details.find(grouping.group_of[a.index]); at != state->details.end())
      verdict.detail = ledger[at->second].verdict.detail;
    return verdict;
  }
  if (const auto at = state->refusals.find({std::min(a, b).index, std::max(a, b).index});
      at != state->refusals.end())
    return ledger[at->second].verdict;
  Verdict verdict = judge(*state, a, b).verdict;
  add_witness(state->groups, a, b, verdict);
  // Nothing stands against it, but no value made the engine ask.
  return verdict.accepted() ? Verdict{Reason::no_candidate, "", {}} : verdict;
}

}  // namespace sinter
