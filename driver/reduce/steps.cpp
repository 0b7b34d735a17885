#include "driver/reduce/steps.h"

#include <algorithm>
#include <set>

#include "ir/infer.h"
#include "ir/op_roles.h"

namespace sinter::reduction {
namespace {

Op constant_op(const TensorType& type, std::string name, double value) {
  Op op{OpKind::constant, type, {}, {}, std::move(name)};
  op.attrs.set(AttrName::dims, type.dims)
      .set(AttrName::dtype, type.dtype)
      .set(AttrName::value, value);
  return op;
}

void redirect_readers(Graph& graph, ValueId from, ValueId to) {
  for (Op& op : graph.mutable_ops()) std::replace(op.operands.begin(), op.operands.end(), from, to);
  std::replace(graph.outputs.begin(), graph.outputs.end(), from, to);
}

/// Readers of the state's new version read `to`. The write is an effect, which would stay: it
/// becomes a view without readers.
void drop_write(Graph& graph, ValueId id, ValueId to) {
  redirect_readers(graph, id, to);
  Op& op = graph[id];
  op.operands = {operand_with(op, OperandRole::state)};
  op.kind = OpKind::reshape;
  op.attrs = Attributes().set(AttrName::dims, op.type.dims);
}

void sweep_graph(Graph& graph) {
  std::set<ValueId> used(graph.outputs.begin(), graph.outputs.end());
  for (const Op& op : graph.ops()) used.insert(op.operands.begin(), op.operands.end());
  llvm::erase_if(graph.inputs, [&](ValueId id) { return !used.contains(id); });
  // remove_dead_ops keeps inputs: one that nothing reads becomes an op that it removes.
  for (uint32_t i = 0; i < graph.size(); ++i)
    if (Op& op = graph[ValueId{i}]; op.kind == OpKind::input && !used.contains(ValueId{i}))
      op = constant_op({}, op.name, 0);
  remove_dead_ops(graph);
}

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

/// Changes all types of a module's leaves and all attributes, and infers the other types again.
template <typename ChangeType, typename ChangeAttribute>
std::optional<Reducible> with_types(const Reducible& from, const ChangeType& change_type,
                                    const ChangeAttribute& change_attribute) {
  Reducible smaller = from;
  Module& module = smaller.module;
  const auto change_graph = [&](Graph& graph) {
    for (Op& op : graph.mutable_ops()) {
      if (op_class(op) == OpClass::leaf) change_type(op.type);
      Attributes attrs = op.attrs;
      for (const auto& [name, value] : op.attrs) {
        AttrValue changed = value;
        change_attribute(changed);
        attrs.set(name, std::move(changed));
      }
      op.attrs = std::move(attrs);
    }
    return infer_again(graph, module.symbols);
  };
  for (Weight& weight : module.weights) {
    change_type(weight.type);
    if (!change_graph(weight.init)) return std::nullopt;
  }
  for (State& state : module.states) change_type(state.type);
  for (Entry& entry : module.entries)
    if (!change_graph(entry.graph)) return std::nullopt;
  return smaller;
}

/// A type, an attribute, a bound of another symbol or a variant's range has the symbol.
bool uses(const Module& module, SymbolId symbol) {
  const Dim wanted(symbol);
  const auto in_graph = [&](const Graph& graph) {
    return llvm::any_of(graph.ops(), [&](const Op& op) {
      return llvm::is_contained(op.type.dims, wanted) ||
             llvm::any_of(op.attrs, [&](const auto& attribute) {
               const AttrValue& value = attribute.second;
               const auto* dims = std::get_if<Dims>(&value);
               const auto* dim = std::get_if<Dim>(&value);
               return (dims && llvm::is_contained(*dims, wanted)) || (dim && *dim == wanted);
             });
    });
  };
  return llvm::any_of(module.symbols,
                      [&](const Symbol& other) { return other.at_most == symbol; }) ||
         llvm::any_of(module.states,
                      [&](const State& s) { return llvm::is_contained(s.type.dims, wanted); }) ||
         llvm::any_of(module.entries, [&](const Entry& entry) {
           return (entry.range && entry.range->symbol == symbol) || in_graph(entry.graph);
         });
}

}  // namespace

void sweep(Module& module) {
  for (Entry& entry : module.entries) sweep_graph(entry.graph);
  const auto unused = [&](const auto& leaf) {
    return llvm::none_of(module.entries,
                         [&](const Entry& entry) { return entry.graph.find(leaf.name).valid(); });
  };
  std::erase_if(module.weights, unused);
  std::erase_if(module.states, unused);
}

std::optional<Reducible> without_entry(const Reducible& from, std::string_view name) {
  Reducible smaller = from;
  std::erase_if(smaller.module.entries, [&](const Entry& entry) { return entry.name == name; });
  if (smaller.module.entries.empty()) return std::nullopt;
  sweep(smaller.module);
  return smaller;
}

std::optional<Reducible> with_one_variant(const Reducible& from, size_t entry) {
  if (!from.module.entries[entry].range) return std::nullopt;
  Reducible smaller = from;
  Entry kept = smaller.module.entries[entry];
  kept.range.reset();
  std::vector<Entry> entries;
  for (size_t i = 0; i < from.module.entries.size(); ++i)
    if (i == entry)
      entries.push_back(kept);
    else if (from.module.entries[i].name != kept.name)
      entries.push_back(from.module.entries[i]);
  smaller.module.entries = std::move(entries);
  sweep(smaller.module);
  return smaller;
}

Reducible with_outputs(const Reducible& from, size_t entry, llvm::ArrayRef<ValueId> outputs) {
  Reducible smaller = from;
  Entry& changed = smaller.module.entries[entry];
  changed.graph.outputs.assign(outputs.begin(), outputs.end());
  changed.output_names.clear();
  sweep(smaller.module);
  return smaller;
}

std::optional<Reducible> without_ops(const Reducible& from, size_t entry, uint32_t first,
                                     uint32_t last) {
  Reducible smaller = from;
  Graph& graph = smaller.module.entries[entry].graph;
  bool changed = false;
  for (uint32_t i = first; i < last; ++i) {
    const ValueId id{i};
    Op& op = graph[id];
    if (writes_state(op)) {
      drop_write(graph, id, operand_with(op, OperandRole::state));
    } else if (op.kind != OpKind::input && op.kind != OpKind::state) {
      op = Op{OpKind::input, op.type, {}, {}, op.name};
      graph.inputs.push_back(id);
    } else {
      continue;
    }
    changed = true;
  }
  if (!changed) return std::nullopt;
  sweep(smaller.module);
  return smaller;
}

std::optional<Reducible> bypassed(const Reducible& from, size_t entry, ValueId op, size_t operand) {
  const Graph& graph = from.module.entries[entry].graph;
  if (operand >= graph[op].operands.size()) return std::nullopt;
  const ValueId to = graph[op].operands[operand];
  if (graph[to].type != graph[op].type) return std::nullopt;
  Reducible smaller = from;
  Graph& changed = smaller.module.entries[entry].graph;
  if (writes_state(graph[op]))
    drop_write(changed, op, to);
  else
    redirect_readers(changed, op, to);
  sweep(smaller.module);
  return smaller;
}

std::optional<Reducible> without_last_operand(const Reducible& from, size_t entry, ValueId op) {
  const Op& was = from.module.entries[entry].graph[op];
  if (static_cast<int>(was.operands.size()) <= op_info(was.kind).min_operands) return std::nullopt;
  Reducible smaller = from;
  smaller.module.entries[entry].graph[op].operands.pop_back();
  sweep(smaller.module);
  return smaller;
}

std::optional<Reducible> with_constant(const Reducible& from, size_t entry, ValueId id,
                                       double value) {
  const Op& was = from.module.entries[entry].graph[id];
  if (was.kind == OpKind::constant || is_state_version(was)) return std::nullopt;
  Reducible smaller = from;
  Graph& graph = smaller.module.entries[entry].graph;
  llvm::erase_if(graph.inputs, [&](ValueId input) { return input == id; });
  graph[id] = constant_op(was.type, was.name, value);
  sweep(smaller.module);
  return smaller;
}

std::optional<Reducible> with_constant_weight(const Reducible& from, size_t weight) {
  if (from.module.weights[weight].init.size() == 1) return std::nullopt;
  Reducible smaller = from;
  Weight& changed = smaller.module.weights[weight];
  changed.init = Graph();
  changed.init.outputs = {changed.init.add(constant_op(changed.type, changed.name, 1))};
  return smaller;
}

std::optional<Reducible> with_extent(const Reducible& from, Dim was, Dim now) {
  const auto change = [&](Dims& dims) { std::replace(dims.begin(), dims.end(), was, now); };
  return with_types(
      from, [&](TensorType& type) { change(type.dims); },
      [&](AttrValue& value) {
        if (auto* dims = std::get_if<Dims>(&value)) change(*dims);
        if (auto* dim = std::get_if<Dim>(&value); dim && *dim == was) *dim = now;
      });
}

std::optional<Reducible> with_high(const Reducible& from, size_t symbol, int64_t high) {
  Reducible smaller = from;
  Symbol& changed = smaller.module.symbols[symbol];
  if (high < changed.low || high >= changed.high) return std::nullopt;
  changed.high = high;
  if (!from.symbol_values.empty() && from.symbol_values[symbol] > high) return std::nullopt;
  return smaller;
}

std::optional<Reducible> without_symbol(const Reducible& from, uint32_t symbol) {
  if (uses(from.module, SymbolId{symbol})) return std::nullopt;
  const auto move = [&](Dim& dim) {
    if (!dim.is_constant() && dim.symbol().index > symbol)
      dim = Dim(SymbolId{dim.symbol().index - 1});
  };
  const auto move_all = [&](Dims& dims) {
    for (Dim& dim : dims) move(dim);
  };
  Reducible start = from;
  std::vector<Symbol>& symbols = start.module.symbols;
  symbols.erase(symbols.begin() + symbol);
  for (Symbol& other : symbols)
    if (other.at_most && other.at_most->index > symbol) --other.at_most->index;
  for (Entry& entry : start.module.entries)
    if (entry.range && entry.range->symbol.index > symbol) --entry.range->symbol.index;
  if (!start.symbol_values.empty()) start.symbol_values.erase(start.symbol_values.begin() + symbol);
  return with_types(
      start, [&](TensorType& type) { move_all(type.dims); },
      [&](AttrValue& value) {
        if (auto* dims = std::get_if<Dims>(&value)) move_all(*dims);
        if (auto* dim = std::get_if<Dim>(&value)) move(*dim);
      });
}

std::optional<Reducible> with_dtype(const Reducible& from, DType was, DType now) {
  return with_types(
      from,
      [&](TensorType& type) {
        if (type.dtype == was) type.dtype = now;
      },
      [&](AttrValue& value) {
        if (auto* dtype = std::get_if<DType>(&value); dtype && *dtype == was) *dtype = now;
      });
}

std::optional<Reducible> without_attribute(const Reducible& from, size_t entry, ValueId op,
                                           AttrName name) {
  Reducible smaller = from;
  Graph& graph = smaller.module.entries[entry].graph;
  Attributes attrs;
  for (const auto& [other, value] : graph[op].attrs)
    if (other != name) attrs.set(other, value);
  graph[op].attrs = std::move(attrs);
  if (!infer_again(graph, smaller.module.symbols)) return std::nullopt;
  return smaller;
}

}  // namespace sinter::reduction
