// A product of few tokens takes as long as reading its matrix. Its order is gemv: the kernel takes
// a prologue and an epilogue.
//
//   %y = linear %x, %w, %b                    x [N, K], N <= 8, w a weight or an input
//   =>
//   %y = linear %x, %w, %b {order = gemv, splits = 1}
//
//   %d = dequantize %p {size = K, codes = F}  a packed matrix that is a weight or an input
//   %y = linear %x, %d, %b
//   =>
//   %y = quantized_linear %x, %p, %b {size = K, splits = 1, codes = F}
//
// An x with more axes, [B, N, K], is read as [B * N, K], and the result is viewed as it was.
//
// Other products stay library calls: many tokens, a matrix that is computed or read through a view
// that moves elements, rows that are no multiple of 8 elements.
#include <algorithm>

#include "device/reference_machine.h"
#include "ir/builder.h"
#include "ir/code_format.h"
#include "ir/contraction.h"
#include "ir/integers.h"
#include "ir/reduction_order.h"
#include "ir/sym_expr.h"
#include "kernels/gemv/layout.h"
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
/// of `splits` warps; the group with most rows decides the time. A warp reads the rows of a packed
/// matrix two at a time, and the sums of such a pair take about as long as a third of a step.
int64_t splits_of(int64_t rows, int64_t chunks, int unit, bool packed) {
  const int64_t own = ceil_div(rows, kReference.multiprocessors);  // of a block
  int64_t best = 1;
  double best_time = INFINITY;
  for (int64_t splits = 1; splits <= kMaxGemvSplits; splits *= 2) {
    const int64_t share = split_chunks(chunks, static_cast<int>(splits), unit);
    if (splits > 1 && share < kMinSplitChunks) break;
    const int64_t groups = kWarps / splits, together = gemv_rows_at_once(1, packed);
    const int64_t rounds = ceil_div(own, groups * together) * together;
    const double time = static_cast<double>(rounds * (share + (packed ? unit / 3 : 0)));
    if (time < 0.97 * best_time) best = splits, best_time = time;
  }
  return best;
}

/// The product of leading extents, if it is a dim: constants, or a symbol beside extents of 1.
std::optional<Dim> merged(DimsRef leading) {
  int64_t constant = 1;
  std::optional<Dim> symbol;
  for (Dim dim : leading)
    if (dim.is_constant())
      constant *= dim.constant();
    else if (symbol)
      return std::nullopt;
    else
      symbol = dim;
  if (!symbol) return Dim(constant);
  return constant == 1 ? symbol : std::nullopt;
}

/// The value that stands in memory for a matrix: itself, or what it is dequantized from.
ValueId stored_matrix(const Graph& graph, ValueId matrix) {
  const Op& op = graph[matrix];
  return op.kind == OpKind::dequantize ? op.operands[0] : matrix;
}

/// Rows of whole chunks that stand in memory one after the other, packed or in the type of `x`.
bool is_gemv_matrix(const Graph& graph, ValueId matrix, ValueId x) {
  const auto& [dtype, dims] = graph[matrix].type;
  const ValueId stored = stored_matrix(graph, matrix);
  return dims[1].constant() % kChunk == 0 && dims[1].constant() > 0 && dims[0].constant() > 0 &&
         dims[0].constant() <= kMaxExtent && dims[1].constant() <= kMaxExtent &&
         (stored != matrix || dtype == graph[x].type.dtype) && can_be_streamed(graph, stored);
}

/// The rows of the operand of a product that a gemv can compute.
std::optional<Dim> gemv_rows(const Graph& graph, const Op& op, llvm::ArrayRef<Symbol> symbols) {
  if (!is_without_order(op, OpKind::linear) ||
      !is_gemv_matrix(graph, op.operands[1], op.operands[0]))
    return std::nullopt;
  const std::optional<Dim> rows = merged(DimsRef(op.type.dims).drop_back());
  if (!rows || !is_gemv_operand(graph, op.operands[0], symbols)) return std::nullopt;
  const int64_t tokens = SymExpr(*rows).upper_bound(symbols);
  return tokens > 0 && tokens <= kMaxGemvTokens ? rows : std::nullopt;
}

}  // namespace

std::optional<ValueId> choose_gemv(Builder& b, const Op& op, Tokens, const Recipe& recipe) {
  const std::optional<Dim> rows = gemv_rows(b.graph(), op, b.symbols());
  if (!rows || recipe.invariant) return std::nullopt;
  const Graph& graph = b.graph();
  const Dims w = b.type(op.operands[1]).dims;
  const ValueId stored = stored_matrix(graph, op.operands[1]);
  const bool packed = stored != op.operands[1];
  llvm::SmallVector<ValueId, 3> operands = op.operands;
  operands[1] = stored;
  Attributes attrs = op.attrs;
  int unit = kGemvLanes;
  if (packed) {
    const Attributes& format = graph[op.operands[1]].attrs;
    for (AttrName name : {AttrName::size, AttrName::codes}) attrs.set(name, *format.find(name));
    unit = static_cast<int>(code_format(format).layout().step_length() / kChunk);
  } else {
    attrs.set(AttrName::order, Order::gemv);
  }
  attrs.set(AttrName::splits, splits_of(w[0].constant(), w[1].constant() / kChunk, unit, packed));
  const OpKind kind = packed ? OpKind::quantized_linear : OpKind::linear;
  if (op.type.rank() == 2) return b.op(kind, operands, std::move(attrs), op.name);
  operands[0] = b.reshape(operands[0], {*rows, w[1]}, op.name + ".rows");
  const ValueId y = b.op(kind, operands, std::move(attrs), op.name + ".product");
  return b.reshape(y, op.type.dims, op.name);
}

}  // namespace sinter
