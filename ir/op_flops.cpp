#include "ir/op_flops.h"

#include <algorithm>

#include "ir/attention_heads.h"
#include "ir/decompose.h"
#include "ir/infer.h"

namespace sinter {
namespace {

/// The words of the column `flops`.
class OpExtents {
 public:
  OpExtents(const Graph& graph, const Op& op, const CallSizes& call)
      : graph_(graph), op_(op), call_(call), sizes_(call.symbol_values) {}

  double result() const { return sizes_.elements(op_.type); }
  double elements(size_t operand) const { return sizes_.elements(type(operand)); }
  double operands() const { return static_cast<double>(op_.operands.size()); }
  /// The last extent of an operand.
  double last(size_t operand) const { return sizes_.extent(type(operand).dims.back()); }
  double rows_seen(size_t operand) const { return sinter::rows_seen(op_, type(operand), call_); }

  /// Points of an einsum's loops: the product of the extents of all its letters.
  double loop_volume() const {
    double product = 1;
    const EinsumSpec spec = *parse_einsum(op_.attrs.get<std::string>(AttrName::spec));
    for (const EinsumAxis& axis : spec.axes)
      product *= sizes_.extent(axis.a >= 0 ? type(0).dims[axis.a] : type(1).dims[axis.b]);
    return product;
  }

  /// The sum over the primitives of a composite.
  double decomposed(double (*count)(const Graph&, const Op&, const CallSizes&) = flops) const {
    Graph body;
    Builder builder(body, call_.symbols);
    llvm::SmallVector<ValueId, 3> operands;
    for (ValueId id : op_.operands)
      operands.push_back(builder.leaf(OpKind::input, graph_[id].type, ""));
    decompose(builder, op_.kind, operands, op_.attrs);
    double total = 0;
    for (const Op& part : body.ops()) total += count(body, part, call_);
    return total;
  }

 private:
  const TensorType& type(size_t operand) const { return graph_[op_.operands[operand]].type; }

  const Graph& graph_;
  const Op& op_;
  const CallSizes& call_;
  TypeSizes sizes_;
};

}  // namespace

double flops(const Graph& graph, const Op& op, const CallSizes& call) {
  const OpExtents s(graph, op, call);
  switch (op.kind) {
#define SINTER_OP(name, op_class, least, most, required, optional, roles, flops) \
  case OpKind::name:                                                             \
    return flops;
#define SINTER_ELEMENTWISE(name, ...) \
  case OpKind::name:                  \
    return s.result();
#include "ir/ops.def"
  }
  SINTER_CHECK(false, "op kind");
}

int64_t element_instructions(const Op& op) {
  const bool computes = op_class(op) == OpClass::elementwise || op.kind == OpKind::where;
  return computes ? std::max(op_info(op.kind).instructions, 1) : 0;
}

double instructions(const Graph& graph, const Op& op, const CallSizes& call) {
  const OpExtents s(graph, op, call);
  switch (op_class(op)) {
    case OpClass::composite:
      return s.decomposed(instructions);
    case OpClass::reduce:
      return s.elements(0);
    case OpClass::run_sums:
      return s.elements(0) * s.operands();
    default:
      return static_cast<double>(element_instructions(op)) * s.result();
  }
}

double rows_seen(const Op& op, const TensorType& cache, const CallSizes& call) {
  const double rows = TypeSizes(call.symbol_values).extent(cache.dims[cache.rank() - 2]);
  if (!call.visible_rows) return rows;
  int64_t seen = *call.visible_rows;
  if (op.attrs.has(AttrName::window))
    seen = std::min(
        seen, std::min(seen, op.attrs.get<int64_t>(AttrName::window)) + attention_sink(op.attrs));
  return std::min(static_cast<double>(seen), rows);
}

}  // namespace sinter
