#include "passes/choose_matvec.h"

#include <algorithm>

#include "device/reference_machine.h"
#include "device/schedule.h"
#include "ir/contraction.h"
#include "ir/matvec_order.h"
#include "ir/reduction_order.h"
#include "ir/sym_expr.h"

namespace sinter {
namespace {

constexpr int64_t kMostExtent = INT32_MAX / kMostMatvecTokens;  // kernels count elements in ints
constexpr int64_t kWarps = 16;                                  // of a block
// Chunks of a part that are worth a sum of their own: two accesses of a warp.
constexpr int64_t kLeastPart = 2 * kMatvecLanes;
// Bytes of an operand that is gathered from another order in memory, in shared memory.
constexpr int64_t kMostGatheredBytes = 48 * 1024;

/// Parts of a row, a power of two: as few as leave hardly a warp of the reference machine idle. It
/// has a block on each multiprocessor. A block's rows are dealt to groups of `splits` warps, whose
/// largest number of rows decides.
int64_t splits_of(int64_t rows, int64_t chunks) {
  const int64_t own = ceil_div(rows, kReference.multiprocessors);  // of a block
  int64_t best = 1;
  double best_time = INFINITY;
  for (int64_t splits = 1; splits <= kMostMatvecSplits; splits *= 2) {
    const int64_t part = matvec_part(chunks, static_cast<int>(splits));
    if (splits > 1 && part < kLeastPart) break;
    const int64_t groups = kWarps / splits, rounds = ceil_div(own, groups);
    const double time = static_cast<double>(rounds * part);
    if (time < 0.97 * best_time) best = splits, best_time = time;
  }
  return best;
}

bool is_matvec(const Graph& graph, const Op& op, llvm::ArrayRef<Symbol> symbols) {
  if (op.kind != OpKind::linear) return false;
  const TensorType &x = graph[op.operands[0]].type, &w = graph[op.operands[1]].type;
  return x.rank() == 2 && SymExpr(x.dims[0]).upper_bound(symbols) <= kMostMatvecTokens &&
         w.dims[1].constant() % kChunk == 0 && w.dims[1].constant() > 0 &&
         w.dims[0].constant() > 0 && w.dims[0].constant() <= kMostExtent &&
         w.dims[1].constant() <= kMostExtent &&
         graph[root_of(graph, op.operands[1])].kind == OpKind::weight &&
         is_dense(graph, op.operands[1]) && is_matvec_operand(graph, op.operands[0], symbols);
}

}  // namespace

bool is_matvec_operand(const Graph& graph, ValueId x, llvm::ArrayRef<Symbol> symbols) {
  return is_dense(graph, x) ||
         storage_bytes(graph[x].type, symbols).upper_bound(symbols) <= kMostGatheredBytes;
}

bool choose_matvec(Module& module) {
  bool changed = false;
  for (Entry& entry : module.entries)
    for (Op& op : entry.graph.mutable_ops()) {
      if (!is_matvec(entry.graph, op, module.symbols)) continue;
      const Dims& w = entry.graph[op.operands[1]].type.dims;
      op.kind = OpKind::matvec;
      op.attrs.set(AttrName::splits, splits_of(w[0].constant(), w[1].constant() / kChunk));
      changed = true;
    }
  return changed;
}

}  // namespace sinter
