#include "ir/in_place.h"

#include "ir/decompose.h"
#include "ir/index_map.h"
#include "ir/op_roles.h"
#include "ir/sym_expr.h"

namespace sinter {
namespace {

/// How a value depends on the input.
enum class Reads : uint8_t { nothing, own_index, other_index };

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

/// The element of the result at an index is made of the operands' elements at that index.
bool keeps_index(const Op& op) {
  return op.kind == OpKind::reshape || op_class(op) == OpClass::elementwise ||
         (op_class(op) == OpClass::pointwise && op.kind != OpKind::concat);
}

/// One for each value of a graph without composites.
std::vector<Reads> reads_of(const Graph& graph, ValueId input) {
  std::vector<Reads> reads(graph.size(), Reads::nothing);
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Op& op = graph.ops()[i];
    if (ValueId{i} == input) reads[i] = Reads::own_index;
    for (ValueId operand : op.operands) {
      if (reads[operand.index] == Reads::nothing) continue;
      const bool same = keeps_index(op) && reads[operand.index] == Reads::own_index &&
                        volume(graph[operand].type.dims) == volume(op.type.dims);
      reads[i] = std::max(reads[i], same ? Reads::own_index : Reads::other_index);
    }
  }
  return reads;
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
  const Graph graph = decompose_all(group, symbols);
  if (!llvm::all_of(graph.ops(), is_by_elements)) return false;
  const std::vector<Reads> reads = reads_of(graph, graph.inputs[input]);
  for (size_t k = 0; k < graph.outputs.size(); ++k) {
    const Reads wanted = k == output ? Reads::own_index : Reads::nothing;
    if (reads[graph.outputs[k].index] != wanted) return false;
  }
  return true;
}

}  // namespace sinter
