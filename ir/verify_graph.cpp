#include "ir/verify_graph.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Support/ConvertUTF.h>

#include "ir/contraction.h"
#include "ir/infer.h"
#include "ir/op_roles.h"

namespace sinter {
namespace {

class GraphVerifier {
 public:
  GraphVerifier(const Graph& graph, const GraphContext& context)
      : graph_(graph), context_(context) {}
  Checked run();

 private:
  Place at(ValueId id) const {
    Place place = context_.place;
    place.op = id;
    return place;
  }
  std::string name(ValueId id) const {
    return fmt::format("%{} ({})", printable(graph_[id].name), algorithm_name(graph_[id]));
  }
  std::string attribute_name(ValueId id, AttrName attr) const {
    return fmt::format("attribute {} of {}", to_string(attr), name(id));
  }
  std::string show(const TensorType& type) const { return to_string(type, context_.symbols); }
  bool holds(ValueId id) const { return id.index < graph_.size(); }

  Checked ids(ValueId id) const;
  Checked interface() const;
  Checked unique_name(ValueId id);
  Checked counts(ValueId id) const;
  Checked attributes(ValueId id) const;
  Checked shapes(ValueId id) const;
  Checked place_of_op(ValueId id) const;
  Checked leaf(ValueId id) const;
  Checked type(ValueId id) const;
  Checked matrix(ValueId id) const;

  const Graph& graph_;
  const GraphContext& context_;
  llvm::StringMap<ValueId> names_;
};

Checked GraphVerifier::ids(ValueId id) const {
  for (ValueId operand : graph_[id].operands)
    if (operand >= id)
      return broken(4,
                    fmt::format("{} is op {} and reads op {}{}", name(id), id.index, operand.index,
                                holds(operand) ? ", " + name(operand) : ""),
                    at(id), "put an op after the ops that it reads");
  return {};
}

Checked GraphVerifier::interface() const {
  std::vector<bool> listed(graph_.size(), false);
  for (ValueId id : graph_.inputs) {
    if (!holds(id) || graph_[id].kind != OpKind::input || listed[id.index])
      return broken(10,
                    fmt::format("input {} of {} ops {}", id.index, graph_.size(),
                                !holds(id)         ? "is none of them"
                                : listed[id.index] ? "is listed twice: " + name(id)
                                                   : "is not of kind input: " + name(id)),
                    context_.place, "list every op of kind input once");
    listed[id.index] = true;
  }
  for (uint32_t i = 0; i < graph_.size(); ++i)
    if (graph_.ops()[i].kind == OpKind::input && !listed[i])
      return broken(10,
                    fmt::format("{} is not listed among the {} inputs", name(ValueId{i}),
                                graph_.inputs.size()),
                    at(ValueId{i}), "declare it as a parameter");
  if (context_.role == GraphRole::weight_function && !graph_.inputs.empty())
    return broken(10, fmt::format("a weight function has the input {}", name(graph_.inputs[0])),
                  at(graph_.inputs[0]), "compute a weight from file tensors and constants alone");
  for (ValueId id : graph_.outputs)
    if (!holds(id))
      return broken(11, fmt::format("output {} is none of {} ops", id.index, graph_.size()),
                    context_.place, "name an op of the graph as output");
  return {};
}

Checked GraphVerifier::unique_name(ValueId id) {
  const Op& op = graph_[id];
  const auto what = [&] {
    return fmt::format("the name of op {} ({})", id.index, algorithm_name(op));
  };
  SINTER_TRY(check_text(op.name, what, at(id)));
  const auto [first, fresh] = names_.try_emplace(op.name, id);
  if (!fresh)
    return broken(3,
                  fmt::format("ops {} and {} are both named %{}", first->second.index, id.index,
                              printable(op.name)),
                  at(id), "rename one of them");
  const bool own = op.kind != OpKind::weight && op.kind != OpKind::state;
  if (own && context_.leaves && context_.leaves->count(op.name))
    return broken(3, fmt::format("{} is named like a weight or a state of the module", name(id)),
                  at(id), "rename the op");
  return {};
}

Checked GraphVerifier::counts(ValueId id) const {
  const Op& op = graph_[id];
  const int least = op_info(op.kind).min_operands, most = max_operands(op.kind, order_of(op));
  const int count = static_cast<int>(op.operands.size());
  if (count >= least && count <= most) return {};
  const std::string takes =
      least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
  return broken(5, fmt::format("{} takes {} operands, got {}", name(id), takes, count), at(id),
                "docs/sir.md lists its operands");
}

Checked GraphVerifier::attributes(ValueId id) const {
  const Op& op = graph_[id];
  if (const auto order = order_of(op); order && order_info(*order).op != op.kind)
    return broken(6,
                  fmt::format("{} is an order of {}, not of {}", to_string(*order),
                              op_info(order_info(*order).op).name, op_info(op.kind).name),
                  at(id), "name an order of the op, or none");
  if (const auto missing = missing_attribute(op.kind, op.attrs))
    return broken(6, fmt::format("{} lacks its attribute {}", name(id), to_string(*missing)),
                  at(id), fmt::format("add {{{} = ...}}", to_string(*missing)));
  for (const auto& [attribute, value] : op.attrs) {
    const AttrName attr = attribute;
    if (!may_have(op.kind, op.attrs, attr))
      return broken(6, fmt::format("{} has no attribute {}", name(id), to_string(attr)), at(id),
                    "remove it");
    if (const auto* text = std::get_if<std::string>(&value))
      SINTER_TRY(check_text(
          *text, [&] { return attribute_name(id, attr); }, at(id)));
  }
  return {};
}

Checked GraphVerifier::shapes(ValueId id) const {
  const Op& op = graph_[id];
  SINTER_TRY(check_type(
      op.type, [&] { return name(id); }, context_.symbols, at(id)));
  for (const auto& [attribute, value] : op.attrs) {
    const AttrName attr = attribute;
    TensorType type{DType::i1, {}};
    if (const auto* dims = std::get_if<Dims>(&value)) type.dims = *dims;
    if (const auto* dim = std::get_if<Dim>(&value)) type.dims = {*dim};
    SINTER_TRY(check_type(
        type, [&] { return attribute_name(id, attr); }, context_.symbols, at(id)));
  }
  return {};
}

Checked GraphVerifier::place_of_op(ValueId id) const {
  const Op& op = graph_[id];
  const bool in_weight = context_.role == GraphRole::weight_function;
  if (op.kind == OpKind::file && !in_weight)
    return broken(12, fmt::format("{} reads a file tensor outside of a weight function", name(id)),
                  at(id), "declare a weight and read that");
  if (op.kind == OpKind::pack_codes && !in_weight)
    return broken(12, fmt::format("{} packs codes outside of a weight function", name(id)), at(id),
                  "declare a weight and read that");
  if (in_weight &&
      (writes_state(op) || op_class(op) == OpClass::contraction || op_class(op) == OpClass::anchor))
    return broken(13, fmt::format("{} stands in a weight function", name(id)), at(id),
                  "compute weights with views, elementwise ops, reductions and copies");
  return {};
}

Checked GraphVerifier::leaf(ValueId id) const {
  const Op& op = graph_[id];
  if (op.kind == OpKind::input || context_.role == GraphRole::alone) return {};
  if (context_.role == GraphRole::weight_function)
    return broken(9, fmt::format("{} stands in a weight function", name(id)), at(id),
                  "compute a weight from file tensors and constants alone");
  const auto found = context_.leaves->find(op.name);
  if (found == context_.leaves->end() || found->second.kind != op.kind)
    return broken(9,
                  fmt::format("the module has no {} %{}", algorithm_name(op), printable(op.name)),
                  at(id), "declare it in the module");
  if (*found->second.type != op.type)
    return broken(9,
                  fmt::format("{} is {}, the module declares {}", name(id), show(op.type),
                              show(*found->second.type)),
                  at(id), "give the leaf the declared type");
  return {};
}

Checked GraphVerifier::type(ValueId id) const {
  const Op& op = graph_[id];
  llvm::SmallVector<TensorType, 3> operands;
  for (ValueId operand : op.operands) operands.push_back(graph_[operand].type);
  const Result<TensorType> inferred = infer_type(op.kind, operands, op.attrs, context_.symbols);
  if (!inferred)
    return broken(
        8, fmt::format("%{}: {}", printable(op.name), inferred.error().what), at(id),
        inferred.error().hint.empty() ? "change the op or its operands" : inferred.error().hint);
  if (*inferred != op.type)
    return broken(8,
                  fmt::format("{} states {}, but its operands and attributes give {}", name(id),
                              show(op.type), show(*inferred)),
                  at(id), fmt::format("state {}", show(*inferred)));
  return {};
}

Checked GraphVerifier::matrix(ValueId id) const {
  if (context_.role == GraphRole::alone) return {};
  for (ValueId operand : operands_with(graph_[id], OperandRole::stream)) {
    if (can_be_streamed(graph_, operand)) continue;
    return broken(17, fmt::format("{} reads the matrix {}", name(id), name(operand)), at(id),
                  "read a weight or an input as it stands in memory, or use linear");
  }
  return {};
}

Checked GraphVerifier::run() {
  for (uint32_t i = 0; i < graph_.size(); ++i) SINTER_TRY(ids(ValueId{i}));
  SINTER_TRY(interface());
  for (uint32_t i = 0; i < graph_.size(); ++i) {
    const ValueId id{i};
    SINTER_TRY(unique_name(id));
    SINTER_TRY(counts(id));
    SINTER_TRY(attributes(id));
    SINTER_TRY(shapes(id));
    SINTER_TRY(place_of_op(id));
    SINTER_TRY(op_class(graph_[id]) == OpClass::leaf ? leaf(id) : type(id));
    SINTER_TRY(matrix(id));
  }
  SINTER_TRY(check_state_order(graph_, context_));
  return placed_values(graph_, context_).map([](const PlacedValues&) {});
}

}  // namespace

Checked check_text(std::string_view text, What what, Place place) {
  if (text.empty() || text.size() > kMaxNameBytes)
    return broken(2,
                  fmt::format("{} has {} bytes: \"{}\"", what(), text.size(), printable(text, 40)),
                  place, fmt::format("use 1 to {} bytes", kMaxNameBytes));
  const auto* begin = reinterpret_cast<const llvm::UTF8*>(text.data());
  if (!llvm::isLegalUTF8String(&begin, begin + text.size()))
    return broken(2, fmt::format("{} is not UTF-8: \"{}\"", what(), printable(text)), place,
                  "rename it in UTF-8");
  return {};
}

Checked check_type(const TensorType& type, What what, llvm::ArrayRef<Symbol> symbols, Place place) {
  if (type.rank() > kMaxAxes)
    return broken(
        7, fmt::format("{} has {} axes, at most {} are allowed", what(), type.rank(), kMaxAxes),
        place, "merge axes");
  for (Dim dim : type.dims)
    if (!dim.is_constant() && dim.symbol().index >= symbols.size())
      return broken(
          7, fmt::format("{} uses symbol {} of {}", what(), dim.symbol().index, symbols.size()),
          place, "declare the symbol");
  // An extent of 0 counts as 1, so that strides do not overflow either.
  int64_t elements = 1;
  for (Dim dim : type.dims) {
    const int64_t extent = dim.is_constant() ? dim.constant() : symbols[dim.symbol().index].high;
    if (__builtin_mul_overflow(elements, std::max<int64_t>(extent, 1), &elements) ||
        elements > max_elements(type.dtype))
      return broken(7,
                    fmt::format("{} is {}, more than 2^48 bytes where its symbols are largest",
                                what(), to_string(type, symbols)),
                    place, "make it smaller, or narrow the symbols' ranges");
  }
  return {};
}

Checked check_graph(const Graph& graph, const GraphContext& context) {
  return GraphVerifier(graph, context).run();
}

}  // namespace sinter
