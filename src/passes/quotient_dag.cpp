#include "passes/quotient_dag.h"

#include <algorithm>

#include "ir/fault.h"

namespace sinter {

QuotientDag::QuotientDag(const Graph& graph)
    : op_successors_(graph.size()), op_predecessors_(graph.size()), parent_(graph.size()),
      members_(graph.size()), position_(graph.size()), mark_(graph.size(), 0) {
  const auto connect = [&](uint32_t from, uint32_t to) {
    if (from == to || llvm::is_contained(op_successors_[from], ValueId{to})) return;
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
      const bool is_state = graph[root].kind == OpKind::state || graph[root].kind == OpKind::kv_append;
      if (is_state && op.kind != OpKind::kv_append) state_readers[root.index].push_back(i);
    }
    if (op.kind == OpKind::kv_append && !fault(Fault::missing_state_edge))
      for (uint32_t reader : state_readers[op.operands[0].index]) connect(reader, i);
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

llvm::SmallVector<uint32_t, 8> QuotientDag::neighbours(
    uint32_t group, const std::vector<llvm::SmallVector<ValueId, 2>>& edges) const {
  llvm::SmallVector<uint32_t, 8> result;
  for (ValueId member : members_[group])
    for (ValueId other : edges[member.index]) {
      const uint32_t found = find(other);
      if (found != group && !llvm::is_contained(result, found)) result.push_back(found);
    }
  return result;
}

template <typename Next>
void QuotientDag::reach(uint32_t from, uint32_t bound_low, uint32_t bound_high, uint32_t skip,
                        Next&& next, std::vector<uint32_t>& found) const {
  ++epoch_;
  std::vector<uint32_t> stack{from};
  mark_[from] = epoch_;
  while (!stack.empty()) {
    const uint32_t group = stack.back();
    stack.pop_back();
    for (uint32_t other : next(group)) {
      if (other == skip || mark_[other] == epoch_ || position_[other] <= bound_low ||
          position_[other] >= bound_high)
        continue;
      mark_[other] = epoch_;
      found.push_back(other);
      stack.push_back(other);
    }
  }
}

bool QuotientDag::path_outside(uint32_t a, uint32_t b) const {
  std::vector<uint32_t> found;
  const auto forward = [&](uint32_t group) { return neighbours(group, op_successors_); };
  reach(a, position_[a], position_[b], b, forward, found);
  for (uint32_t group : found)
    if (llvm::is_contained(forward(group), b)) return true;
  return false;
}

std::vector<ValueId> QuotientDag::search(llvm::ArrayRef<ValueId> from,
                                         llvm::ArrayRef<ValueId> to) const {
  // Breadth first over (op, has the path been outside): the parents give a shortest path.
  const uint32_t source = find(from[0]), target = find(to[0]);
  const uint32_t last = position_[target];
  struct State {
    ValueId op;
    bool outside;
    int64_t parent;
  };
  std::vector<State> states;
  std::vector<bool> visited(2 * op_successors_.size(), false);
  const auto visit = [&](ValueId op, bool outside, int64_t parent) {
    const size_t key = 2 * op.index + outside;
    if (visited[key]) return;
    visited[key] = true;
    states.push_back({op, outside, parent});
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
    llvm::SmallVector<ValueId, 8> next(successors(state.op));
    llvm::sort(next);
    for (ValueId op : next) {
      const uint32_t group = find(op);
      if (position_[group] > last) continue;
      visit(op, state.outside || (group != source && group != target), static_cast<int64_t>(i));
    }
  }
  return {};
}

std::vector<ValueId> QuotientDag::witness(ValueId from, ValueId to) const {
  std::vector<ValueId> path = search({from}, {to});
  if (path.empty()) path = search(members_[find(from)], members_[find(to)]);
  return path;
}

uint32_t QuotientDag::merge(uint32_t a, uint32_t b) {
  if (position_[a] > position_[b]) std::swap(a, b);
  const uint32_t low = position_[a], high = position_[b];
  std::vector<uint32_t> after, before;
  reach(a, low, high, b, [&](uint32_t g) { return neighbours(g, op_successors_); }, after);
  reach(b, low, high, a, [&](uint32_t g) { return neighbours(g, op_predecessors_); }, before);
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
