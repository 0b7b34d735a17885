#include "passes/fusion/quotient_dag.h"

#include <algorithm>

#include "ir/fault.h"
#include "ir/op_roles.h"

namespace sinter {

QuotientDag::QuotientDag(const Graph& graph)
    : op_successors_(graph.size()),
      op_predecessors_(graph.size()),
      parent_(graph.size()),
      members_(graph.size()),
      position_(graph.size()),
      mark_(graph.size(), 0) {
  const auto connect = [&](uint32_t from, uint32_t to) {
    // Edges come in the order of their ends.
    if (from == to || (!op_successors_[from].empty() && op_successors_[from].back() == ValueId{to}))
      return;
    op_successors_[from].push_back({to});
    op_predecessors_[to].push_back({from});
  };
  std::vector<llvm::SmallVector<uint32_t, 2>> state_readers(graph.size());  // by version
  for (uint32_t i = 0; i < graph.size(); ++i) {
    parent_[i] = position_[i] = i;
    members_[i] = {ValueId{i}};
    const Op& op = graph.ops()[i];
    if (!computes(op)) continue;
    for (ValueId operand : op.operands) {
      const ValueId root = root_of(graph, operand);
      if (computes(graph[root])) connect(root.index, i);
      // An append reads the state that it writes in its own place, and others as any op does.
      if (is_state_version(graph[root]) && operand != operand_with(op, OperandRole::state))
        state_readers[root.index].push_back(i);
    }
    if (writes_state(op) && !fault(Fault::missing_state_edge))
      for (uint32_t reader : state_readers[operand_with(op, OperandRole::state).index])
        connect(reader, i);
  }
}

uint32_t QuotientDag::find(ValueId id) const {
  uint32_t root = id.index;
  while (parent_[root] != root) root = parent_[root];
  for (uint32_t i = id.index; parent_[i] != root;) {
    const uint32_t next = parent_[i];
    parent_[i] = root;
    i = next;
  }
  return root;
}

QuotientDag::Reach QuotientDag::reach(uint32_t from, uint32_t to, const Edges& edges, bool direct,
                                      size_t budget, std::vector<uint32_t>* reached) const {
  const auto [low, high] = std::minmax(position_[from], position_[to]);
  ++epoch_;
  mark_[from] = epoch_;
  // Breadth first: where there is a way, there often is a short one.
  std::vector<uint32_t> groups{from};
  for (size_t i = 0; i < groups.size(); ++i)
    for (ValueId member : members_[groups[i]])
      for (ValueId op : edges[member.index]) {
        if (budget-- == 0) return Reach::unknown;
        const uint32_t other = find(op);
        if (other == to && !reached && (direct || i > 0)) return Reach::target;
        if (mark_[other] == epoch_ || position_[other] <= low || position_[other] >= high) continue;
        mark_[other] = epoch_;
        groups.push_back(other);
      }
  if (reached) reached->assign(groups.begin() + 1, groups.end());
  return Reach::nothing;
}

bool QuotientDag::path(uint32_t a, uint32_t b, bool direct) const {
  // From both ends in turn, ever further: the cheaper end decides the cost.
  for (size_t budget = 64;; budget *= 2)
    for (bool forward : {true, false}) {
      const Reach result = forward ? reach(a, b, op_successors_, direct, budget)
                                   : reach(b, a, op_predecessors_, direct, budget);
      if (result != Reach::unknown) return result == Reach::target;
    }
}

bool QuotientDag::path_outside(uint32_t a, uint32_t b) const { return path(a, b, false); }

bool QuotientDag::depends(uint32_t a, uint32_t b) const {
  if (position_[a] > position_[b]) std::swap(a, b);
  return path(a, b, true);
}

std::vector<uint32_t> QuotientDag::between(uint32_t from, uint32_t to, const Edges& edges) const {
  std::vector<uint32_t> groups;
  reach(from, to, edges, false, SIZE_MAX, &groups);
  llvm::sort(groups, [&](uint32_t x, uint32_t y) { return position_[x] < position_[y]; });
  return groups;
}

struct QuotientDag::PathQuestion {
  llvm::ArrayRef<ValueId> from, to;  // ops, ascending
  uint32_t source, target;           // their groups
  bool through_groups;               // ops of one group follow each other

  bool outside(uint32_t group) const { return group != source && group != target; }
};

template <typename Visit>
void QuotientDag::for_each_neighbour(const PathQuestion& q, ValueId op, const Edges& edges,
                                     Visit visit) const {
  const uint32_t own = find(op), low = position_[q.source], high = position_[q.target];
  const auto on_the_way = [&](ValueId other) {
    const uint32_t position = position_[find(other)];
    return low <= position && position <= high;
  };
  for (ValueId other : edges[op.index])
    if (on_the_way(other) && visit(other, Tie::edge)) return;
  if (q.through_groups && q.outside(own))
    for (ValueId other : members_[own])
      if (visit(other, Tie::group)) return;
}

// Both searches go breadth first over states (op, has the path been outside?), and find the same
// path: of the shortest paths, the one that at each op takes the first neighbour that it can.

std::optional<QuotientDag::Path> QuotientDag::search_forward(const PathQuestion& q,
                                                             size_t budget) const {
  struct State {
    ValueId op;
    bool outside;
    int64_t parent;
  };
  ++epoch_;
  std::vector<State> states;
  const auto visit = [&](ValueId op, bool outside, int64_t parent) {
    uint32_t& visited = visited_[2 * op.index + outside];
    if (visited != epoch_) states.push_back({op, outside, parent});
    visited = epoch_;
  };
  for (ValueId op : q.from) visit(op, false, -1);
  for (size_t i = 0; i < states.size(); ++i) {
    const State state = states[i];
    if (state.outside && llvm::is_contained(q.to, state.op)) {
      Path path;
      for (int64_t at = static_cast<int64_t>(i); at >= 0; at = states[at].parent)
        path.push_back(states[at].op);
      std::reverse(path.begin(), path.end());
      return path;
    }
    for_each_neighbour(q, state.op, op_successors_, [&](ValueId op, Tie) {
      visit(op, state.outside || q.outside(find(op)), static_cast<int64_t>(i));
      return budget == 0 || --budget == 0;
    });
    if (budget == 0) return std::nullopt;
  }
  return Path();
}

std::optional<QuotientDag::Path> QuotientDag::search_backward(const PathQuestion& q,
                                                              size_t budget) const {
  struct State {
    ValueId op;
    bool outside;
  };
  ++epoch_;
  std::vector<State> states;
  const auto visit = [&](ValueId op, bool outside, const Onward& onward) {
    const uint32_t state = 2 * op.index + outside;
    if (visited_[state] != epoch_) {
      visited_[state] = epoch_;
      onward_[state] = onward;
      states.push_back({op, outside});
    } else {
      onward_[state] = std::min(onward_[state], onward);
    }
  };
  for (ValueId op : q.to) visit(op, true, {0, Tie::edge, op});
  for (size_t i = 0; i < states.size(); ++i) {
    const State state = states[i];
    const uint32_t edges = onward_[2 * state.op.index + state.outside].edges;
    if (!state.outside && llvm::is_contained(q.from, state.op)) return follow(q, edges);
    const bool enters = q.outside(find(state.op));
    if (enters && !state.outside) continue;
    for_each_neighbour(q, state.op, op_predecessors_, [&](ValueId op, Tie tie) {
      const Onward onward{edges + 1, tie, state.op};
      if (enters) visit(op, false, onward);
      visit(op, state.outside, onward);
      return budget == 0 || --budget == 0;
    });
    if (budget == 0) return std::nullopt;
  }
  return Path();
}

QuotientDag::Path QuotientDag::follow(const PathQuestion& q, uint32_t edges) const {
  const auto* first = llvm::find_if(q.from, [&](ValueId op) {
    return visited_[2 * op.index] == epoch_ && onward_[2 * op.index].edges == edges;
  });
  Path path{*first};
  for (bool outside = false; edges > 0; --edges) {
    path.push_back(onward_[2 * path.back().index + outside].next);
    outside |= q.outside(find(path.back()));
  }
  return path;
}

QuotientDag::Path QuotientDag::search(llvm::ArrayRef<ValueId> from, llvm::ArrayRef<ValueId> to,
                                      bool through_groups) const {
  visited_.resize(2 * op_successors_.size(), 0);
  onward_.resize(2 * op_successors_.size());
  const PathQuestion question{from, to, find(from[0]), find(to[0]), through_groups};
  for (size_t budget = 64;; budget *= 2) {
    if (auto path = search_backward(question, budget)) return std::move(*path);
    if (auto path = search_forward(question, budget)) return std::move(*path);
  }
}

std::vector<ValueId> QuotientDag::witness(ValueId from, ValueId to) const {
  const llvm::ArrayRef<ValueId> source = members_[find(from)], target = members_[find(to)];
  Path path = search({from}, {to}, false);
  if (path.empty()) path = search(source, target, false);
  if (path.empty()) path = search(source, target, true);
  return path;
}

uint32_t QuotientDag::merge(uint32_t a, uint32_t b) {
  if (position_[a] > position_[b]) std::swap(a, b);
  const uint32_t low = position_[a], high = position_[b];
  const std::vector<uint32_t> after = between(a, b, op_successors_);
  const std::vector<uint32_t> before = between(b, a, op_predecessors_);
  std::vector<uint32_t> places{low, high};
  for (uint32_t group : after) places.push_back(position_[group]);
  for (uint32_t group : before) places.push_back(position_[group]);
  std::sort(places.begin(), places.end());

  parent_[b] = a;
  members_[a].append(members_[b].begin(), members_[b].end());
  llvm::sort(members_[a]);
  members_[b].clear();
  size_t next = 0;
  for (uint32_t group : before) position_[group] = places[next++];
  position_[a] = places[next++];
  for (uint32_t group : after) position_[group] = places[next++];
  return a;
}

}  // namespace sinter
