#include "passes/fusion.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "passes/horizontal.h"

namespace sinter {

std::string_view reason_id(Reason reason) {
  switch (reason) {
#define X(name, id, text) \
  case Reason::name:      \
    return id;
    SINTER_REASONS(X)
#undef X
  }
  SINTER_CHECK(false, "reason");
}

std::string_view reason_text(Reason reason) {
  switch (reason) {
#define X(name, id, text) \
  case Reason::name:      \
    return text;
    SINTER_REASONS(X)
#undef X
  }
  SINTER_CHECK(false, "reason");
}

FusionState::FusionState(const Graph& graph, llvm::ArrayRef<Symbol> symbols,
                         const DeviceDescription& device, const FusionOptions& options)
    : graph_(graph),
      symbols_(symbols.begin(), symbols.end()),
      device_(device),
      options_(options),
      facts_(graph.size()),
      users_(graph.size()),
      is_output_(graph.size(), false),
      shapes_(graph.size()),
      dag_(graph) {
  for (ValueId id : graph.outputs) is_output_[root_of(graph, id).index] = true;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    if (!computes(graph.ops()[i])) continue;
    const OpFacts& facts = facts_[i] = op_facts(graph, {i}, symbols);
    for (const Read& read : facts.reads)
      if (auto& users = users_[read.root.index]; users.empty() || users.back() != ValueId{i})
        users.push_back({i});
    GroupShape& shape = shapes_[i];
    shape.prefix = facts.dims;
    shape.closed = facts.closed;
    if (facts.anchor) {
      shape.anchor = ValueId{i};
      shape.prefix.resize(1, Dim(1));
      shape.row_prefix = 1;
      shape.classes = graph[graph.ops()[i].operands[1]].type.dims[0].constant();
    }
    shape.lone = facts.reduces && !facts.kept_axes;
    shape.reduced = facts.reduced_upper_bound;
    if (facts.reduces) {
      shape.row_prefix = facts.kept_axes.value_or(0);
      shape.prefix.resize(*shape.row_prefix, Dim(1));
    }
    shape.rows = row_axes(ValueId{i}, shape);
  }
}

std::string FusionState::show(DimsRef dims) const {
  return to_string(TensorType{DType::f32, Dims(dims)}, symbols_).substr(3);
}

Grouping FusionState::grouping() const {
  Grouping result;
  result.group_of.assign(graph_.size(), UINT32_MAX);
  std::vector<std::pair<uint32_t, uint32_t>> order;  // position, representative
  for (uint32_t i = 0; i < graph_.size(); ++i)
    if (computes(graph_.ops()[i]) && dag_.find({i}) == i) order.push_back({dag_.position(i), i});
  std::sort(order.begin(), order.end());
  for (const auto& [position, representative] : order) {
    const GroupShape& shape = shapes_[representative];
    Group group{llvm::SmallVector<ValueId, 4>(dag_.members(representative)), 0, {}};
    if (shape.lone) {
      const OpFacts& facts = facts_[representative];
      const auto* axes = graph_[{representative}].attrs.find(AttrName::axes);
      group.prefix_rank = static_cast<uint32_t>(
          facts.dims.size() -
          (axes ? std::get<std::vector<int64_t>>(*axes).size() : facts.dims.size()));
    } else if (!shape.closed) {
      group.prefix_rank = shape.rows;
    }
    for (ValueId member : group.members)
      result.group_of[member.index] = static_cast<uint32_t>(result.groups.size());
    result.groups.push_back(std::move(group));
  }
  return result;
}

namespace {

struct Candidate {
  ValueId a, b;  // ops, a before b
  double gain;   // bytes that need not be read or written again
};

/// Producer and consumer, and consumers of one value in sequence; by gain, then by op.
std::vector<Candidate> candidates(const FusionState& state) {
  const Graph& graph = state.graph();
  std::vector<Candidate> list;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const auto& users = state.users()[i];
    const double size = users.empty() ? 0 : state.bytes({i});
    if (computes(graph.ops()[i]))
      for (ValueId user : users) list.push_back({{i}, user, users.size() == 1 ? 2 * size : size});
    for (size_t k = 1; k < users.size(); ++k) list.push_back({users[k - 1], users[k], size});
  }
  std::sort(list.begin(), list.end(), [](const Candidate& x, const Candidate& y) {
    return std::tuple(-x.gain, x.a, x.b) < std::tuple(-y.gain, y.a, y.b);
  });
  // The same pair may share several values: one question, at its largest gain.
  llvm::DenseSet<std::pair<uint32_t, uint32_t>> asked;
  std::vector<Candidate> once;
  for (const Candidate& candidate : list)
    if (asked.insert({candidate.a.index, candidate.b.index}).second) once.push_back(candidate);
  return once;
}

/// Asks all candidates, those first that stand first, until nothing changes; what is refused. A
/// refusal may fall when neighbours have merged: candidates of the merged groups are asked again
/// before what stands behind them, the others when all have been asked.
std::vector<LedgerEntry> merge_all(FusionState& state, llvm::ArrayRef<Candidate> candidates,
                                   std::vector<LedgerEntry>& ledger) {
  llvm::DenseMap<uint32_t, llvm::SmallVector<uint32_t, 4>> of_op;
  for (uint32_t i = 0; i < candidates.size(); ++i)
    for (ValueId op : {candidates[i].a, candidates[i].b}) of_op[op.index].push_back(i);
  std::map<uint32_t, Verdict> refused;  // of candidates
  std::set<uint32_t> open;
  for (uint32_t i = 0; i < candidates.size(); ++i) open.insert(i);
  for (bool changed = false; !open.empty();) {
    const uint32_t i = *open.begin();
    open.erase(open.begin());
    refused.erase(i);
    const auto [a, b, gain] = candidates[i];
    if (state.dag().find(a) != state.dag().find(b)) {
      Verdict verdict = state.judge(a, b);
      if (verdict.accepted()) {
        state.merge(a, b);
        ledger.push_back({a, b, std::move(verdict)});
        changed = true;
        for (ValueId member : state.dag().members(state.dag().find(a)))
          for (uint32_t k : of_op[member.index])
            if (refused.contains(k)) open.insert(k);
      } else {
        refused[i] = std::move(verdict);
      }
    }
    if (!open.empty() || !changed) continue;
    for (const auto& [k, verdict] : refused) open.insert(k);
    changed = false;
  }
  std::vector<LedgerEntry> entries;
  for (auto& [i, verdict] : refused)
    entries.push_back({candidates[i].a, candidates[i].b, std::move(verdict)});
  return entries;
}

/// What is left of the refusals when kernels of different rows share launches, asked in the order
/// of the candidates; the others' reasons stay.
std::vector<LedgerEntry> fuse_horizontally(HorizontalFusion& horizontal, FusionState& state,
                                           std::vector<LedgerEntry> refused,
                                           std::vector<LedgerEntry>& ledger) {
  for (LedgerEntry& entry : refused) {
    std::optional<Verdict> verdict = horizontal.judge(entry.a, entry.b);
    if (!verdict) continue;
    entry.verdict = std::move(*verdict);
    if (!entry.verdict.accepted()) continue;
    horizontal.merge(entry.a, entry.b);
    ++state.accepted;
    ledger.push_back(entry);
  }
  llvm::erase_if(refused,
                 [&](const LedgerEntry& entry) { return horizontal.together(entry.a, entry.b); });
  return refused;
}

}  // namespace

Fusion fuse(const Graph& graph, llvm::ArrayRef<Symbol> symbols, const DeviceDescription& device,
            const FusionOptions& options) {
  auto state = std::make_shared<FusionState>(graph, symbols, device, options);
  Fusion fusion;
  if (!options.enabled) {
    fusion.grouping = state->grouping();
    fusion.state = state;
    return fusion;
  }
  std::vector<Candidate> open;
  for (const auto& [x, y] : options.required) {
    const ValueId a = root_of(graph, graph.find(x)), b = root_of(graph, graph.find(y));
    if (a != b && computes(graph[a]) && computes(graph[b]))
      open.push_back({std::min(a, b), std::max(a, b), 0});
  }
  for (const Candidate& candidate : candidates(*state)) open.push_back(candidate);
  std::vector<LedgerEntry> refused = merge_all(*state, open, fusion.ledger);
  HorizontalFusion horizontal(*state);
  refused = fuse_horizontally(horizontal, *state, std::move(refused), fusion.ledger);
  std::sort(refused.begin(), refused.end(), [](const LedgerEntry& x, const LedgerEntry& y) {
    return std::pair(x.a, x.b) < std::pair(y.a, y.b);
  });
  for (LedgerEntry& entry : refused) {
    state->add_witness(entry.a, entry.b, entry.verdict);
    fusion.ledger.push_back(std::move(entry));
  }
  fusion.grouping = horizontal.grouping();
  fusion.state = state;
  return fusion;
}

Verdict Fusion::why(ValueId a, ValueId b) const {
  const Graph& graph = state->graph();
  for (ValueId* id : {&a, &b}) {
    const ValueId root = root_of(graph, *id);
    if (!computes(graph[root])) return {Reason::no_kernel, graph[*id].name, {}, 0};
    *id = root;
  }
  if (grouping.group_of[a.index] == grouping.group_of[b.index]) {
    const bool same_rows = state->dag().find(a) == state->dag().find(b);
    Verdict verdict{same_rows ? Reason::fused : Reason::fused_horizontal, "", {}, 0};
    for (const LedgerEntry& entry : ledger)  // what there was to say when the kernel grew
      if (entry.verdict.accepted() && !entry.verdict.detail.empty() &&
          grouping.group_of[entry.a.index] == grouping.group_of[a.index])
        verdict.detail = entry.verdict.detail;
    return verdict;
  }
  for (const LedgerEntry& entry : ledger)
    if (!entry.verdict.accepted() &&
        ((entry.a == a && entry.b == b) || (entry.a == b && entry.b == a)))
      return entry.verdict;
  Verdict verdict = state->judge(a, b);
  state->add_witness(a, b, verdict);
  // Nothing stands against it, but no value made the engine ask.
  return verdict.accepted() ? Verdict{Reason::no_candidate, "", {}, 0} : verdict;
}

}  // namespace sinter
