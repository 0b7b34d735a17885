// A sum along a row in which all but one element are zeros, because a label names the element that
// is not, is a choice: what stands at the label, or zero. The loss of labels and its gradient are
// written so; a sum would walk the row, and an element that it needs of a later walk costs another.
//
//   %at = equal %iota, %label                    =>   %x = gather %logits, label
//   %y = sub %logits, %max                            %y = sub %x, %max
//   %s = reduce_sum (where %at, %y, 0)                %s = (where (label in the row), %y, 0) + 0
//
// Values that are computed element by element are computed at the label alone, down to those that
// stand in memory. Casts of the row before its sum become casts of the choice. No bit changes: a
// sum of zeros and one number is that number, of -0 it is +0.
#include "ir/fault.h"
#include "ir/match.h"
#include "ir/reread.h"
#include "passes/passes.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

/// The sum of a row whose elements are zeros but for the one that a label names. A place: of each
/// row the element that the label of a sum names.
struct LabelSum {
  Dims dims = {};                  // of the summed value
  size_t behind = 0;               // axes that follow the summed one
  ValueId label = {};              // an integer for each row
  ValueId also = {};               // i1 for each row: it has a label; invalid: all rows have one
  ValueId value = {}, other = {};  // the element at the label, the zeros
  llvm::SmallVector<ValueId, 2> casts = {};  // of the row before its sum, the last one first
  ValueId index = {};                        // of the element, in the new graph

  Dim length() const { return extent_before(dims, behind); }
  friend bool operator<(const LabelSum& a, const LabelSum& b) { return a.index < b.index; }
};

class LabelSums : Reread<LabelSum> {
 public:
  LabelSums(const Graph& from, Builder& builder, GraphRewriter& rewriter)
      : Reread(from, builder, rewriter, ".label") {}

  std::optional<ValueId> replaced(ValueId id, const Op& op) {
    const std::optional<LabelSum> sum = label_sum(id);
    return sum ? std::optional(chosen(*sum, id, op)) : std::nullopt;
  }

 private:
  std::optional<LabelSum> label_sum(ValueId id) const {
    const Op& op = from_[id];
    if (op.kind != OpKind::reduce_sum || !is_float(op.type.dtype)) return std::nullopt;
    const auto& axes = op.attrs.get<std::vector<int64_t>>(AttrName::axes);
    LabelSum sum;
    ValueId choice = op.operands[0];
    for (; from_[choice].kind == OpKind::cast; choice = from_[choice].operands[0])
      sum.casts.push_back(choice);  // zeros of every type are zeros of another
    const auto is_of_rows = [&](ValueId read) {
      return is_whole(read, sum) && rewriter_.may_read(read, id);
    };
    if (axes.size() != 1 || !read_choice(choice, axes[0], sum) || !is_of_rows(sum.label) ||
        (sum.also.valid() && !is_of_rows(sum.also)) || !formula(sum.value, sum, id))
      return std::nullopt;
    return sum;
  }

  /// where(position = label, value, 0), or with a second condition.
  bool read_choice(ValueId choice, int64_t axis, LabelSum& sum) const {
    sum.dims = from_[choice].type.dims;
    sum.behind = sum.dims.size() - 1 - static_cast<size_t>(axis);
    ValueId condition;
    const auto position = [&](const Graph&, ValueId id) { return counts(from_[id], sum); };
    const auto at_label = match::in_any_order(OpKind::equal, position, match::value(sum.label));
    const auto both = match::in_any_order(OpKind::logical_and, at_label, match::value(sum.also));
    return sum.length().is_constant() && !sum.length().is(0) &&
           match::where(match::value(condition), match::value(sum.value), match::value(sum.other))(
               from_, choice) &&
           match::equal_to(0)(from_, sum.other) && match::either(at_label, both)(from_, condition);
  }

  /// The op counts the positions along the summed axis.
  static bool counts(const Op& op, const LabelSum& sum) {
    return op.kind == OpKind::iota && is_along(op, sum.behind) &&
           extent_before(op.type.dims, sum.behind) == sum.length();
  }

  bool is_whole(ValueId id, const LabelSum& sum) const override {
    return extent_before(from_[id].type.dims, sum.behind).is(1);
  }
  /// Values that are not computed element by element are read where they stand in memory.
  bool makes(ValueId id, const LabelSum& sum) const override {
    const OpClass root = op_class(from_[root_of(from_, id)]);
    return from_[id].type.dims == sum.dims &&
           (root == OpClass::leaf || root == OpClass::contraction);
  }
  ValueId make(ValueId id, const LabelSum& sum) override {
    const size_t axis = sum.dims.size() - 1 - sum.behind;
    Dims dims = sum.dims;
    dims[axis] = Dim(1);
    return builder_.op(OpKind::gather, {rewriter_[id], builder_.broadcast(sum.index, dims)},
                       Attributes().set(AttrName::axis, static_cast<int64_t>(axis)),
                       from_[id].name + ".label");
  }

  ValueId chosen(LabelSum sum, ValueId id, const Op& op) {
    Builder& b = builder_;
    const ValueId label = rewriter_[sum.label];
    const DType integer = b.type(label).dtype;
    const double last = static_cast<double>(sum.length().constant()) - 1;
    const ValueId zero = b.constant(0, integer), end = b.constant(last, integer);
    sum.index = b.cast(b.minimum(b.maximum(label, zero), end), DType::i32);
    const ValueId value = at(sum.value, sum, id);
    const ValueId begin = fault(Fault::label_outside_row) ? label : zero;
    ValueId named = b.logical_and(b.less_equal(begin, label), b.less_equal(label, end));
    if (sum.also.valid()) named = b.logical_and(named, rewriter_[sum.also]);
    ValueId one = b.op(OpKind::where, {named, value, rewriter_[sum.other]});
    for (ValueId cast : llvm::reverse(sum.casts)) one = b.cast(one, from_[cast].type.dtype);
    const ValueId result = b.broadcast(b.add(one, b.constant(0, op.type.dtype)), op.type.dims);
    b.graph()[result].name = op.name;
    return result;
  }
};

}  // namespace

bool label_sums(Module& module) { return replace_ops<LabelSums>(module, OpKind::reduce_sum); }

}  // namespace sinter
