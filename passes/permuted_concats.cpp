#include "passes/permuted_concats.h"

#include <llvm/ADT/STLExtras.h>

#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

const std::vector<int64_t>& axes_of(const Op& transpose) {
  return transpose.attrs.get<std::vector<int64_t>>(AttrName::axes);
}

bool is_permuted_concat(const Graph& graph, const Op& op,
                        llvm::ArrayRef<llvm::SmallVector<ValueId, 2>> readers) {
  if (op.kind != OpKind::transpose) return false;
  const Op& concat = graph[op.operands[0]];
  if (concat.kind != OpKind::concat || readers[op.operands[0].index].size() != 1) return false;
  const auto last = static_cast<int64_t>(op.type.rank()) - 1;
  return axes_of(op).back() == last && concat.attrs.get<int64_t>(AttrName::axis) != last;
}

}  // namespace

bool permuted_concats(Module& module) {
  return rewrite_graphs(
      module, [](const Op& op) { return op.kind == OpKind::concat; },
      [](const Graph& graph, Builder& builder, GraphRewriter& rewriter) {
        const auto readers = readers_of(graph);
        bool found = false;
        rewriter.rewrite([&](ValueId id, Op op) {
          if (!is_permuted_concat(graph, graph[id], readers)) return rewriter.add(std::move(op));
          found = true;
          const Op& concat = graph[graph[id].operands[0]];
          const std::vector<int64_t>& axes = axes_of(graph[id]);
          llvm::SmallVector<ValueId, 4> parts;
          for (ValueId part : concat.operands)
            parts.push_back(builder.transpose(rewriter[part], axes));
          const int64_t axis =
              llvm::find(axes, concat.attrs.get<int64_t>(AttrName::axis)) - axes.begin();
          return builder.op(OpKind::concat, parts, Attributes().set(AttrName::axis, axis), op.name);
        });
        return found;
      });
}

}  // namespace sinter
