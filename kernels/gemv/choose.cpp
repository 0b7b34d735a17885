// A product of few tokens takes as long as reading its matrix. Its order is gemv: the kernel takes
// a prologue and an epilogue.
//
//   %y = linear %x, %w, %b                    x [N, K], N <= 8, w a weight
//   =>
//   %y = linear %x, %w, %b {order = gemv, splits = 1}
//
// Other linears stay library calls: many tokens, a matrix that is computed or read through a view
// that moves elements, rows that are no multiple of 8 elements.
#include <algorithm>

#include "device/reference_machine.h"
#include "ir/builder.h"
#include "ir/contraction.h"
#include "ir/integers.h"
#include "ir/reduction_order.h"
#include "ir/sym_expr.h"
#include "kernels/gemv/order.h"
#include "kernels/gemv/prologue.h"

namespace sinter {
namespace {

constexpr int64_t kMaxExtent = INT32_MAX / kMaxGemvTokens;  // kernels count elements in ints
constexpr int64_t kWarps = 16;                              // of a block
// The least chunks of a split: two accesses of a warp.
constexpr int64_t kMinSplitChunks = 2 * kGemvLanes;

/// Split-K of a row, a power of two: the smallest that leaves hardly a warp of the reference
/// machine idle. The machine has a block on each multiprocessor. A block deals its rows to groups
/// of `splits` warps; the group with most rows decides the time.
int64_t splits_of(int64_t rows, int64_t chunks) {
  const int64_t own = ceil_div(rows, kReference.multiprocessors);  // of a block
  int64_t best = 1;
  double best_time = INFINITY;
  for (int64_t splits = 1; splits <= kMaxGemvSplits; splits *= 2) {
    const int64_t share = split_chunks(chunks, static_cast<int>(splits));
    if (splits > 1 && share < kMinSplitChunks) break;
    const int64_t groups = kWarps / splits, rounds = ceil_div(own, groups);
    const double time = static_cast<double>(rounds * share);
    if (time < 0.97 * best_time) best = splits, best_time = time;
  }
  return best;
}

bool is_gemv(const Graph& graph, const Op& op, llvm::ArrayRef<Symbol> symbols) {
  if (!is_without_order(op, OpKind::linear)) return false;
  const TensorType &x = graph[op.operands[0]].type, &w = graph[op.operands[1]].type;
  const int64_t tokens = SymExpr(x.dims[0]).upper_bound(symbols);
  return x.rank() == 2 && tokens > 0 && tokens <= kMaxGemvTokens &&
         w.dims[1].constant() % kChunk == 0 && w.dims[1].constant() > 0 &&
         w.dims[0].constant() > 0 && w.dims[0].constant() <= kMaxExtent &&
         w.dims[1].constant() <= kMaxExtent &&
         graph[root_of(graph, op.operands[1])].kind == OpKind::weight &&
         is_dense(graph, op.operands[1]) && is_gemv_operand(graph, op.operands[0], symbols);
}

}  // namespace

std::optional<ValueId> choose_gemv(Builder& b, const Op& op, Tokens) {
  if (!is_gemv(b.graph(), op, b.symbols())) return std::nullopt;
  const Dims& w = b.type(op.operands[1]).dims;
  Attributes attrs = op.attrs;
  attrs.set(AttrName::order, Order::gemv)
      .set(AttrName::splits, splits_of(w[0].constant(), w[1].constant() / kChunk));
  return b.op(OpKind::linear, op.operands, std::move(attrs), op.name);
}

}  // namespace sinter
