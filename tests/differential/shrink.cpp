#include "differential/shrink.h"

#include <algorithm>
#include <optional>
#include <set>

#include "ir/infer.h"
#include "ir/verifier.h"

namespace sinter {
namespace {

Graph& graph_of(Case& test) { return test.module.entries[0].graph; }

/// Ops, inputs, weights and states that nothing needs go.
void sweep(Case& test) {
  Graph& graph = graph_of(test);
  std::set<ValueId> used(graph.outputs.begin(), graph.outputs.end());
  for (const Op& op : graph.ops()) used.insert(op.operands.begin(), op.operands.end());
  llvm::erase_if(graph.inputs, [&](ValueId id) { return !used.contains(id); });
  for (uint32_t i = 0; i < graph.size(); ++i)  // an input that is none any more would be invalid
    if (graph[ValueId{i}].kind == OpKind::input && !used.contains(ValueId{i}))
      graph[ValueId{i}] = Op{OpKind::constant,
                             {DType::f32, {}},
                             {},
                             Attributes()
                                 .set(AttrName::dims, Dims())
                                 .set(AttrName::dtype, DType::f32)
                                 .set(AttrName::value, 0.0),
                             graph[ValueId{i}].name};
  remove_dead_ops(graph);
  const auto unused = [&](const auto& leaf) { return !graph.find(leaf.name).valid(); };
  std::erase_if(test.module.weights, unused);
  std::erase_if(test.module.states, unused);
}

void redirect(Graph& graph, ValueId from, ValueId to) {
  for (Op& op : graph.mutable_ops())
    for (ValueId& operand : op.operands)
      if (operand == from) operand = to;
  for (ValueId& output : graph.outputs)
    if (output == from) output = to;
}

/// The op's value comes from outside instead.
std::optional<Case> without_op(const Case& test, ValueId id) {
  Case smaller = test;
  Graph& graph = graph_of(smaller);
  Op& op = graph[id];
  if (op.kind == OpKind::kv_append) {
    redirect(graph, id, op.operands[0]);
    // The write itself is an effect: it becomes a view without readers.
    op.kind = OpKind::reshape;
    op.operands.resize(1);
    op.attrs = Attributes().set(AttrName::dims, op.type.dims);
    sweep(smaller);
    return smaller;
  }
  if (op_class(op) == OpClass::leaf) return std::nullopt;
  op.kind = OpKind::input;
  op.operands.clear();
  op.attrs = {};
  graph.inputs.push_back(id);
  sweep(smaller);
  return smaller;
}

/// Readers of the op read one of its operands.
std::optional<Case> bypassed(const Case& test, ValueId id, size_t operand) {
  const Graph& graph = test.module.entries[0].graph;
  if (operand >= graph[id].operands.size() || graph[id].kind == OpKind::kv_append)
    return std::nullopt;
  const ValueId to = graph[id].operands[operand];
  if (graph[to].type != graph[id].type) return std::nullopt;
  Case smaller = test;
  redirect(graph_of(smaller), id, to);
  sweep(smaller);
  return smaller;
}

void replace(Dims& dims, Dim from, Dim to) { std::replace(dims.begin(), dims.end(), from, to); }

bool infer_again(Graph& graph, llvm::ArrayRef<Symbol> symbols) {
  for (Op& op : graph.mutable_ops()) {
    if (op_class(op) == OpClass::leaf) continue;
    llvm::SmallVector<TensorType, 3> types;
    for (ValueId id : op.operands) types.push_back(graph[id].type);
    auto type = infer_type(op.kind, types, op.attrs, symbols);
    if (!type) return false;
    op.type = std::move(*type);
  }
  return true;
}

void replace_extent(Graph& graph, Dim from, Dim to) {
  for (Op& op : graph.mutable_ops()) {
    if (op_class(op) == OpClass::leaf) replace(op.type.dims, from, to);
    Attributes attrs = op.attrs;
    for (const auto& [name, value] : op.attrs) {
      AttrValue changed = value;
      if (auto* dims = std::get_if<Dims>(&changed)) replace(*dims, from, to);
      if (auto* dim = std::get_if<Dim>(&changed); dim && *dim == from) *dim = to;
      attrs.set(name, std::move(changed));
    }
    op.attrs = std::move(attrs);
  }
}

/// Every extent `from` is `to`.
std::optional<Case> with_extent(const Case& test, Dim from, Dim to) {
  Case smaller = test;
  replace_extent(graph_of(smaller), from, to);
  if (!infer_again(graph_of(smaller), smaller.module.symbols)) return std::nullopt;
  for (Weight& weight : smaller.module.weights) {
    replace(weight.type.dims, from, to);
    replace_extent(weight.init, from, to);
    if (!infer_again(weight.init, smaller.module.symbols)) return std::nullopt;
  }
  for (State& state : smaller.module.states) replace(state.type.dims, from, to);
  return smaller;
}

class Shrinker {
 public:
  Shrinker(Case test, int tries, const std::function<bool(const Case&)>& fails)
      : test_(std::move(test)), tries_(tries), fails_(fails) {}

  Case run() {
    size_t before = SIZE_MAX;
    while (tries_ > 0 && cost() < before) {
      before = cost();
      drop_outputs();
      drop_ops();
      shrink_extents();
    }
    return std::move(test_);
  }

 private:
  /// Ops weigh more than elements.
  size_t cost() const {
    const Graph& graph = test_.module.entries[0].graph;
    size_t cost = 1000 * (graph.size() + graph.outputs.size());
    for (int64_t value : test_.symbol_values) cost += static_cast<size_t>(value);
    for (const Op& op : graph.ops())
      for (Dim dim : op.type.dims)
        cost += dim.is_constant() ? static_cast<size_t>(dim.constant()) : 1;
    return cost;
  }

  bool accept(std::optional<Case> smaller) {
    if (!smaller || tries_ <= 0 || graph_of(*smaller).outputs.empty() || !verify(smaller->module) ||
        !check_symbol_values(smaller->module.symbols, smaller->symbol_values))
      return false;
    --tries_;
    if (!fails_(*smaller)) return false;
    test_ = std::move(*smaller);
    return true;
  }

  void drop_outputs() {
    const size_t count = graph_of(test_).outputs.size();
    for (size_t i = 0; i < count && count > 1; ++i) {
      Case smaller = test_;
      graph_of(smaller).outputs = {graph_of(test_).outputs[i]};
      sweep(smaller);
      if (accept(std::move(smaller))) return;
    }
    for (size_t i = count; i-- > 0 && graph_of(test_).outputs.size() > 1;) {
      Case smaller = test_;
      graph_of(smaller).outputs.erase(graph_of(smaller).outputs.begin() + i);
      sweep(smaller);
      accept(std::move(smaller));
    }
  }

  void drop_ops() {
    // From the end; every success renumbers, so that the position is only a place to go on from.
    for (size_t i = graph_of(test_).size(); i-- > 0;) {
      if (i >= graph_of(test_).size()) continue;
      const ValueId id{static_cast<uint32_t>(i)};
      bool done = false;
      for (size_t operand = 0; operand < 3 && !done; ++operand)
        done = accept(bypassed(test_, id, operand));
      if (!done) accept(without_op(test_, id));
    }
  }

  void shrink_extents() {
    std::set<Dim> extents;
    for (const Op& op : graph_of(test_).ops())
      extents.insert(op.type.dims.begin(), op.type.dims.end());
    for (Dim dim : extents) {
      if (!dim.is_constant()) {
        const int64_t value = test_.symbol_values[dim.symbol().index];
        accept(with_extent(test_, dim, Dim(value)));
        continue;
      }
      for (int64_t n = dim.constant(); n > 1 && accept(with_extent(test_, Dim(n), Dim(n / 2)));
           n /= 2) {
      }
    }
    for (size_t i = 0; i < test_.symbol_values.size(); ++i)
      for (bool smaller = true; smaller && test_.symbol_values[i] > 1;) {
        const Symbol& symbol = test_.module.symbols[i];
        Case halved = test_;
        halved.symbol_values[i] = test_.symbol_values[i] / 2 / symbol.multiple * symbol.multiple;
        smaller = halved.symbol_values[i] >= symbol.low && accept(std::move(halved));
      }
  }

  Case test_;
  int tries_;
  const std::function<bool(const Case&)>& fails_;
};

}  // namespace

Case shrink(Case test, int tries, const std::function<bool(const Case&)>& fails) {
  return Shrinker(std::move(test), tries, fails).run();
}

}  // namespace sinter
