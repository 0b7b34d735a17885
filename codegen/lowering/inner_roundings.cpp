#include "codegen/lowering/inner_roundings.h"

#include "codegen/emission/emit_scalar.h"
#include "ir/builder.h"
#include "ir/decompose.h"
#include "ir/graph_rewriter.h"
#include "ir/grouping.h"
#include "ir/side_results.h"

namespace sinter {
namespace {

class Widening {
 public:
  Widening(const Graph& from, llvm::ArrayRef<Symbol> symbols)
      : from_(from),
        builder_(result_, symbols, "w"),
        held_(from, result_),
        kept_(from.size()),
        other_(from.size()) {
    for (uint32_t i = 0; i < from.size(); ++i) keep_block_sums(ValueId(i));
  }

  /// Whether a rounding went.
  bool run() {
    held_.rewrite_ops([&](ValueId id, const Op&) {
      return kept_[id.index] ? as_it_is(from_[id]) : compute(from_[id]);
    });
    for (ValueId id : from_.inputs) result_.inputs.push_back(held_[id]);
    for (ValueId id : from_.outputs) result_.outputs.push_back(output(id));
    return dropped_;
  }
  Graph take() && { return std::move(result_); }

 private:
  bool is_unrounded(ValueId id) { return builder_.type(held_[id]).dtype != from_[id].type.dtype; }
  ValueId in_type(ValueId id, DType dtype) {
    const ValueId held = held_[id];
    ValueId& other = other_[id.index];
    if (builder_.type(held).dtype == dtype) return held;
    if (!other.valid()) other = builder_.cast(held, dtype);
    return other;
  }
  ValueId rounded(ValueId id) { return in_type(id, from_[id].type.dtype); }
  ValueId wide(ValueId id) {
    dropped_ |= is_unrounded(id);
    return is_narrow(from_[id].type.dtype) ? in_type(id, DType::f32) : held_[id];
  }

  ValueId compute(const Op& op) {
    switch (op_class(op)) {
      case OpClass::elementwise:
      case OpClass::reduce:
      case OpClass::run_sums:
      case OpClass::composite:
        return computed(op);
      case OpClass::view:
        return moved(op);
      case OpClass::pointwise:
        return op.kind == OpKind::cast ? cast(op) : moved(op);
      case OpClass::anchor:
        if (may_have(op.kind, op.attrs, AttrName::dtype) && !sums_blocks_) return product(op);
        break;
      case OpClass::leaf:
      case OpClass::generator:
      case OpClass::gather:
      case OpClass::append:
      case OpClass::contraction:
        break;
    }
    return as_it_is(op);
  }

  ValueId as_it_is(const Op& op) {
    Op copy = op;
    for (ValueId& operand : copy.operands) operand = rounded(operand);
    return result_.add(std::move(copy));
  }

  /// A kernel that sums blocks of a value's rows has its anchor's result and the value rounded.
  void keep_block_sums(ValueId id) {
    const std::optional<SideOp> sums = as_block_sums(from_, id);
    if (!sums) return;
    sums_blocks_ = true;
    for (ValueId value = id; value != sums->source; value = from_[value].operands[0])
      kept_[value.index] = 1;
  }

  ValueId computed(const Op& op) {
    llvm::SmallVector<ValueId, 4> operands;
    for (ValueId operand : op.operands) operands.push_back(wide(operand));
    Attributes attrs = op.attrs;
    if (attrs.has(AttrName::dtype) && is_narrow(attrs.get<DType>(AttrName::dtype)))
      attrs.set(AttrName::dtype, DType::f32);
    return builder_.op(op.kind, operands, std::move(attrs), op.name);
  }

  /// To another float type and from one nothing is done until the value leaves.
  ValueId cast(const Op& op) {
    const ValueId x = wide(op.operands[0]);
    return builder_.cast(x, is_narrow(op.type.dtype) ? DType::f32 : op.type.dtype, op.name);
  }

  /// An op that moves elements takes them as they are held: all floats in one type.
  ValueId moved(const Op& op) {
    const bool unrounded =
        llvm::any_of(op.operands, [&](ValueId operand) { return is_unrounded(operand); });
    llvm::SmallVector<ValueId, 4> operands;
    for (ValueId operand : op.operands) {
      const bool widens = unrounded && is_narrow(from_[operand].type.dtype);
      operands.push_back(widens ? in_type(operand, DType::f32) : held_[operand]);
    }
    return builder_.op(op.kind, operands, op.attrs, op.name);
  }

  /// A matrix is multiplied with elements of its own type; the sums are float32.
  ValueId product(const Op& op) {
    llvm::SmallVector<ValueId, 3> operands;
    for (ValueId operand : op.operands) operands.push_back(rounded(operand));
    Attributes attrs = op.attrs;
    if (is_narrow(op.type.dtype)) attrs.set(AttrName::dtype, DType::f32);
    return builder_.op(op.kind, operands, std::move(attrs), op.name);
  }

  /// Every output is a value that the group computes, and no two are one.
  ValueId output(ValueId id) {
    const ValueId value = rounded(id);
    if (computes(result_[value]) && !llvm::is_contained(result_.outputs, value)) return value;
    return builder_.op(OpKind::copy, {value});
  }

  const Graph& from_;
  Graph result_;
  Builder builder_;
  GraphRewriter held_;          // values as they were computed, in their own type or in float32
  std::vector<uint8_t> kept_;   // by value: it leads from a stored value to sums of its blocks
  std::vector<ValueId> other_;  // by value: the same in the other of the two types, once it is read
  bool sums_blocks_ = false;
  bool dropped_ = false;
};

}  // namespace

Graph without_inner_roundings(const Graph& group, llvm::ArrayRef<Symbol> symbols) {
  // Composites round inside, too.
  const Graph primitives = decompose_all(group, symbols);
  if (!Widening(primitives, symbols).run()) return group;
  Widening widening(group, symbols);
  widening.run();
  return std::move(widening).take();
}

}  // namespace sinter
