#include "passes/reductions/block_sums.h"

#include <llvm/ADT/STLExtras.h>

#include <map>

#include "ir/cheap_ops.h"
#include "ir/in_place.h"
#include "ir/op_roles.h"
#include "ir/sym_expr.h"
#include "ir/verify_graph.h"
#include "kernels/registry.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

/// Which kernels have the rows of values in registers, and sum blocks of them.
class SummingKernels {
 public:
  explicit SummingKernels(const Graph& graph) : graph_(graph), anchors_(graph.size()) {
    for (uint32_t i = 0; i < graph.size(); ++i) anchors_[i] = anchor_of({i});
  }

  /// Rows of a block of `id` that a kernel sums; 0: there is none that does, or blocks would not be
  /// whole.
  int64_t rows(ValueId id) const {
    const TensorType& type = graph_[id].type;
    const ValueId anchor = anchors_[id.index];
    if (!anchor.valid() || type.rank() < 2 || type.rank() >= kMaxAxes ||
        dtype_info(type.dtype).bits != 16)
      return 0;
    const int64_t of_block = summed_rows(*anchored_by(graph_[anchor]), graph_, graph_[anchor]);
    const Dim rows = type.dims[type.rank() - 2];
    return rows.is_constant() && rows.constant() % of_block == 0 ? of_block : 0;
  }
  /// The result that goes out by tile from which `id` is computed, whose kernel sums one value
  /// alone; invalid: the kernel sums each of its results.
  ValueId tile(ValueId id) const {
    const ValueId anchor = anchors_[id.index];
    return anchor.valid() && goes_out_by_tile(graph_[anchor]) ? anchor : ValueId();
  }

 private:
  bool goes_out_by_tile(const Op& op) const {
    const KernelFamily& family = *anchored_by(op);
    return family.ports && family.ports(graph_, op).result.port == Port::tile;
  }
  /// The op itself, or of a value that is computed element by element in the order of a result
  /// that goes out by tile, that result's.
  ValueId anchor_of(ValueId id) const {
    const Op& op = graph_[id];
    if (const KernelFamily* family = anchored_by(op))
      return summed_rows(*family, graph_, op) > 0 ? id : ValueId();
    if (!is_by_element(op) && !is_activation(op)) return {};
    for (ValueId operand : op.operands) {
      const ValueId anchor = anchors_[operand.index];
      if (anchor.valid() && graph_[operand].type.dims == op.type.dims &&
          goes_out_by_tile(graph_[anchor]))
        return anchor;
    }
    return {};
  }

  const Graph& graph_;
  std::vector<ValueId> anchors_;  // by value; invalid: no kernel sums its rows
};

/// The results of kernels whose rows stand side by side in `rows`, each `columns` elements of a row
/// in all; empty where some is none.
llvm::SmallVector<ValueId, 4> joined_results(const Graph& graph, const SummingKernels& kernels,
                                             ValueId rows, const SymExpr& count,
                                             const SymExpr& columns) {
  llvm::SmallVector<ValueId, 4> parts;
  const ValueId joined = same_elements(graph, rows);
  const Op& op = graph[joined];
  if (op.kind == OpKind::concat) {
    const auto axis = static_cast<size_t>(op.attrs.get<int64_t>(AttrName::axis));
    if (volume(DimsRef(op.type.dims).take_front(axis)) != count) return {};
    for (ValueId operand : op.operands) {
      const ValueId part = same_elements(graph, operand);
      const DimsRef dims = graph[operand].type.dims;
      if (kernels.rows(part) == 0 ||
          (!parts.empty() && kernels.rows(part) != kernels.rows(parts[0])) ||
          volume(dims.drop_front(axis)) != SymExpr(graph[part].type.dims.back()))
        return {};
      parts.push_back(part);
    }
  } else if (kernels.rows(joined) > 0 && SymExpr(op.type.dims.back()) == columns) {
    parts.push_back(joined);
  }
  return parts;
}

/// The results that `sum` adds over all of their rows; empty: it is another sum. A sum of 16-bit
/// elements is one in float32 that is rounded.
llvm::SmallVector<ValueId, 4> summed_results(const Graph& graph, const SummingKernels& kernels,
                                             const Op& sum) {
  if (sum.kind != OpKind::reduce_sum) return {};
  ValueId rows = sum.operands[0];
  if (sum.type.dtype == DType::f32) {
    const ValueId wide = same_elements(graph, rows);
    if (graph[wide].kind != OpKind::cast) return {};
    rows = graph[wide].operands[0];
  }
  const auto& axes = sum.attrs.get<std::vector<int64_t>>(AttrName::axes);
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != static_cast<int64_t>(i)) return {};
  const DimsRef dims = graph[sum.operands[0]].type.dims;
  return joined_results(graph, kernels, rows, volume(dims.take_front(axes.size())),
                        volume(dims.drop_front(axes.size())));
}

/// f32[.., N / rows, 1, D] of a result [.., N, D].
ValueId sums_of_blocks(Builder& builder, ValueId result, int64_t rows, const std::string& name) {
  Dims dims = builder.type(result).dims;
  const auto axis = static_cast<int64_t>(dims.size()) - 1;
  const Dim width = dims.back();
  dims[dims.size() - 2] = Dim(dims[dims.size() - 2].constant() / rows);
  dims.back() = Dim(rows);
  dims.push_back(width);
  // The cast has the dims of the sum's operand, so that both are one kernel where no other has the
  // rows.
  const ValueId blocks = builder.cast(builder.reshape(result, dims), DType::f32);
  return builder.reduce(OpKind::reduce_sum, blocks, {axis}, name + ".blocks");
}

/// The leading dims of a sum's operand, of which blocks of `rows` rows are left; nullopt: no axis
/// can be divided.
std::optional<Dims> dims_of_blocks(DimsRef rows_dims, int64_t rows) {
  Dims dims(rows_dims.begin(), rows_dims.end());
  const auto axis = llvm::find_if(
      dims, [rows](Dim dim) { return dim.is_constant() && dim.constant() % rows == 0; });
  if (axis == dims.end()) return std::nullopt;
  *axis = Dim(axis->constant() / rows);
  return dims;
}

}  // namespace

bool block_sums(Module& module) {
  return rewrite_graphs(
      module, [](const Op& op) { return op.kind == OpKind::reduce_sum; },
      [](const Graph& graph, Builder& builder, GraphRewriter& rewriter) {
        bool found = false;
        const SummingKernels kernels(graph);
        std::map<ValueId, ValueId> summed_of;  // by result that goes out by tile
        std::map<ValueId, ValueId> sums_of;    // by result: a kernel stores its sums once
        rewriter.rewrite([&](ValueId id, Op op) {
          const auto results = summed_results(graph, kernels, graph[id]);
          const auto is_second = [&](ValueId result) {
            const ValueId tile = kernels.tile(result);
            return tile.valid() && summed_of.try_emplace(tile, result).first->second != result;
          };
          if (results.empty() || llvm::any_of(results, is_second))
            return rewriter.add(std::move(op));
          const int64_t rows = kernels.rows(results[0]);
          const DimsRef dims = graph[graph[id].operands[0]].type.dims;
          const auto& axes = graph[id].attrs.get<std::vector<int64_t>>(AttrName::axes);
          std::optional<Dims> blocks = dims_of_blocks(dims.take_front(axes.size()), rows);
          if (!blocks) return rewriter.add(std::move(op));
          found = true;
          llvm::SmallVector<ValueId, 4> sums;
          for (ValueId result : results) {
            ValueId& own = sums_of[result];
            if (!own.valid())
              own = sums_of_blocks(builder, rewriter[result], rows, graph[result].name);
            sums.push_back(own);
          }
          const auto last = static_cast<int64_t>(builder.type(sums[0]).rank()) - 1;
          const ValueId all = sums.size() == 1 ? sums[0]
                                               : builder.op(OpKind::concat, sums,
                                                            Attributes().set(AttrName::axis, last));
          llvm::append_range(*blocks, dims.drop_front(axes.size()));
          const ValueId total =
              builder.reduce(OpKind::reduce_sum, builder.reshape(all, *blocks), axes,
                             op.type.dtype == DType::f32 ? op.name : op.name + ".wide");
          return builder.cast(total, op.type.dtype, op.name);
        });
        return found;
      });
}

}  // namespace sinter
