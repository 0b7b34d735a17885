#include "passes/fusion/placed_parts.h"

#include <llvm/ADT/STLExtras.h>

#include "ir/block_sums.h"
#include "ir/in_place.h"
#include "kernels/registry.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

/// A part of a concatenation, from `begin` to `end` along its axis.
struct Part {
  ValueId value;   // the operand
  ValueId source;  // the result of a kernel that it is a reshape of
  int64_t begin = 0, end = 0;
  size_t kernel = 0;  // sources of one number share a kernel
};
using Parts = llvm::SmallVector<Part, 4>;

/// `value`, a view or a cast, is read for sums of blocks of rows alone, which the kernel of the
/// rows stores.
bool is_summed(const Graph& graph, Readers readers, ValueId value) {
  while (graph[value].kind == OpKind::cast || op_class(graph[value]) == OpClass::view) {
    if (readers[value.index].size() != 1) return false;
    const ValueId reader = readers[value.index][0];
    if (reader == value) return false;  // an output
    if (const std::optional<BlockSums> sums = as_block_sums(graph, reader)) {
      const KernelFamily* family = anchored_by(graph[sums->source]);
      return family && summed_rows(*family, graph, graph[sums->source]) == sums->rows;
    }
    value = reader;
  }
  return false;
}

/// The op whose result a part is, with other axes, where no other kernel reads it and its own can
/// store it anywhere; an invalid id where there is none.
ValueId placed_source(const Graph& graph, Readers readers, ValueId part) {
  const ValueId source = same_elements(graph, part);
  const KernelFamily* family = anchored_by(graph[source]);
  if (!family || !family->places) return {};
  for (;; part = graph[part].operands[0]) {
    const auto reads_memory = [&](ValueId reader) { return !is_summed(graph, readers, reader); };
    if (llvm::count_if(readers[part.index], reads_memory) != 1) return {};
    if (part == source) return source;
  }
}

bool share_a_kernel(const Graph& graph, ValueId a, ValueId b) {
  const KernelFamily& family = *anchored_by(graph[a]);
  return anchored_by(graph[b]) == &family &&
         (is_companion(family, graph[a], graph[b]) || is_companion(family, graph[b], graph[a]));
}

/// The parts of a concatenation, all of which can be placed; else empty.
Parts parts_of(const Graph& graph, Readers readers, const Op& concat) {
  const auto axis = static_cast<size_t>(concat.attrs.get<int64_t>(AttrName::axis));
  if (concat.operands.size() < 2 ||
      !llvm::all_of(DimsRef(concat.type.dims).drop_front(axis),
                    [](Dim dim) { return dim.is_constant() && dim.constant() > 0; }))
    return {};
  Parts parts;
  int64_t begin = 0;
  for (ValueId value : concat.operands) {
    const int64_t extent = graph[value].type.dims[axis].constant();
    const ValueId source = placed_source(graph, readers, value);
    if (!source.valid() || extent == 0) return {};
    Part part{value, source, begin, begin + extent, parts.size()};
    for (const Part& other : parts)
      if (share_a_kernel(graph, other.source, source)) part.kernel = other.kernel;
    parts.push_back(part);
    begin += extent;
  }
  return parts;
}

/// The parts in an order in which each part touches the parts before it and a kernel's parts are
/// consecutive, kernels with fewer parts first; empty if there is no such order.
Parts in_order(Parts parts) {
  const auto parts_of_kernel = [&parts](const Part& part) {
    return llvm::count_if(parts, [&](const Part& p) { return p.kernel == part.kernel; });
  };
  llvm::SmallVector<std::pair<int64_t, size_t>, 4> kernels;  // number of parts, kernel
  for (const Part& part : parts) kernels.push_back({parts_of_kernel(part), part.kernel});
  llvm::sort(kernels);
  kernels.erase(std::unique(kernels.begin(), kernels.end()), kernels.end());
  Parts ordered;
  int64_t low = 0, high = 0;
  for (const auto& [count, kernel] : kernels)
    for (int64_t i = 0; i < count; ++i) {
      const auto next = llvm::find_if(parts, [&](const Part& part) {
        return part.kernel == kernel && part.value.valid() &&
               (ordered.empty() || part.begin == high || part.end == low);
      });
      if (next == parts.end()) return {};
      low = ordered.empty() ? next->begin : std::min(low, next->begin);
      high = std::max(high, next->end);
      ordered.push_back(*next);
      next->value = {};
    }
  return ordered;
}

}  // namespace

bool placed_parts(Module& module) {
  return rewrite_graphs(
      module, [](const Op& op) { return op.kind == OpKind::concat; },
      [](const Graph& graph, Builder& builder, GraphRewriter& rewriter) {
        const auto readers = readers_of(graph);
        bool found = false;
        rewriter.rewrite([&](ValueId id, Op op) {
          const Parts parts = graph[id].kind == OpKind::concat
                                  ? in_order(parts_of(graph, readers, graph[id]))
                                  : Parts();
          if (parts.empty()) return rewriter.add(std::move(op));
          found = true;
          const int64_t axis = op.attrs.get<int64_t>(AttrName::axis);
          ValueId placed;
          for (const Part& part : parts) {
            llvm::SmallVector<ValueId, 2> operands = {rewriter[part.value]};
            if (placed.valid()) operands.push_back(placed);
            const bool is_last = &part == &parts.back();
            placed = builder.op(OpKind::place, operands,
                                Attributes()
                                    .set(AttrName::axis, axis)
                                    .set(AttrName::begin, part.begin)
                                    .set(AttrName::size, op.type.dims[static_cast<size_t>(axis)]),
                                is_last ? op.name : graph[part.source].name + ".placed");
          }
          return placed;
        });
        return found;
      });
}

}  // namespace sinter
