// Products on tensor cores, with an epilogue: of 16-bit elements where they are requested or
// faster, and of matrices of codes.
#include "kernels/family.h"

#include <algorithm>
#include <cmath>

#include "codegen/emission/kernel_body.h"
#include "ir/grouping.h"
#include "ir/integers.h"
#include "kernels/products/layout.h"
#include "kernels/products/schedule.h"

namespace sinter {

/// `steps`: the order of a sum's steps, a struct of device text as AscendingSteps.
Result<KernelBody> emit_product(const EmitContext& context, std::string_view steps);
std::optional<Verdict> admits_product_epilogue(const GroupView& group, GroupShape& merged);
std::optional<ValueId> choose_tiled_linear(Builder& b, const Op& op, Tokens tokens,
                                           const Recipe& recipe);
Gain gain_of_tiled_linear(const Graph& graph, const Op& op, llvm::ArrayRef<Symbol> symbols,
                          Tokens tokens, const Recipe& recipe);
bool gains_by_epilogue(const GroupView& group);
std::optional<ValueId> choose_tiled_codes(Builder& b, const Op& op, Tokens tokens,
                                          const Recipe& recipe);

namespace {

constexpr OpKind kAnchors[] = {OpKind::grouped_linear, OpKind::grouped_outer};
constexpr Order kOrders[] = {Order::tiled_linear}, kCodesOrders[] = {Order::tiled_codes};

/// Operands come from memory, by tensor maps; the result goes to the epilogue by tile, or
/// by sections of the matrix's rows (admit.cpp).
Ports ports(const Graph&, const Op& op) {
  Ports result;
  result.result = {
      .port = Port::tile, .row_axes = static_cast<uint32_t>(op.type.rank() - 1), .walked = {}};
  return result;
}

/// Few tokens take as long as their copies; others as the multiprocessor with the most tiles.
std::optional<KernelCost> cost_of(const GroupView& group, int64_t) {
  const FusionProblem& problem = group.problem;
  const Graph& graph = problem.graph();
  const Op& op = graph[group.anchor()];
  const Product product = product_of(graph, op, problem.symbols());
  const auto config = product_config(product, problem.device());
  if (!config) return std::nullopt;
  if (product.loop() == Product::Loop::few)
    return product_cost(group, {.blocks = static_cast<double>(config->blocks)}, config->threads);
  const ProductTile& tile = config->tile();
  const auto of_tokens = static_cast<double>(tile.tokens),
             of_rows = static_cast<double>(tile.matrix_rows);
  // A cluster takes tiles side by side.
  const double tiles =
      std::max(1.0, std::ceil(problem.count(product.tokens.count) / of_tokens)) *
      static_cast<double>(ceil_div(product.matrix.rows, tile.matrix_rows * config->cluster) *
                          config->cluster);
  return product_cost(
      group,
      {.blocks = tiles,
       .slowest = slowest_tiles(problem.device(), product.elements, tiles, of_tokens, of_rows,
                                static_cast<double>(product.sum_length())),
       .stores_behind = !config->in_turns},
      config->threads);
}

bool addresses(const Graph& graph, const Op& op, size_t operand, llvm::ArrayRef<Symbol> symbols) {
  const ValueId id = op.operands[operand];
  if (operand == 2) return is_dense(graph, id);
  if (tensor_map_rows(graph, id, symbols)) return true;
  // The kernels of few tokens and of codes stream the matrix's rows, and so does one of sums over
  // runs.
  const Product product = product_of(graph, op, symbols);
  return operand == 1 && product.loop() == Product::Loop::many && product.groups.summed_rows == 0 &&
         product.matrix.form == Product::Matrix::Form::transposed;
}

/// Few tokens, or a packed matrix: it is copied while earlier kernels run.
EarlyWish early_reads(const Graph& group, ValueId anchor, llvm::ArrayRef<Symbol> symbols) {
  const Op& op = group[anchor];
  const std::optional<uint32_t> matrix = input_of(group, op.operands[1]);
  EarlyWish wish;
  const Product product = product_of(group, op, symbols);
  if (matrix && product.loop() != Product::Loop::many && product.groups.count == 0 &&
      is_never_empty(group, symbols))
    wish.needed.push_back(*matrix);
  return wish;
}

/// A warpgroup of the epilogue has 64 rows (kernels/tile/epilogue/rounded.cuh).
std::optional<SideResult> product_side_result(const Graph&, const Op& op, SideKind kind) {
  const SymExpr tokens = volume(DimsRef(op.type.dims).drop_back());
  const Dim columns = op.type.dims.back();
  if (kind != SideKind::block_sums || op.kind != OpKind::linear || !tokens.is_constant() ||
      tokens.constant() <= Product::kFewTokens || !columns.is_constant() ||
      columns.constant() % kRowChunk != 0 || dtype_info(op.type.dtype).bits != 16)
    return std::nullopt;
  return SideResult{.size = 64, .of_epilogue = true};
}

/// The kernel of many tokens has one tile, which is chosen for the most tokens. Up to this number a
/// variant has a kernel of its own. (One H200, a prefill of 512 tokens of Llama-3.2-1B: 3.49 ms
/// with the tile for 16,384 tokens, 2.99 with the one for 1,024, 2.22 by the library.)
constexpr int64_t kMediumTokens = 512;

uint8_t form(const Graph& graph, const Op& op, llvm::ArrayRef<Symbol> symbols) {
  const Product product = product_of(graph, op, symbols);
  const bool is_medium =
      product.loop() == Product::Loop::many && product.tokens.most <= kMediumTokens;
  return static_cast<uint8_t>(2 * static_cast<int>(product.loop()) + (is_medium ? 1 : 0));
}

Result<KernelBody> emit_ascending(const EmitContext& context) {
  return emit_product(context, "AscendingSteps");
}

KernelChoice explain_choice(const Graph& graph, const Op& own) {
  if (own.kind == OpKind::grouped_linear)
    return {"product",
            fmt::format("runs of rows, each by one of {} matrices of {}",
                        graph[own.operands[1]].type.dims[0].constant(), to_string(own.type.dtype))};
  return {"product", fmt::format("Sinter's own, of {}", to_string(own.type.dtype))};
}

KernelChoice explain_codes(const Graph&, const Op& own) {
  return {"product",
          fmt::format("{} codes, on tensor cores", code_info(code_format(own.attrs).code).name)};
}

}  // namespace

extern const KernelFamily tiled_linear_family;
constinit const KernelFamily tiled_linear_family{
    .name = "tiled_linear",
    .kind = KernelFamily::Kind::anchored,
    .anchors = kAnchors,
    .orders = kOrders,
    .make = emit_ascending,
    .cost = cost_of,
    .ports = ports,
    .admits_epilogue = admits_product_epilogue,
    .choosing = {.gain = gain_of_tiled_linear,
                 .gains_in = gains_by_epilogue,
                 .choose = choose_tiled_linear,
                 .form = form,
                 .explain = explain_choice},
    .addresses = addresses,
    .side_result = product_side_result,
    .early_reads = early_reads,
};

extern const KernelFamily tiled_codes_family;
constinit const KernelFamily tiled_codes_family{
    .name = "tiled_codes",
    .kind = KernelFamily::Kind::anchored,
    .orders = kCodesOrders,
    .make = emit_ascending,
    .cost = cost_of,
    .ports = ports,
    .admits_epilogue = admits_product_epilogue,
    .choosing = {.choose = choose_tiled_codes, .explain = explain_codes},
    .addresses = addresses,
    .early_reads = early_reads,
};

}  // namespace sinter
