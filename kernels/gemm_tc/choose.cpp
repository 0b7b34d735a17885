// The order of a product of 16-bit elements is tiled_linear, Sinter's own on tensor cores:
//
//   %y = linear %x, %w, %b
//   =>
//   %y = linear %x, %w, %b {order = tiled_linear}
//
// and that of a product with a matrix of codes, which no gemv takes, tiled_codes:
//
//   %d = dequantize %p {size = K, codes = F}  a packed matrix that is a weight or an input
//   %y = linear %x, %d, %b
//   =>
//   %y = quantized_linear %x, %p, %b {size = K, codes = F, order = tiled_codes}
//
// Other products stay calls of the library: float32, whose elements tensor cores would round, and
// rows that are no multiple of 8 elements, which tensor maps do not take. The fewest tokens by a
// matrix that can be streamed are left to gemv, which is asked after gemm_tc and before gemm_codes.
#include "ir/builder.h"
#include "ir/code_format.h"
#include "ir/contraction.h"
#include "kernels/gemm_tc/order.h"
#include "kernels/gemm_tc/schedule.h"

namespace sinter {
namespace {

constexpr int64_t kMostGemvTokens = 4;

}  // namespace

std::optional<ValueId> choose_tiled_linear(Builder& b, const Op& op, Tokens) {
  if (!is_without_order(op, OpKind::linear)) return std::nullopt;
  const TensorType& w = b.type(op.operands[1]);
  if (dtype_info(w.dtype).bits != 16 || w.dtype != b.type(op.operands[0]).dtype ||
      w.dims[0].is(0) || !is_tiled_linear_length(w.dims[1].constant()))
    return std::nullopt;
  if (most_tokens(op, b.symbols()) <= kMostGemvTokens && can_be_streamed(b.graph(), op.operands[1]))
    return std::nullopt;
  Attributes attrs = op.attrs;
  attrs.set(AttrName::order, Order::tiled_linear);
  return b.op(OpKind::linear, op.operands, std::move(attrs), op.name);
}

std::optional<ValueId> choose_tiled_codes(Builder& b, const Op& op, Tokens) {
  if (!is_without_order(op, OpKind::linear)) return std::nullopt;
  const Graph& graph = b.graph();
  const Op& matrix = graph[op.operands[1]];
  if (matrix.kind != OpKind::dequantize || dtype_info(b.type(op.operands[0]).dtype).bits != 16 ||
      code_format(matrix.attrs).minima || matrix.type.dims[0].is(0) ||
      !is_tiled_linear_length(matrix.type.dims[1].constant()) ||
      !can_be_streamed(graph, matrix.operands[0]))
    return std::nullopt;
  llvm::SmallVector<ValueId, 3> operands = op.operands;
  operands[1] = matrix.operands[0];
  Attributes attrs = op.attrs;
  for (AttrName name : {AttrName::size, AttrName::codes}) attrs.set(name, *matrix.attrs.find(name));
  attrs.set(AttrName::order, Order::tiled_codes);
  return b.op(OpKind::quantized_linear, operands, std::move(attrs), op.name);
}

}  // namespace sinter
