#include "ir/in_place.h"

#include <llvm/ADT/DenseSet.h>

#include "ir/decompose.h"
#include "ir/index_map.h"
#include "ir/op_roles.h"
#include "ir/sym_expr.h"

namespace sinter {
namespace {

/// How a value depends on the input: on the element at its own index of the same axes, on the one
/// at its own place in row-major order, or on another.
enum class Reads : uint8_t { nothing, own_index, own_place, other_element };

bool is_by_elements(const Op& op) {
  switch (op_class(op)) {
    case OpClass::leaf:
    case OpClass::generator:
    case OpClass::view:
    case OpClass::elementwise:
    case OpClass::pointwise:
    case OpClass::gather:
    case OpClass::append:
      return true;
    case OpClass::reduce:
    case OpClass::run_sums:
    case OpClass::composite:
    case OpClass::contraction:
    case OpClass::anchor:
      return false;
  }
  return false;
}

/// The element of the result at a place in row-major order is made of the operands' elements there,
/// where these have as many.
bool keeps_place(const Op& op) {
  return op.kind == OpKind::reshape || replaces_state(op) || op_class(op) == OpClass::elementwise ||
         (op_class(op) == OpClass::pointwise && op.kind != OpKind::concat);
}

/// One for each value of a graph without composites.
std::vector<Reads> reads_of(const Graph& graph, ValueId input) {
  std::vector<Reads> reads(graph.size(), Reads::nothing);
  reads[input.index] = Reads::own_index;
  for (uint32_t i = input.index + 1; i < graph.size(); ++i) {
    const Op& op = graph.ops()[i];
    for (size_t k = 0; k < op.operands.size(); ++k) {
      const ValueId operand = op.operands[k];
      Reads own = reads[operand.index];
      if (own == Reads::nothing || operand_role(op, k).kind == OperandRole::state) continue;
      const Dims& dims = graph[operand].type.dims;
      if (dims != op.type.dims) own = std::max(own, Reads::own_place);
      if (!keeps_place(op) || volume(dims) != volume(op.type.dims)) own = Reads::other_element;
      reads[i] = std::max(reads[i], own);
    }
  }
  return reads;
}

/// The values that an op of arithmetic makes, and that a value is made of, itself among them.
llvm::DenseSet<uint32_t> computed_for(const Graph& graph, ValueId value) {
  llvm::DenseSet<uint32_t> computed, seen;
  llvm::SmallVector<ValueId> reached{value};
  while (!reached.empty()) {
    const ValueId id = reached.pop_back_val();
    if (!seen.insert(id.index).second) continue;
    const OpClass kind = op_class(graph[id]);
    if (kind == OpClass::elementwise || kind == OpClass::pointwise) computed.insert(id.index);
    llvm::append_range(reached, graph[id].operands);
  }
  return computed;
}

/// One thread computes the elements of both outputs at an index: both depend on a computed value
/// with the outputs' number of elements, so that they are in one part of the kernel
/// (kernels/pointwise/emit.cpp).
bool share_threads(const Graph& graph, ValueId a, ValueId b) {
  const llvm::DenseSet<uint32_t> of_a = computed_for(graph, a), of_b = computed_for(graph, b);
  const SymExpr elements = volume(graph[a].type.dims);
  return llvm::any_of(of_a, [&](uint32_t value) {
    return of_b.contains(value) && volume(graph[ValueId{value}].type.dims) == elements;
  });
}

bool have_same_bytes(const TensorType& a, const TensorType& b) {
  const int bits = dtype_info(a.dtype).bits;
  return bits % 8 == 0 && bits == dtype_info(b.dtype).bits && volume(a.dims) == volume(b.dims);
}

}  // namespace

ValueId same_elements(const Graph& graph, ValueId id) {
  const ValueId root = root_of(graph, id);
  const Dims &dims = graph[id].type.dims, &own = graph[root].type.dims;
  if (root == id || volume(dims) != volume(own)) return id;
  IndexMap identity = identity_map(dims.size());
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i].is(1)) identity[i] = IndexExpr();
  const IndexMap coords = resolve_access(graph, id, identity, dims).coords;
  return linearize(own, coords) == linearize(dims, identity) ? root : id;
}

std::optional<size_t> placed_input(const Graph& group, size_t output) {
  ValueId id = group.outputs[output];
  if (!places_part(group[id])) return std::nullopt;
  while (id.valid() && places_part(group[id])) id = operand_with(group[id], OperandRole::base);
  const auto input = llvm::find(group.inputs, id);
  if (input == group.inputs.end()) return std::nullopt;
  return static_cast<size_t>(input - group.inputs.begin());
}

bool may_overwrite(const Graph& group, size_t output, size_t input,
                   llvm::ArrayRef<Symbol> symbols) {
  if (placed_input(group, output) == input) return true;
  if (!have_same_bytes(group[group.outputs[output]].type, group[group.inputs[input]].type))
    return false;
  const bool has_composites =
      llvm::any_of(group.ops(), [](const Op& op) { return op_class(op) == OpClass::composite; });
  const Graph primitives = has_composites ? decompose_all(group, symbols) : Graph();
  const Graph& graph = has_composites ? primitives : group;
  if (!llvm::all_of(graph.ops(), is_by_elements)) return false;
  const ValueId own = graph.outputs[output];
  const std::vector<Reads> reads = reads_of(graph, graph.inputs[input]);
  Reads allowed = Reads::own_place;
  for (size_t k = 0; k < graph.outputs.size(); ++k) {
    const ValueId other = graph.outputs[k];
    if (k == output) continue;
    if (replaces_state(graph[other]) &&
        operand_with(graph[other], OperandRole::state) == graph.inputs[input])
      return false;  // the memory is that output's
    if (reads[other.index] == Reads::nothing) continue;
    // Through other axes the input would be loaded again, after the output is stored.
    allowed = Reads::own_index;
    if (reads[other.index] != allowed || !share_threads(graph, own, other)) return false;
  }
  return reads[own.index] != Reads::nothing && reads[own.index] <= allowed;
}

}  // namespace sinter
