#include "passes/quotient_dag.h"

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
      if (is_state_version(graph[root]) && !writes_state(op))
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

QuotientDag::Reach QuotientDag::reach(uint32_t from, uint32_t to, const Edges& edges, size_t budget,
                                      std::vector<uint32_t>* found) const {
  const auto [low, high] = std::minmax(position_[from], position_[to]);
  ++epoch_;
  mark_[from] = epoch_;
  Reach reach = Reach::nothing;
  std::vector<uint32_t> stack{from};
  while (!stack.empty()) {
    const uint32_t group = stack.back();
    stack.pop_back();
    for (ValueId member : members_[group])
      for (ValueId op : edges[member.index]) {
        if (budget-- == 0) return Reach::unknown;
        const uint32_t other = find(op);
        if (other == to && group != from) {
          reach = Reach::target;
          if (!found) return reach;
        }
        if (mark_[other] == epoch_ || position_[other] <= low || position_[other] >= high) continue;
        mark_[other] = epoch_;
        if (found) found->push_back(other);
        stack.push_back(other);
      }
  }
  return reach;
}

bool QuotientDag::path_outside(uint32_t a, uint32_t b) const {
  // From both ends in turn, ever further: the cost is that of the cheaper end.
  for (size_t budget = 64;; budget *= 2)
    for (bool forward : {true, false}) {
      const Reach result = forward ? reach(a, b, op_successors_, budget, nullptr)
                                   : reach(b, a, op_predecessors_, budget, nullptr);
      if (result != Reach::unknown) return result == Reach::target;
    }
}

bool QuotientDag::depends(uint32_t a, uint32_t b) const {
  if (position_[a] > position_[b]) std::swap(a, b);
  for (ValueId member : members_[a])
    for (ValueId op : op_successors_[member.index])
      if (find(op) == b) return true;
  return path_outside(a, b);
}

std::vector<ValueId> QuotientDag::search(llvm::ArrayRef<ValueId> from, llvm::ArrayRef<ValueId> to,
                                         bool through_groups) const {
  // Breadth first over (op, has the path been outside): the parents give a shortest path. Only
  // groups that lead to the target are worth a visit.
  const uint32_t source = find(from[0]), target = find(to[0]);
  std::vector<uint32_t> between;
  reach(target, source, op_predecessors_, SIZE_MAX, &between);
  const uint32_t on_the_way = epoch_;
  mark_[source] = on_the_way;
  struct State {
    ValueId op;
    bool outside;
    int64_t parent;
  };
  std::vector<State> states;
  visited_.resize(2 * op_successors_.size(), 0);
  const auto visit = [&](ValueId op, bool outside, int64_t parent) {
    uint32_t& visited = visited_[2 * op.index + outside];
    if (visited != on_the_way) states.push_back({op, outside, parent});
    visited = on_the_way;
  };
  for (ValueId op : from) visit(op, false, -1);
  for (size_t i = 0; i < states.size(); ++i) {
    const State state = states[i];
    if (state.outside && llvm::is_contained(to, state.op)) {
      std::vector<ValueId> path;
      for (int64_t at = static_cast<int64_t>(i); at >= 0; at = states[at].parent)
        path.push_back(states[at].op);
      std::reverse(path.begin(), path.end());
      return path;
    }
    const uint32_t own = find(state.op);
    const auto step = [&](ValueId op) {
      const uint32_t group = find(op);
      if (mark_[group] == on_the_way)
        visit(op, state.outside || (group != source && group != target), static_cast<int64_t>(i));
    };
    for (ValueId op : op_successors_[state.op.index]) step(op);
    if (through_groups && own != source && own != target)
      for (ValueId op : members_[own]) step(op);
  }
  return {};
}

std::vector<ValueId> QuotientDag::witness(ValueId from, ValueId to) const {
  const llvm::ArrayRef<ValueId> source = members_[find(from)], target = members_[find(to)];
  std::vector<ValueId> path = search({from}, {to}, false);
  if (path.empty()) path = search(source, target, false);
  if (path.empty()) path = search(source, target, true);
  return path;
}

uint32_t QuotientDag::merge(uint32_t a, uint32_t b) {
  if (position_[a] > position_[b]) std::swap(a, b);
  const uint32_t low = position_[a], high = position_[b];
  std::vector<uint32_t> after, before;
  reach(a, b, op_successors_, SIZE_MAX, &after);
  reach(b, a, op_predecessors_, SIZE_MAX, &before);
  const auto by_position = [&](uint32_t x, uint32_t y) { return position_[x] < position_[y]; };
  std::sort(after.begin(), after.end(), by_position);
  std::sort(before.begin(), before.end(), by_position);
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
