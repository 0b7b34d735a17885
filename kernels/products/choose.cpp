// The order of a product of 16-bit elements is tiled_linear, Sinter's own on tensor cores:
//
//   %y = linear %x, %w, %b
//   =>
//   %y = linear %x, %w, %b {order = tiled_linear}
//
// where it was asked for, or where its kernel is faster: of few tokens than a call of the library
// (is_faster_of_few_tokens), of many tokens than such a call and a kernel of the epilogue
// (gains_by_epilogue). The gradient of its input is such a product, too, whose
// kernel reads the columns of w where they are:
//
//   %dx = einsum %dy, %w {spec = "nak,km->nam"}
//   =>
//   %t  = transpose %w
//   %dx = linear %dy, %t {order = tiled_linear}
//
// The order of a product with a matrix of codes, which no gemv takes, is tiled_codes:
//
//   %d = dequantize %p {size = K, codes = F}  a packed matrix that is a weight or an input
//   %y = linear %x, %d, %b
//   =>
//   %y = quantized_linear %x, %p, %b {size = K, codes = F, order = tiled_codes}
//
// Other products stay calls of the library: float32, whose elements tensor cores would round, and
// rows that are no multiple of 8 elements, which tensor maps do not take. The fewest tokens by a
// matrix that can be streamed are left to gemv, which is asked after tiled_linear and before
// tiled_codes.
#include <llvm/ADT/STLExtras.h>

#include "ir/builder.h"
#include "ir/contraction.h"
#include "ir/fault.h"
#include "ir/infer.h"
#include "ir/op_flops.h"
#include "ir/side_results.h"
#include "kernels/family.h"
#include "kernels/products/order.h"
#include "kernels/products/product.h"

namespace sinter {
namespace {

/// The most tokens of which the order gemv is faster than the own kernel, and the most that it
/// takes (kMaxGemvTokens of kernels/gemv/order.h).
constexpr int64_t kMostGemvTokens = 4, kAllGemvTokens = 8;

/// A product x w^T, or x w, as it stands in a graph.
struct PlainProduct {
  ValueId x, w;
  bool transposed = false;  // x w: the sum is over the rows of w

  Dim columns(const Graph& graph) const { return graph[w].type.dims[transposed ? 1 : 0]; }
  Dim length(const Graph& graph) const { return graph[w].type.dims[transposed ? 0 : 1]; }
};

/// An einsum of a matrix and the last axis of another operand, whose result has the matrix's other
/// axis in its place. nullopt: it is another one.
std::optional<PlainProduct> as_plain_product(const Graph& graph, const Op& op) {
  if (is_without_order(op, OpKind::linear)) return PlainProduct{op.operands[0], op.operands[1]};
  if (op.kind != OpKind::einsum || graph[op.operands[1]].type.rank() != 2) return std::nullopt;
  const auto last = static_cast<int>(op.type.rank()) - 1;
  PlainProduct product{op.operands[0], op.operands[1]};
  const auto spec = parse_einsum(op.attrs.get<std::string>(AttrName::spec));
  for (const EinsumAxis& axis : spec->axes) {
    const bool is_row = axis.b < 0 && axis.a == axis.result && axis.a < last;
    const bool is_summed = axis.result < 0 && axis.a == last && axis.b >= 0;
    const bool is_column = axis.a < 0 && axis.b >= 0 && axis.result == last;
    if (!is_row && !is_summed && !is_column) return std::nullopt;
    if (is_summed) product.transposed = axis.b == 0;
  }
  return product;
}

/// Elements of 16 bits, a result of their type or f32 (C16), and rows that tensor maps take.
bool is_tiled(const Graph& graph, const Op& op, const PlainProduct& product) {
  const TensorType& w = graph[product.w].type;
  const Dim columns = product.columns(graph), length = product.length(graph);
  if (dtype_info(w.dtype).bits != 16 || w.dtype != graph[product.x].type.dtype ||
      (op.type.dtype != w.dtype && op.type.dtype != DType::f32 &&
       !fault(Fault::other_16_bit_result)) ||
      op.type.rank() < 2 || columns.is(0) || !length.is_constant() || !columns.is_constant() ||
      !is_tiled_linear_length(length.constant()))
    return false;
  // The kernel of few tokens streams rows.
  return !product.transposed || is_tiled_linear_length(columns.constant());
}

/// The most tokens of which the own kernel was measured to be faster than the library's call and
/// the order gemv (bench/log/sequences.md, "Chosen without an option").
constexpr int64_t kMostFasterTokens = 64;

/// Whether the own kernel is chosen of few tokens: of a constant number, or of more sequences than
/// gemv takes. Elsewhere it would be faster, too, but one more variant to compile, and one more
/// number of tokens at which bits change.
bool is_faster_of_few_tokens(const Graph& graph, const PlainProduct& product, const SymExpr& count,
                             llvm::ArrayRef<Symbol> symbols, Tokens tokens) {
  if (product.transposed || !can_be_streamed(graph, product.w)) return false;
  if (!count.is_constant() && tokens != Tokens::one_each) return false;
  const int64_t most = count.upper_bound(symbols);
  return most > (count.is_constant() ? kMostGemvTokens : kAllGemvTokens) &&
         most <= kMostFasterTokens;
}

/// Bounds within which the own kernel with its epilogue was measured to be as fast as the library's
/// call and a kernel, or faster (bench/log/products.md, "Epilogues"). Symbols are at their largest.
constexpr int64_t kLeastBytes = int64_t{24} << 20;  // of memory traffic that it saves
constexpr double kLeastInstructions = 20;           // of the epilogue, for an element
constexpr int64_t kMostLength = 1152;               // elements of a sum

}  // namespace

std::optional<ValueId> choose_tiled_linear(Builder& b, const Op& op, Tokens, const Recipe& recipe) {
  const Graph& graph = b.graph();
  if (op.kind != OpKind::linear && op.kind != OpKind::einsum) return std::nullopt;
  const auto product = as_plain_product(graph, op);
  if (!product || !is_tiled(graph, op, *product)) return std::nullopt;
  const int64_t most = volume(DimsRef(op.type.dims).drop_back()).upper_bound(b.symbols());
  const bool is_for_others =
      product->transposed ? most <= Product::kFewTokens
                          : most <= kMostGemvTokens && can_be_streamed(b.graph(), op.operands[1]);
  if (is_for_others && !recipe.invariant) return std::nullopt;
  llvm::SmallVector<ValueId, 3> operands = op.operands;
  if (product->transposed) operands[1] = b.transpose(product->w, {1, 0});
  Attributes attrs;
  if (const AttrValue* dtype = op.attrs.find(AttrName::dtype)) attrs.set(AttrName::dtype, *dtype);
  attrs.set(AttrName::order, Order::tiled_linear);
  return b.op(OpKind::linear, operands, std::move(attrs), op.name);
}

Gain gain_of_tiled_linear(const Graph& graph, const Op& op, llvm::ArrayRef<Symbol> symbols,
                          Tokens tokens, const Recipe& recipe) {
  // A target without its kernel has one order, too: strided_gemm's.
  if (recipe.invariant) return recipe.has_wgmma ? Gain::always : Gain::never;
  if (recipe.products == Recipe::Products::own)
    return Gain::always;  // emission says what a target lacks
  if (recipe.products == Recipe::Products::library || !recipe.has_wgmma ||
      (op.kind != OpKind::linear && op.kind != OpKind::einsum))
    return Gain::never;
  const auto product = as_plain_product(graph, op);
  if (!product || !is_tiled(graph, op, *product)) return Gain::never;
  const SymExpr count = volume(DimsRef(op.type.dims).drop_back());
  if (is_faster_of_few_tokens(graph, *product, count, symbols, tokens)) return Gain::always;
  // One order for every number: a prefill of 16 to 1,000 tokens loses what a longer one gains.
  if (tokens == Tokens::invariant && !count.is_constant()) return Gain::never;
  const bool may_gain_by_epilogue = op.type.dtype == graph[product->w].type.dtype &&
                                    is_tiled_linear_length(op.type.dims.back().constant()) &&
                                    product->length(graph).constant() <= kMostLength &&
                                    // The product is neither written nor read.
                                    volume(op.type.dims).upper_bound(symbols) >= kLeastBytes / 4;
  return may_gain_by_epilogue ? Gain::in_some_groups : Gain::never;
}

bool gains_by_epilogue(const GroupView& group) {
  const FusionProblem& problem = group.problem;
  const Graph& graph = problem.graph();
  const ValueId product = group.anchor();
  const SymExpr elements = volume(graph[product].type.dims);
  llvm::SmallVector<ValueId, 8> epilogue;
  double count = 0;
  for (ValueId member : group.members) {
    if (member == product) continue;
    epilogue.push_back(member);
    if (as_block_sums(graph, member)) continue;
    // Pairs of rows and sections have an epilogue without warpgroups of its own.
    if (volume(graph[member].type.dims) != elements) return false;
    count += instructions(graph, graph[member], {problem.symbols(), problem.sizes()});
  }
  const double saved = problem.traffic(product).total() + problem.traffic(epilogue).total() -
                       problem.traffic(group.members).total();
  return saved >= kLeastBytes && count >= kLeastInstructions * problem.count(elements);
}

std::optional<ValueId> choose_tiled_codes(Builder& b, const Op& op, Tokens, const Recipe& recipe) {
  // Its kernel rounds no element of the matrix.
  if (!is_without_order(op, OpKind::linear) || !recipe.has_wgmma ||
      recipe.codes == Recipe::Codes::rounded)
    return std::nullopt;
  const Graph& graph = b.graph();
  const Op& matrix = graph[op.operands[1]];
  if (matrix.kind != OpKind::dequantize || dtype_info(b.type(op.operands[0]).dtype).bits != 16 ||
      matrix.type.dims[0].is(0) || !is_tiled_linear_length(matrix.type.dims[1].constant()) ||
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
