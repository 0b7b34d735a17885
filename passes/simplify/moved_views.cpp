// Views of values that are computed element by element are taken of their operands, so that the
// elements are computed where, and in the order in which, they are read.
//
//   %c = concat %q, %k, %v {axis = 0} : [3, H, N, 8]
//   %t = transpose %c {axes = [2, 0, 1, 3]}       =>   %t = concat %q', %k', %v' {axis = 1}
//
//   %m = mul %g, %sin : [N, 64]                        %a = slice %g ..., %b = slice %sin ...
//   %s = slice %m {begin = 0, size = 32}          =>   %s = mul %a, %b
//
// A transposition moves where a value is read in that order alone, and rows of the last axis stay
// whole: the gradient of a product whose result was split into queries, keys and values is such a
// concatenation, and rotary embeddings are such formulas. A slice moves where a value is read by
// slices alone that do not overlap, and by formulas behind them. No bit changes: the ops are
// element by element, and no reduction moves.
#include "ir/fault.h"
#include "ir/reread.h"
#include "passes/passes.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

using Axes = std::vector<int64_t>;

const Axes& axes_of(const Op& transpose) { return transpose.attrs.get<Axes>(AttrName::axes); }
int64_t axis_of(const Op& op) { return op.attrs.get<int64_t>(AttrName::axis); }

// ---- slices

/// An axis along which a value is read by slices alone, and how many elements of it.
struct SlicedAxis {
  int64_t axis = 0;
  int64_t size = 0;
};

/// The elements that a slice takes of an axis, counted by the axes that follow it.
struct Slice {
  size_t behind = 0;
  int64_t begin = 0, size = 0;
  bool is_of_one = false;  // the axis has one element
  friend auto operator<=>(const Slice&, const Slice&) = default;
};

class MovedSlices : Reread<Slice> {
 public:
  MovedSlices(const Graph& from, Builder& builder, GraphRewriter& rewriter)
      : Reread(from, builder, rewriter), readers_(readers_of(from)), parts_(from.size()) {
    for (auto i = static_cast<uint32_t>(from.size()); i-- > 0;) parts_[i] = part(ValueId{i});
  }

  std::optional<ValueId> replaced(ValueId id, const Op& op) {
    if (parts_[id.index]) return ValueId();
    if (op.kind != OpKind::slice || !parts_[from_[id].operands[0].index]) return std::nullopt;
    const ValueId value = from_[id].operands[0];
    const auto axis = static_cast<size_t>(axis_of(op));
    return at(value,
              {op.type.rank() - 1 - axis, op.attrs.get<int64_t>(AttrName::begin),
               op.type.dims[axis].constant(), from_[value].type.dims[axis].is(1)},
              id);
  }

 private:
  /// The slices by which alone a value is read; absent where it stays.
  std::optional<SlicedAxis> part(ValueId id) const {
    const Op& op = from_[id];
    if (!is_cheap(op) || !is_float(op.type.dtype)) return {};
    std::optional<SlicedAxis> found;
    for (ValueId reader : readers_[id.index]) {
      const std::optional<SlicedAxis> one =
          reader == id ? std::nullopt : read_by(from_[reader], reader, op);
      if (!one || (found && found->axis != one->axis)) return {};
      found = SlicedAxis{one->axis, one->size + (found ? found->size : 0)};
    }
    if (!found || !rewriter_.may_compute(id)) return {};  // slices stand anywhere behind
    const Dim extent = op.type.dims[found->axis];
    return extent.is_constant() && found->size <= extent.constant() ? found : std::nullopt;
  }

  std::optional<SlicedAxis> read_by(const Op& reader, ValueId id, const Op& value) const {
    if (reader.kind != OpKind::slice)
      return reader.type.dims == value.type.dims ? parts_[id.index] : std::nullopt;
    const Dim size = reader.type.dims[axis_of(reader)];
    const bool is_formula = llvm::all_of(readers_[id.index], [&](ValueId user) {
      return user != id && (is_by_element(from_[user]) || from_[user].kind == OpKind::concat);
    });
    if (!size.is_constant() || !is_formula) return {};
    return SlicedAxis{axis_of(reader), size.constant()};
  }

  bool computes(ValueId id, const Slice&) const override {
    return parts_[id.index] || from_[id].kind == OpKind::cast;
  }
  /// An operand that is repeated along the axis stays as it is.
  bool is_whole(ValueId id, const Slice& slice) const override {
    const Dims& dims = from_[id].type.dims;
    return dims.size() <= slice.behind || (extent_before(dims, slice.behind).is(1) &&
                                           (!slice.is_of_one || fault(Fault::whole_unit_axis)));
  }
  ValueId make(ValueId id, const Slice& slice) override {
    const auto axis = static_cast<int64_t>(from_[id].type.rank() - 1 - slice.behind);
    return builder_.slice(rewriter_[id], axis, slice.begin, slice.size);
  }

  const std::vector<llvm::SmallVector<ValueId, 2>> readers_;
  std::vector<std::optional<SlicedAxis>> parts_;
};

// ---- transpositions

/// A place is the order of axes that a transposition gives.
class MovedTransposes : Reread<Axes> {
 public:
  MovedTransposes(const Graph& from, Builder& builder, GraphRewriter& rewriter)
      : Reread(from, builder, rewriter), readers_(readers_of(from)), orders_(from.size()) {
    for (auto i = static_cast<uint32_t>(from.size()); i-- > 0;) orders_[i] = order(ValueId{i});
  }

  std::optional<ValueId> replaced(ValueId id, const Op& op) {
    if (const Axes* order = orders_[id.index]) {
      at(id, *order, id);
      return ValueId();
    }
    const bool is_moved = op.kind == OpKind::transpose && orders_[from_[id].operands[0].index];
    return is_moved ? std::optional(at(from_[id].operands[0], axes_of(op), id)) : std::nullopt;
  }

 private:
  /// The order of axes in which alone a value is read; null: it stays as it is.
  const Axes* order(ValueId id) const {
    const Op& op = from_[id];
    const bool moves = is_by_element(op) || op.kind == OpKind::concat || op.kind == OpKind::slice;
    if (!moves || readers_[id.index].empty()) return nullptr;
    const Axes* found = nullptr;
    for (ValueId user : readers_[id.index]) {
      const Op& reader = from_[user];
      if (user == id || reader.type.rank() != op.type.rank()) return nullptr;
      const Axes* own = reader.kind == OpKind::transpose ? &axes_of(reader) : orders_[user.index];
      if (!own || (found && *found != *own)) return nullptr;
      found = own;
    }
    return found->back() + 1 == static_cast<int64_t>(op.type.rank()) ? found : nullptr;
  }

  bool computes(ValueId id, const Axes&) const override { return orders_[id.index]; }
  ValueId compute(const Op& op, llvm::ArrayRef<ValueId> operands, const Axes& order) override {
    Attributes attrs = op.attrs;
    if (attrs.has(AttrName::axis))
      attrs.set(AttrName::axis, llvm::find(order, axis_of(op)) - order.begin());
    return builder_.op(op.kind, operands, attrs, op.name);
  }
  /// A row for all, or a number.
  bool is_whole(ValueId id, const Axes&) const override {
    const DimsRef dims = from_[id].type.dims;
    return !orders_[id.index] &&
           llvm::all_of(dims.drop_back(dims.empty() ? 0 : 1), [](Dim dim) { return dim.is(1); });
  }
  ValueId make(ValueId id, const Axes& order) override {
    const DimsRef dims = from_[id].type.dims;
    Dims all(order.size() - dims.size(), Dim(1));  // axes that broadcast
    all.append(dims.begin(), dims.end());
    return builder_.transpose(builder_.reshape(rewriter_[id], all), order);
  }

  const std::vector<llvm::SmallVector<ValueId, 2>> readers_;
  std::vector<const Axes*> orders_;  // by value: attributes of transpositions
};

}  // namespace

bool moved_views(Module& module) {
  const bool slices = replace_ops<MovedSlices>(module, OpKind::slice);
  const bool transposes = replace_ops<MovedTransposes>(module, OpKind::transpose);
  return slices || transposes;
}

}  // namespace sinter
