#include "passes/op_facts.h"

#include <algorithm>

#include "ir/decompose.h"

namespace sinter {
namespace {

/// Pulls the result of an op, as a graph of primitives whose inputs are the op's operands, back to
/// the reads of those operands.
class Puller {
 public:
  Puller(const Graph& graph, const Op& op, const Graph& primitives,
         llvm::ArrayRef<Symbol> symbols, OpFacts& facts)
      : graph_(graph), op_(op), primitives_(primitives), symbols_(symbols), facts_(facts) {}

  void pull(ValueId id, const IndexMap& coords, const Dims& space);

 private:
  void pull_reduce(const Op& op, const IndexMap& coords);
  void read(uint32_t operand, const IndexMap& coords, const Dims& space, bool loaded);

  const Graph& graph_;
  const Op& op_;
  const Graph& primitives_;
  llvm::ArrayRef<Symbol> symbols_;
  OpFacts& facts_;
  struct Visit {
    ValueId id;
    IndexMap coords;
    Dims space;
  };
  llvm::SmallVector<Visit, 16> visited_;
};

void Puller::read(uint32_t operand, const IndexMap& coords, const Dims& space, bool loaded) {
  Read read{root_of(graph_, op_.operands[operand]), {}, space, loaded};
  if (!loaded)
    read.coords = resolve_access(graph_, op_.operands[operand], coords, space).coords;
  facts_.reads.push_back(std::move(read));
}

void Puller::pull_reduce(const Op& op, const IndexMap& coords) {
  const auto& axes = op.attrs.get<std::vector<int64_t>>(AttrName::axes);
  const Dims& dims = primitives_[op.operands[0]].type.dims;
  const auto kept = static_cast<uint32_t>(dims.size() - axes.size());
  const bool trailing = axes.front() == static_cast<int64_t>(kept);
  // A row's reduction serves that row: the kept coordinates are the leading loop variables.
  const IndexMap identity = identity_map(dims.size());
  const bool own_row = std::equal(coords.begin(), coords.begin() + kept, identity.begin());
  if (!trailing || !own_row || (facts_.reduces && facts_.kept_axes != kept))
    facts_.kept_axes.reset();
  else if (!facts_.reduces)
    facts_.kept_axes = kept;
  facts_.reduces = true;
  int64_t elements = volume(DimsRef(dims).drop_front(trailing ? kept : 0)).upper_bound(symbols_);
  facts_.reduced_upper_bound = std::max(facts_.reduced_upper_bound, elements);
  pull(op.operands[0], identity, dims);
}

void Puller::pull(ValueId id, const IndexMap& coords, const Dims& space) {
  for (const Visit& visit : visited_)
    if (visit.id == id && visit.coords == coords && visit.space == space) return;
  visited_.push_back({id, coords, space});
  const Op& op = primitives_[id];
  switch (op_class(op)) {
    case OpClass::leaf: {
      const auto at = llvm::find(primitives_.inputs, id);
      return read(static_cast<uint32_t>(at - primitives_.inputs.begin()), coords, space, false);
    }
    case OpClass::generator: return;
    case OpClass::view: return pull(op.operands[0], through_view(primitives_, id, coords, space), space);
    case OpClass::reduce: return pull_reduce(op, coords);
    case OpClass::gather:
      pull(op.operands[1], {coords[0]}, space);
      return read(0, {}, space, true);
    case OpClass::append:
      read(0, {}, space, true);
      pull(op.operands[1], coords, space);
      return pull(op.operands[2], {coords[0]}, space);
    default: break;
  }
  int64_t begin = 0;  // of a concatenated part
  for (ValueId operand : op.operands) {
    const Dims& dims = primitives_[operand].type.dims;
    if (op.kind == OpKind::concat) {
      const int64_t axis = op.attrs.get<int64_t>(AttrName::axis);
      IndexMap part = coords;
      part[axis] += IndexExpr(SymExpr(0) - SymExpr(begin));
      begin += dims[axis].constant();
      pull(operand, part, space);
    } else {
      pull(operand, broadcast_coords(dims, op.type.dims, coords), space);
    }
  }
}

}  // namespace

OpFacts op_facts(const Graph& graph, ValueId id, llvm::ArrayRef<Symbol> symbols) {
  const Op& op = graph[id];
  OpFacts facts;
  facts.dims = op.kind == OpKind::kv_append ? graph[op.operands[1]].type.dims : op.type.dims;
  if (op_class(op) == OpClass::contraction || op_class(op) == OpClass::opaque) {
    facts.closed = true;
    for (ValueId operand : op.operands)
      facts.reads.push_back({root_of(graph, operand), {}, {}, true});
    return facts;
  }
  Graph primitives;
  Builder builder(primitives, symbols);
  llvm::SmallVector<ValueId, 4> inputs;
  for (ValueId operand : op.operands) inputs.push_back(builder.leaf(OpKind::input, graph[operand].type, ""));
  const ValueId result = op_class(op) == OpClass::composite
                             ? decompose(builder, op.kind, inputs, op.attrs)
                             : builder.op(op.kind, inputs, op.attrs);
  Puller(graph, op, primitives, symbols, facts).pull(result, identity_map(facts.dims.size()), facts.dims);
  return facts;
}

}  // namespace sinter
