#include "passes/simplify/term_builder.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <limits>

namespace sinter {

/// The number of an element of i32, or a sum that does not leave i32 in whatever order it is added.
bool TermBuilder::is_i32(const Term& term) const {
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();
  const bool alone = term.constant == 0 && term.factors.size() == 1;
  int64_t most = std::abs(term.constant);
  for (const auto& [number, factor] : term.factors) {
    const TermNode& node = terms_[number];
    const auto part = terms_.bounds(Term{0, {{number, factor}}});
    if (!part) return false;
    most += std::max(std::abs(part->least), std::abs(part->largest));
    const bool is_element = node.kind == TermNode::Kind::element;
    if (!(most <= kLargest || (alone && factor == 1 && is_element))) return false;
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
  for (const auto& [number_of_node, factor] : term.factors) {
    ValueId part = build_node(terms_[number_of_node]);
    if (factor != 1 && factor != -1) part = b_.mul(part, number(std::abs(factor)));
    if (!sum.valid())
      sum = factor > 0 ? part : b_.sub(number(0), part);
    else
      sum = factor > 0 ? b_.add(sum, part) : b_.sub(sum, part);
  }
  if (!sum.valid()) return number(term.constant);
  return term.constant == 0 ? sum : b_.add(sum, number(term.constant));
}

ValueId TermBuilder::build_truth(const Term& truth) {
  if (truth.is_constant()) return b_.constant(static_cast<double>(truth.constant), DType::i1);
  const TermNode& node = terms_[truth.factors.begin()->first];
  if (node.kind == TermNode::Kind::element) return view(node);
  if (node.function == OpKind::less_equal) return build_at_most_zero(node.operands[0]);
  llvm::SmallVector<ValueId, 2> operands;
  for (const Term& operand : node.operands) operands.push_back(build_truth(operand));
  return b_.op(node.function, operands);
}

/// The parts that are added are at most those that are taken away.
ValueId TermBuilder::build_at_most_zero(const Term& x) {
  Term added{std::max<int64_t>(x.constant, 0)}, taken{std::max<int64_t>(-x.constant, 0)};
  for (const auto& [node, factor] : x.factors)
    (factor > 0 ? added : taken).factors[node] = std::abs(factor);
  dtype_ = is_i32(added) && is_i32(taken) ? DType::i32 : DType::i64;
  const ValueId left = build_sum(added);
  return b_.less_equal(left, build_sum(taken));
}

ValueId TermBuilder::build_node(const TermNode& node) {
  switch (node.kind) {
    case TermNode::Kind::position:
      return position(node.variable);
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
  const auto axis = static_cast<size_t>(llvm::find(axes_, variable) - axes_.begin());
  Dims dims = extents();
  if (!whole_) {
    dims.assign(axes_.size(), Dim(1));
    dims[axis] = terms_.extents()[variable];
  }
  return b_.cast(b_.iota(dims, static_cast<int64_t>(axis)), dtype_);
}

Dims TermBuilder::extents() const {
  Dims dims;
  for (uint32_t axis : axes_) dims.push_back(terms_.extents()[axis]);
  return dims;
}

bool TermBuilder::can_build(const PositionTerms& terms, const Term& term,
                            llvm::ArrayRef<uint32_t> axes) {
  return llvm::all_of(term.factors, [&](const auto& part) {
    const TermNode& node = terms[part.first];
    if (node.kind == TermNode::Kind::position) return llvm::is_contained(axes, node.variable);
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
  const size_t rank = element.coords.size();
  llvm::SmallVector<std::pair<size_t, int64_t>, 4> order;  // place among the axes, own axis
  std::vector<int64_t> single;
  for (size_t axis = 0; axis < rank; ++axis) {
    const IndexExpr& place = element.coords[axis];
    if (place.terms().empty()) {
      value = b_.slice(value, static_cast<int64_t>(axis), place.constant().constant(), Dim(1));
      single.push_back(static_cast<int64_t>(axis));
    } else {
      const auto at = llvm::find(axes_, place.terms()[0].atom.variable) - axes_.begin();
      order.push_back({static_cast<size_t>(at), static_cast<int64_t>(axis)});
    }
  }
  llvm::sort(order);
  std::vector<int64_t> axes = single;
  for (const auto& [at, axis] : order) axes.push_back(axis);
  if (!llvm::is_sorted(axes)) value = b_.transpose(value, axes);
  Dims dims(axes_.size(), Dim(1));
  for (const auto& [at, axis] : order) dims[at] = terms_.extents()[axes_[at]];
  value = b_.reshape(value, dims);
  return whole_ ? b_.broadcast(value, extents()) : value;
}

}  // namespace sinter
