// Sums over all rows of what kernels compute in blocks of rows: gradients of biases.
//
// A sum down the columns of results of kernels that can store sums of blocks of rows beside them
// (KernelFamily::side_result), or of a concatenation of such results, becomes a sum of these sums:
//
//   %rows = concat %dq, %dk, %dv          bf16[B, 1024, 3 * D]
//   %wide = cast %rows
//   %bias = reduce_sum %wide {axes = [0, 1]}
//
//   %dq.blocks = reduce_sum of (cast of %dq, as [B, 16, 64, D]) along the axis of 64; %dk, %dv too
//   %bias = reduce_sum (concat of these, f32[B, 16, 1, 3 * D]) {axes = [0, 1, 2]}
//
// The order of additions changes, in fused and unfused plans alike.
#include <llvm/ADT/STLExtras.h>

#include <map>

#include "ir/cheap_ops.h"
#include "ir/in_place.h"
#include "ir/op_roles.h"
#include "ir/sym_expr.h"
#include "ir/verify_graph.h"
#include "kernels/registry.h"
#include "passes/passes.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

using Results = llvm::SmallVector<ValueId, 4>;

class BlockSumsRule : RewriteRule {
 public:
  BlockSumsRule(const Graph& from, Builder& builder, GraphRewriter& rewriter)
      : RewriteRule(from, builder, rewriter), kernels_(from.size()) {
    for (uint32_t i = 0; i < from.size(); ++i) kernels_[i] = kernel_of({i});
  }

  std::optional<ValueId> replaced(ValueId id, const Op& op) {
    const Results results = summed_results(from_[id]);
    if (results.empty() || llvm::any_of(results, [&](ValueId one) { return is_second(one); }))
      return std::nullopt;
    const DimsRef dims = from_[from_[id].operands[0]].type.dims;
    const auto& axes = op.attrs.get<std::vector<int64_t>>(AttrName::axes);
    Dims blocks(dims.begin(), dims.end());
    // An axis that is added has whole blocks.
    const auto axis = std::find_if(blocks.begin(), blocks.begin() + axes.size(), [&](Dim dim) {
      return dim.is_constant() && dim.constant() % rows(results[0]) == 0;
    });
    if (axis == blocks.begin() + axes.size()) return std::nullopt;
    *axis = Dim(axis->constant() / rows(results[0]));
    Results sums;
    for (ValueId result : results) sums.push_back(sums_of_blocks(result));
    const auto last = static_cast<int64_t>(builder_.type(sums[0]).rank()) - 1;
    const ValueId all = sums.size() == 1 ? sums[0]
                                         : builder_.op(OpKind::concat, sums,
                                                       Attributes().set(AttrName::axis, last));
    const ValueId total =
        builder_.reduce(OpKind::reduce_sum, builder_.reshape(all, blocks), axes,
                        op.type.dtype == DType::f32 ? op.name : op.name + ".wide");
    return builder_.cast(total, op.type.dtype, op.name);
  }

 private:
  std::optional<SideResult> side(ValueId kernel) const {
    return side_result(from_, from_[kernel], SideKind::block_sums);
  }

  /// The anchor of the kernel that can sum blocks of rows of `id`: the op itself, or, where kernels
  /// sum values of the epilogue, the anchor from whose result the value is computed element by
  /// element. Invalid: there is none.
  ValueId kernel_of(ValueId id) const {
    const Op& op = from_[id];
    if (anchored_by(op)) return side(id) ? id : ValueId();
    if (!is_by_element(op) && !is_activation(op)) return {};
    const auto operand = llvm::find_if(op.operands, [&](ValueId operand) {
      const ValueId kernel = kernels_[operand.index];
      return kernel.valid() && from_[operand].type.dims == op.type.dims &&
             side(kernel)->of_epilogue;
    });
    return operand == op.operands.end() ? ValueId() : kernels_[operand->index];
  }

  /// Rows of a block of `id` that its kernel sums; 0: none does, or blocks would not be whole.
  int64_t rows(ValueId id) const {
    const TensorType& type = from_[id].type;
    const ValueId kernel = kernels_[id.index];
    if (!kernel.valid() || type.rank() < 2 || type.rank() >= kMaxAxes ||
        dtype_info(type.dtype).bits != 16)
      return 0;
    const Dim rows = type.dims[type.rank() - 2];
    const int64_t size = side(kernel)->size;
    return rows.is_constant() && rows.constant() % size == 0 ? size : 0;
  }

  /// A kernel whose epilogue makes `result` sums another value of it.
  bool is_second(ValueId result) {
    const ValueId kernel = kernels_[result.index];
    return side(kernel)->of_epilogue &&
           summed_of_.try_emplace(kernel, result).first->second != result;
  }

  /// The results that `sum` adds over all of their rows, side by side or alone; empty: it is
  /// another sum. A sum of 16-bit elements is one in float32 that is rounded.
  Results summed_results(const Op& sum) const {
    if (sum.kind != OpKind::reduce_sum) return {};
    ValueId summed = sum.operands[0];
    if (sum.type.dtype == DType::f32) {
      const Op& wide = from_[same_elements(from_, summed)];
      if (wide.kind != OpKind::cast) return {};
      summed = wide.operands[0];
    }
    const auto& axes = sum.attrs.get<std::vector<int64_t>>(AttrName::axes);
    if (axes.back() + 1 != static_cast<int64_t>(axes.size())) return {};
    const DimsRef dims = from_[sum.operands[0]].type.dims;
    const Op& joined = from_[same_elements(from_, summed)];
    const bool is_joined = joined.kind == OpKind::concat;
    const auto axis =
        static_cast<size_t>(is_joined ? joined.attrs.get<int64_t>(AttrName::axis) : 0);
    if (is_joined &&
        volume(DimsRef(joined.type.dims).take_front(axis)) != volume(dims.take_front(axes.size())))
      return {};
    Results parts;
    for (ValueId operand : is_joined ? llvm::ArrayRef(joined.operands) : llvm::ArrayRef(summed)) {
      const ValueId part = same_elements(from_, operand);
      const SymExpr columns = volume(is_joined ? DimsRef(from_[operand].type.dims).drop_front(axis)
                                               : dims.drop_front(axes.size()));
      if (rows(part) == 0 || (!parts.empty() && rows(part) != rows(parts[0])) ||
          columns != SymExpr(from_[part].type.dims.back()))
        return {};
      parts.push_back(part);
    }
    return parts;
  }

  /// f32[.., N / rows, 1, D] of a result [.., N, D]; a kernel stores them once.
  ValueId sums_of_blocks(ValueId result) {
    ValueId& sums = sums_of_[result];
    if (sums.valid()) return sums;
    Dims dims = from_[result].type.dims;
    const auto axis = static_cast<int64_t>(dims.size()) - 1;
    const Dim size(rows(result));
    dims.insert(dims.end() - 1, size);
    Dim& blocks = dims[dims.size() - 3];
    blocks = Dim(blocks.constant() / size.constant());
    // The cast has the dims of the sum's operand, so that both are one kernel where no other has
    // the rows.
    const ValueId wide = builder_.cast(builder_.reshape(rewriter_[result], dims), DType::f32);
    return sums = builder_.reduce(OpKind::reduce_sum, wide, {axis}, from_[result].name + ".blocks");
  }

  std::vector<ValueId> kernels_;          // by value: kernel_of
  std::map<ValueId, ValueId> summed_of_;  // by kernel that sums a value of its epilogue
  std::map<ValueId, ValueId> sums_of_;    // by result
};

}  // namespace

bool block_sums(Module& module) { return replace_ops<BlockSumsRule>(module, OpKind::reduce_sum); }

}  // namespace sinter
