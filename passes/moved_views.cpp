#include "passes/moved_views.h"

#include <llvm/ADT/STLExtras.h>

#include <map>

#include "ir/cheap_ops.h"
#include "ir/fault.h"
#include "ir/state_reads.h"
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

class MovedSlices {
 public:
  MovedSlices(const Graph& from, Builder& builder, GraphRewriter& rewriter)
      : from_(from), builder_(builder), rewriter_(rewriter), readers_(readers_of(from)) {
    parts_.resize(from.size());
    for (auto i = static_cast<uint32_t>(from.size()); i-- > 0;) parts_[i] = part(ValueId{i});
  }

  /// False: nothing changed.
  bool run() {
    if (llvm::none_of(parts_, [](const auto& part) { return part.has_value(); })) return false;
    rewriter_.rewrite([&](ValueId id, Op op) {
      if (parts_[id.index]) return ValueId();
      if (op.kind != OpKind::slice || !parts_[from_[id].operands[0].index])
        return rewriter_.add(std::move(op));
      return sliced(from_[id].operands[0], axis_of(op), op);
    });
    return true;
  }

 private:
  /// The slices by which alone a value is read; absent where it stays.
  std::optional<SlicedAxis> part(ValueId id) const {
    const Op& op = from_[id];
    if (!is_cheap(op) || !is_float(op.type.dtype) || reads_state(from_, op)) return {};
    std::optional<SlicedAxis> found;
    for (ValueId reader : readers_[id.index]) {
      const std::optional<SlicedAxis> one =
          reader == id ? std::nullopt : read_by(from_[reader], reader, op);
      if (!one || (found && found->axis != one->axis)) return {};
      found = SlicedAxis{one->axis, one->size + (found ? found->size : 0)};
    }
    if (!found) return {};
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

  /// The part of a value that `slice`, an op of the old graph, takes.
  ValueId sliced(ValueId id, int64_t axis, const Op& slice) {
    const Op& op = from_[id];
    const int64_t begin = slice.attrs.get<int64_t>(AttrName::begin);
    const Dim size = slice.type.dims[axis_of(slice)];
    const bool is_conversion = op.kind == OpKind::cast && !reads_state(from_, op);
    if (!parts_[id.index] && !is_conversion)
      return builder_.slice(rewriter_[id], axis, begin, size);
    const auto [at, is_new] = made_.try_emplace({id.index, axis, begin, size.constant()});
    if (!is_new) return at->second;
    const auto rank = static_cast<int64_t>(op.type.rank());
    llvm::SmallVector<ValueId, 3> operands;
    for (ValueId operand : op.operands) {
      const TensorType& type = from_[operand].type;
      const int64_t own = axis - rank + static_cast<int64_t>(type.rank());  // its axis
      // An operand that is repeated along the axis stays as it is.
      const bool is_whole =
          own < 0 ||
          (type.dims[own].is(1) && (!op.type.dims[axis].is(1) || fault(Fault::whole_unit_axis)));
      operands.push_back(is_whole ? rewriter_[operand] : sliced(operand, own, slice));
    }
    return made_[{id.index, axis, begin, size.constant()}] =
               builder_.op(op.kind, operands, Attributes(op.attrs), op.name);
  }

  const Graph& from_;
  Builder& builder_;
  GraphRewriter& rewriter_;
  const std::vector<llvm::SmallVector<ValueId, 2>> readers_;
  std::vector<std::optional<SlicedAxis>> parts_;
  // By value, axis, begin and size.
  std::map<std::tuple<uint32_t, int64_t, int64_t, int64_t>, ValueId> made_;
};

// ---- transpositions

class MovedTransposes {
 public:
  MovedTransposes(const Graph& from, Builder& builder, GraphRewriter& rewriter)
      : from_(from), builder_(builder), rewriter_(rewriter), readers_(readers_of(from)) {
    orders_.resize(from.size());
    for (auto i = static_cast<uint32_t>(from.size()); i-- > 0;) orders_[i] = order(ValueId{i});
  }

  /// False: nothing changed.
  bool run() {
    if (llvm::none_of(orders_, [](const Axes* order) { return order != nullptr; })) return false;
    permuted_.resize(from_.size());
    rewriter_.rewrite([&](ValueId id, Op op) {
      if (orders_[id.index]) {
        permuted_[id.index] = permuted(id);
        return ValueId();
      }
      const bool is_moved = op.kind == OpKind::transpose && orders_[from_[id].operands[0].index];
      return is_moved ? permuted_[from_[id].operands[0].index] : rewriter_.add(std::move(op));
    });
    return true;
  }

 private:
  /// The order of axes in which alone a value is read; null: it stays as it is.
  const Axes* order(ValueId id) const {
    const Op& op = from_[id];
    const bool moves = is_by_element(op) || op.kind == OpKind::concat || op.kind == OpKind::slice;
    if (!moves || readers_[id.index].empty()) return nullptr;
    const Axes* found = nullptr;
    for (ValueId reader : readers_[id.index]) {
      const Axes* own = reader == id ? nullptr : order_of_reader(reader, op.type.rank());
      if (!own || (found && *found != *own)) return nullptr;
      found = own;
    }
    return found->back() + 1 == static_cast<int64_t>(op.type.rank()) ? found : nullptr;
  }

  const Axes* order_of_reader(ValueId id, size_t rank) const {
    const Op& reader = from_[id];
    if (reader.type.rank() != rank) return nullptr;
    return reader.kind == OpKind::transpose ? &axes_of(reader) : orders_[id.index];
  }

  /// The op whose result has the order of its axes in which it is read.
  ValueId permuted(ValueId id) {
    const Op& op = from_[id];
    const Axes& order = *orders_[id.index];
    llvm::SmallVector<ValueId, 4> operands;
    for (ValueId operand : op.operands) operands.push_back(in_order(operand, order));
    Attributes attrs = op.attrs;
    if (attrs.has(AttrName::axis))
      attrs.set(AttrName::axis, llvm::find(order, axis_of(op)) - order.begin());
    return builder_.op(op.kind, operands, std::move(attrs), op.name);
  }

  /// An operand in an order of the op's axes; its dims broadcast to the op's dims.
  ValueId in_order(ValueId id, const Axes& order) {
    if (orders_[id.index]) return permuted_[id.index];
    const ValueId x = rewriter_[id];
    const DimsRef dims = from_[id].type.dims;
    if (llvm::all_of(dims.drop_back(dims.empty() ? 0 : 1), [](Dim dim) { return dim.is(1); }))
      return x;  // a row for all, or a number
    Dims whole(order.size() - dims.size(), Dim(1));
    whole.append(dims.begin(), dims.end());
    return builder_.transpose(dims.size() == order.size() ? x : builder_.reshape(x, whole), order);
  }

  const Graph& from_;
  Builder& builder_;
  GraphRewriter& rewriter_;
  const std::vector<llvm::SmallVector<ValueId, 2>> readers_;
  std::vector<const Axes*> orders_;  // by value: attributes of transpositions
  std::vector<ValueId> permuted_;
};

}  // namespace

bool moved_views(Module& module) {
  const bool slices = rewrite_graphs(
      module, [](const Op& op) { return op.kind == OpKind::slice; },
      [](const Graph& graph, Builder& builder, GraphRewriter& rewriter) {
        return MovedSlices(graph, builder, rewriter).run();
      });
  const bool transposes = rewrite_graphs(
      module, [](const Op& op) { return op.kind == OpKind::transpose; },
      [](const Graph& graph, Builder& builder, GraphRewriter& rewriter) {
        return MovedTransposes(graph, builder, rewriter).run();
      });
  return slices || transposes;
}

}  // namespace sinter
