#include "ir/term_builder.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <limits>

namespace sinter {

/// The number of an element of i32, or a sum that does not leave i32 in whatever order it is added.
bool TermBuilder::is_i32(const Term& term) const {
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();
  const TermNode* alone = terms_.node_of(term);
  int64_t most = std::abs(constant_of(term));
  for (const auto& [number, factor] : parts_of(term)) {
    const TermNode& node = terms_[number];
    const auto part = terms_.bounds(Term::variable(number) * factor);
    if (!part) return false;
    most += std::max(std::abs(part->least), std::abs(part->largest));
    if (most > kLargest && !(alone && node.kind == TermNode::Kind::element)) return false;
    if (!llvm::all_of(node.operands, [&](const Term& operand) { return is_i32(operand); }))
      return false;
  }
  return true;
}

ValueId TermBuilder::build(const Term& term) {
  dtype_ = is_i32(term) ? DType::i32 : DType::i64;
  return build_sum(term);
}

ValueId TermBuilder::build_sum(const Term& term) {
  ValueId sum = {};
  for (const auto& [node, factor] : parts_of(term)) {
    ValueId part = build_node(node);
    if (factor != 1 && factor != -1) part = b_.mul(part, number(std::abs(factor)));
    if (!sum.valid())
      sum = factor > 0 ? part : b_.sub(number(0), part);
    else
      sum = factor > 0 ? b_.add(sum, part) : b_.sub(sum, part);
  }
  const int64_t constant = constant_of(term);
  if (!sum.valid()) return number(constant);
  return constant == 0 ? sum : b_.add(sum, number(constant));
}

ValueId TermBuilder::build_truth(const Term& truth) {
  if (is_constant(truth)) return b_.constant(static_cast<double>(constant_of(truth)), DType::i1);
  const TermNode& node = *terms_.node_of(truth);
  if (node.kind == TermNode::Kind::element) return view(node);
  if (node.function == OpKind::less_equal) return build_at_most_zero(node.operands[0]);
  llvm::SmallVector<ValueId, 2> operands;
  for (const Term& operand : node.operands) operands.push_back(build_truth(operand));
  return b_.op(node.function, operands);
}

/// The parts that are added are at most those that are taken away.
ValueId TermBuilder::build_at_most_zero(const Term& x) {
  const int64_t constant = constant_of(x);
  Term added{std::max<int64_t>(constant, 0)}, taken{std::max<int64_t>(-constant, 0)};
  for (const auto& [node, factor] : parts_of(x))
    (factor > 0 ? added : taken) += Term::variable(node) * std::abs(factor);
  dtype_ = is_i32(added) && is_i32(taken) ? DType::i32 : DType::i64;
  const ValueId left = build_sum(added);
  return b_.less_equal(left, build_sum(taken));
}

ValueId TermBuilder::build_node(uint32_t number_of_node) {
  const TermNode& node = terms_[number_of_node];
  switch (node.kind) {
    case TermNode::Kind::position:
      return position(number_of_node);
    case TermNode::Kind::element: {
      const ValueId element = view(node);
      if (b_.type(element).dtype == DType::i32) return b_.cast(element, dtype_);
      return b_.maximum(b_.minimum(element, number(kTermLimit)), number(-kTermLimit));
    }
    default:
      if (node.operands.size() == 1) return b_.op(node.function, {build_sum(node.operands[0])});
      return b_.op(node.function, {build_sum(node.operands[0]), build_sum(node.operands[1])});
  }
}

ValueId TermBuilder::position(uint32_t variable) {
  const Dims dims = extents(whole_ ? axes_ : llvm::ArrayRef(variable));
  const auto axis = llvm::find(axes_, variable) - axes_.begin();
  return b_.cast(b_.iota(dims, axis), dtype_);
}

Dims TermBuilder::extents(llvm::ArrayRef<uint32_t> variables) const {
  Dims dims;
  for (uint32_t axis : axes_)
    dims.push_back(llvm::is_contained(variables, axis) ? terms_.extents()[axis] : Dim(1));
  return dims;
}

bool TermBuilder::can_build(const PositionTerms& terms, const Term& term,
                            llvm::ArrayRef<uint32_t> axes) {
  return llvm::all_of(parts_of(term), [&](const TermPart& part) {
    const TermNode& node = terms[part.node];
    if (node.kind == TermNode::Kind::position) return llvm::is_contained(axes, part.node);
    if (node.kind == TermNode::Kind::element) return is_view(terms, node, axes);
    return llvm::all_of(node.operands,
                        [&](const Term& operand) { return can_build(terms, operand, axes); });
  });
}

bool TermBuilder::is_view(const PositionTerms& terms, const TermNode& element,
                          llvm::ArrayRef<uint32_t> axes) {
  llvm::SmallVector<uint32_t, 4> seen;
  const DimsRef dims = terms.graph()[element.root].type.dims;
  for (const auto& [dim, place] : llvm::zip(dims, element.coords)) {
    if (place.terms().empty() && place.constant().is_constant()) continue;
    if (place.terms().size() != 1 || !place.constant().is(0) || !place.is_affine()) return false;
    const uint32_t variable = place.terms()[0].atom.variable;
    if (!place.is_variable(variable) || !llvm::is_contained(axes, variable) ||
        llvm::is_contained(seen, variable) || terms.extents()[variable] != dim)
      return false;
    seen.push_back(variable);
  }
  return true;
}

ValueId TermBuilder::view(const TermNode& element) {
  ValueId value = moved_(element.root);
  llvm::SmallVector<uint32_t, 4> variables;
  // Axes of one place come first, the others in the order of the result's axes.
  std::vector<std::pair<int64_t, int64_t>> order;
  for (int64_t axis = 0; const IndexExpr& place : element.coords) {
    const bool is_one = place.terms().empty();
    if (is_one)
      value = b_.slice(value, axis, constant_of(place), Dim(1));
    else
      variables.push_back(place.terms()[0].atom.variable);
    order.push_back({is_one ? -1 : llvm::find(axes_, variables.back()) - axes_.begin(), axis++});
  }
  llvm::sort(order);
  std::vector<int64_t> axes;
  for (const auto& [at, axis] : order) axes.push_back(axis);
  if (!llvm::is_sorted(axes)) value = b_.transpose(value, axes);
  value = b_.reshape(value, extents(variables));
  return whole_ ? b_.broadcast(value, extents(axes_)) : value;
}

}  // namespace sinter
