// A formula of a slice, with a constant behind it, is a formula of what was sliced and a choice.
// The gradient of a loss is such a value, where a product of padded extents made its logits:
//
//   %s = slice %x {axis = 1, begin = 0, size = 50257}        %e = exp %x : [N, 50264]
//   %e = exp %s : [N, 50257]                            =>   %r = where (position < 50257), %e, 0
//   %r = concat %e, %zeros {axis = 1} : [N, 50264]
//
// Its rows are then whole chunks of memory, and one kernel computes it. A reduction of rows that
// the formula reads too is one of as many elements, of which those behind the slice change nothing:
// one kernel reads the row for both.
//
//   %t = reduce_sum %e : [N, 1]            =>   %t = reduce_sum (where (position < 50257), %e, 0)
//
// No bit changes: lanes of a sum start at +0 and of a maximum at -inf, so that these numbers behind
// a row leave every lane as it is. Both sizes have as many chunks, so that each element keeps its
// lane.
#include <limits>

#include "ir/fault.h"
#include "ir/integers.h"
#include "ir/match.h"
#include "ir/reduction_order.h"
#include "ir/reread.h"
#include "ir/sym_expr.h"
#include "passes/passes.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

/// An axis, by how many follow it, with as many elements as the concatenation has.
struct Padded {
  size_t behind = 0;
  int64_t size = 0;
  friend auto operator<=>(const Padded&, const Padded&) = default;
};

class PaddedFormulas : Reread<Padded> {
 public:
  PaddedFormulas(const Graph& from, Builder& builder, GraphRewriter& rewriter)
      : Reread(from, builder, rewriter), readers_(readers_of(from)) {
    for (uint32_t i = 0; i < from.size(); ++i) note_formula({i});
  }

  std::optional<ValueId> replaced(ValueId id, const Op&) {
    const auto found = concats_.find(id);
    return found == concats_.end() ? reduced(id) : chosen(id, found->second);
  }

 private:
  void note_formula(ValueId id) {
    const Op& op = from_[id];
    ValueId value;
    if (!match::concat(match::value(value), match::behind_views(match::constant()))(from_, id))
      return;
    const auto axis = static_cast<size_t>(op.attrs.get<int64_t>(AttrName::axis));
    const Dim own = from_[value].type.dims[axis], size = op.type.dims[axis];
    if (!size.is_constant() || !own.is_constant() || own.is(0) || !is_by_element(from_[value]) ||
        readers_[value.index].size() != 1)
      return;
    const Padded place{op.type.rank() - 1 - axis, size.constant()};
    const auto formula = this->formula(value, place, id);
    const auto is_slice = [&](ValueId read) {
      return from_[read].kind == OpKind::slice && !is_whole(read, place);
    };
    if (!formula || llvm::none_of(formula->read, is_slice)) return;
    concats_.emplace(id, place);
    if (place.behind == 0)
      for (ValueId computed : formula->computed) rows_.try_emplace(computed, place.size);
  }

  bool is_whole(ValueId id, const Padded& place) const override {
    return extent_before(from_[id].type.dims, place.behind).is(1);
  }
  bool makes(ValueId id, const Padded& place) const override {
    const Op& op = from_[id];
    const bool is_wider =
        op.kind == OpKind::slice && op.attrs.get<int64_t>(AttrName::begin) == 0 &&
        extent_before(from_[op.operands[0]].type.dims, place.behind).is(place.size);
    return (is_wider || op.kind == OpKind::iota) && is_along(op, place.behind);
  }
  ValueId make(ValueId id, const Padded& place) override {
    return from_[id].kind == OpKind::iota ? positions(place) : rewriter_[from_[id].operands[0]];
  }

  /// A reduction of rows that a formula has for more elements, and as many chunks.
  std::optional<ValueId> reduced(ValueId id) {
    const Op& op = from_[id];
    if (op.kind != OpKind::reduce_sum && op.kind != OpKind::reduce_max) return std::nullopt;
    const auto row = rows_.find(op.operands[0]);
    const TensorType& type = from_[op.operands[0]].type;
    const std::vector<int64_t> last = {static_cast<int64_t>(type.rank()) - 1};
    if (row == rows_.end() || type.dtype != DType::f32 ||
        op.attrs.get<std::vector<int64_t>>(AttrName::axes) != last ||
        ceil_div(type.dims.back().constant(), kChunk) != ceil_div(row->second, kChunk))
      return std::nullopt;
    const double identity =
        op.kind == OpKind::reduce_sum ? 0.0 : -std::numeric_limits<double>::infinity();
    const Padded place{0, row->second};
    const ValueId number = builder_.constant(identity, DType::f32);
    const ValueId value = fault(Fault::padding_in_row) ? at(row->first, place, id)
                                                       : inside(row->first, place, id, number);
    return builder_.op(op.kind, {value}, op.attrs, op.name);
  }

  std::optional<ValueId> chosen(ValueId id, const Padded& place) {
    const Op& op = from_[id];
    // The choice comes before a last rounding, which leaves a number of that type as it is.
    ValueId value = op.operands[0], wide;
    const bool is_rounded = dtype_info(op.type.dtype).bits == 16 && is_float(op.type.dtype) &&
                            match::cast(match::value(wide))(from_, value) &&
                            from_[wide].type.dtype == DType::f32;
    if (is_rounded) value = wide;
    Attributes number = from_[root_of(from_, op.operands[1])].attrs;
    number.set(AttrName::dims, Dims()).set(AttrName::dtype, from_[value].type.dtype);
    const ValueId all = inside(value, place, id, builder_.op(OpKind::constant, {}, number));
    const ValueId result = builder_.cast(all, op.type.dtype);
    builder_.graph()[result].name = op.name;
    return result;
  }

  /// The value at the greater size, with a number behind its own elements.
  ValueId inside(ValueId id, const Padded& place, ValueId reader, ValueId number) {
    const Dim size = extent_before(from_[id].type.dims, place.behind);
    const ValueId value = at(id, place, reader);
    const ValueId is_inside = builder_.less(
        positions(place), builder_.constant(static_cast<double>(size.constant()), DType::i32));
    return builder_.op(OpKind::where, {is_inside, value, number});
  }

  /// Along the axis, behind which extents of 1 stand.
  ValueId positions(const Padded& place) {
    Dims dims(place.behind + 1, Dim(1));
    dims[0] = Dim(place.size);
    return builder_.iota(dims, 0);
  }

  std::vector<llvm::SmallVector<ValueId, 2>> readers_;
  std::map<ValueId, Padded> concats_;  // that pad a formula
  std::map<ValueId, int64_t> rows_;    // computed at more elements: how many
};

}  // namespace

bool padded_formulas(Module& module) { return replace_ops<PaddedFormulas>(module, OpKind::concat); }

}  // namespace sinter
