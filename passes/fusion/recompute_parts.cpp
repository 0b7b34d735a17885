#include "passes/fusion/recompute_parts.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/STLFunctionalExtras.h>

#include "ir/cheap_ops.h"
#include "ir/state_reads.h"
#include "ir/sym_expr.h"
#include "ir/verify_graph.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

constexpr size_t kMaxRecomputedParts = 4;
constexpr int kMaxGenerated = 4;  // ops that are computed anew for each reader
constexpr int kMaxOpsMoved = 8;   // ops on the way from a value to what it is computed from

using View = llvm::function_ref<ValueId(ValueId)>;

class PartsInPlace {
 public:
  PartsInPlace(const Graph& from, Builder& builder, GraphRewriter& rewriter)
      : from_(from), builder_(builder), rewriter_(rewriter), readers_(readers_of(from)) {}

  std::optional<ValueId> replaced(ValueId id, Op& op) {
    at_ = id;
    if (op.kind == OpKind::concat && has_part_in_place(id)) return joined(id);
    if (!is_by_element(op) || !widen_operands(id, op)) return std::nullopt;
    return rewriter_.add(std::move(op));
  }

 private:
  /// All readers, through views, are `reader`.
  bool is_read_by(ValueId id, ValueId reader) const {
    return llvm::all_of(readers_[id.index], [&](ValueId other) {
      return other == reader ||
             (other != id && op_class(from_[other]) == OpClass::view && is_read_by(other, reader));
    });
  }
  bool moves(ValueId id, ValueId reader) const {
    const Op& op = from_[id];
    return is_cheap(op) && !reads_overwritten(from_, op, at_) &&
           (is_read_by(id, reader) || is_generated(id) || is_widening(op));
  }
  /// A cast that reads fewer bytes than it writes: to compute it twice costs less than to read it.
  bool is_widening(const Op& op) const {
    return op.kind == OpKind::cast &&
           dtype_info(from_[op.operands[0]].type.dtype).bits < dtype_info(op.type.dtype).bits;
  }
  /// Made of generators alone, by few ops.
  bool is_generated(ValueId id, int depth = kMaxGenerated) const {
    const Op& op = from_[id];
    if (op_class(op) == OpClass::generator) return true;
    if (op_class(op) == OpClass::view) return is_generated(op.operands[0], depth);
    return depth > 0 && is_cheap(op) && llvm::all_of(op.operands, [&](ValueId operand) {
             return is_generated(operand, depth - 1);
           });
  }

  // ---- parts of a concatenation

  bool has_part_in_place(ValueId concat) const {
    const Op& op = from_[concat];
    const auto axis = static_cast<size_t>(op.attrs.get<int64_t>(AttrName::axis));
    const auto size = [&](ValueId part) { return from_[part].type.dims[axis]; };
    const size_t parts = op.operands.size();
    return parts >= 2 && parts <= kMaxRecomputedParts && op.type.rank() < kMaxAxes &&
           size(op.operands[0]).is_constant() &&
           llvm::all_of(op.operands,
                        [&](ValueId part) { return size(part) == size(op.operands[0]); }) &&
           llvm::any_of(op.operands,
                        [&](ValueId part) { return moves(root_of(from_, part), concat); });
  }

  ValueId joined(ValueId concat) {
    const Op& op = from_[concat];
    const auto axis = static_cast<size_t>(op.attrs.get<int64_t>(AttrName::axis));
    const int64_t parts = static_cast<int64_t>(op.operands.size());
    const int64_t size = from_[op.operands[0]].type.dims[axis].constant();
    const auto repeat = [&](ValueId x) { return repeated(x, axis, parts); };
    const auto part = [&](ValueId id) { return moved(id, concat, repeat, kMaxOpsMoved); };
    ValueId value = part(op.operands.back());
    for (int64_t i = llvm::all_equal(op.operands) ? 0 : parts - 1; i-- > 0;) {
      const ValueId own = part(op.operands[static_cast<size_t>(i)]);
      const ValueId within =
          builder_.less(builder_.iota(op.type.dims, static_cast<int64_t>(axis)),
                        builder_.constant(static_cast<double>((i + 1) * size), DType::i32));
      value = builder_.op(OpKind::where, {within, own, value});
    }
    builder_.graph()[value].name = op.name;
    return value;
  }

  /// Element i of an axis is element i mod its size of x.
  ValueId repeated(ValueId x, size_t axis, int64_t times) {
    Dims dims = builder_.type(x).dims;
    const int64_t size = dims[axis].constant();
    Dims apart = dims;
    apart.insert(apart.begin() + axis, Dim(1));
    const ValueId one = builder_.reshape(x, apart);
    apart[axis] = Dim(times);
    dims[axis] = Dim(times * size);
    return builder_.reshape(builder_.broadcast(one, apart), dims);
  }

  // ---- values that are computed from what the caller gives

  /// True if an operand changed.
  bool widen_operands(ValueId reader, Op& op) {
    bool found = false;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const ValueId operand = from_[reader].operands[i];
      const ValueId root = root_of(from_, operand);
      const bool given = is_given(root, reader, kMaxOpsMoved);
      if (!moves(root, reader) || (!given && !is_widening(from_[root]))) continue;
      const auto elements = [&](DimsRef dims) {
        return volume(dims).upper_bound(builder_.symbols());
      };
      const bool larger = elements(op.type.dims) > elements(from_[root].type.dims);
      if (!larger && !(is_generated(root) && !is_read_by(root, reader))) continue;
      found = true;
      const auto widen = [&](ValueId x) { return builder_.broadcast(x, op.type.dims); };
      op.operands[i] = moved(operand, reader, widen, given ? kMaxOpsMoved : 1);
    }
    return found;
  }

  /// Computed from inputs, weights and generators alone, by ops that move to the reader.
  bool is_given(ValueId id, ValueId reader, int depth) const {
    const Op& op = from_[id];
    const OpClass c = op_class(op);
    if (c == OpClass::leaf || c == OpClass::generator) return op.kind != OpKind::state;
    if (c == OpClass::view) return is_given(op.operands[0], reader, depth);
    return depth > 0 && moves(id, reader) && llvm::all_of(op.operands, [&](ValueId operand) {
             return is_given(operand, id, depth - 1);
           });
  }

  /// `view` of a value: views pass above the ops that move to the reader.
  ValueId moved(ValueId id, ValueId reader, View view, int depth) {
    const Op& op = from_[id];
    const ValueId root = root_of(from_, id);
    if (depth == 0 || !moves(root, reader)) return view(rewriter_[id]);
    const auto below = [&](ValueId x) { return view(builder_.op(op.kind, {x}, op.attrs)); };
    if (op_class(op) == OpClass::view) return moved(op.operands[0], reader, below, depth);
    const auto beside = [&](ValueId x) { return view(builder_.broadcast(x, op.type.dims)); };
    llvm::SmallVector<ValueId, 3> operands;
    for (ValueId operand : op.operands) operands.push_back(moved(operand, root, beside, depth - 1));
    const std::string name = is_read_by(root, reader) ? op.name : op.name + ".there";
    return builder_.op(op.kind, operands, op.attrs, name);
  }

  const Graph& from_;
  Builder& builder_;
  GraphRewriter& rewriter_;
  std::vector<llvm::SmallVector<ValueId, 2>> readers_;
  ValueId at_;  // the op for which values are computed
};

}  // namespace

bool recompute_parts(Module& module) { return replace_ops<PartsInPlace>(module, is_by_element); }

}  // namespace sinter
