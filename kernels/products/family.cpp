// Products on tensor cores, with an epilogue: of 16-bit elements where they are requested or gain
// by a long epilogue, and of matrices of codes.
#include "kernels/family.h"

#include <algorithm>
#include <cmath>

#include "codegen/emission/kernel_body.h"
#include "ir/grouping.h"
#include "ir/integers.h"
#include "kernels/products/layout.h"
#include "kernels/products/schedule.h"

namespace sinter {

EmitKernel emit_tiled_linear;
std::optional<Verdict> admits_tiled_linear_epilogue(const GroupView& group, GroupShape& merged);
std::optional<ValueId> choose_tiled_linear(Builder& b, const Op& op, Tokens tokens);
bool gains_by_epilogue(const Graph& graph, ValueId id, Readers readers);
std::optional<ValueId> choose_tiled_codes(Builder& b, const Op& op, Tokens tokens);

namespace {

constexpr Order kOrders[] = {Order::tiled_linear}, kCodesOrders[] = {Order::tiled_codes};

/// Operands come from memory, by tensor maps; the result goes to the epilogue by tile, or
/// by sections of the matrix's rows (admit.cpp).
Ports tiled_linear_ports(const Graph&, const Op& op) {
  Ports ports;
  ports.result = {
      .port = Port::tile, .row_axes = static_cast<uint32_t>(op.type.rank() - 1), .walked = {}};
  return ports;
}

std::optional<KernelCost> tiled_linear_cost(const GroupView& group, int64_t) {
  const FusionProblem& problem = group.problem;
  const Op& op = problem.graph()[group.anchor()];
  const Dims& dims = op.type.dims;
  const int64_t columns = dims.back().constant();
  const int64_t most = most_tokens(op, problem.symbols());
  if (most <= kMostFewTokens) {
    const auto config =
        few_tokens_config(few_tokens_problem(problem.graph(), op, most), problem.device());
    if (!config) return std::nullopt;
    return product_cost(group, {.blocks = static_cast<double>(config->blocks)}, config->threads);
  }
  const auto config = tiled_linear_config(
      tiled_linear_problem(problem.graph(), op, most, 0, problem.symbols()), problem.device());
  if (!config) return std::nullopt;
  const double rows = problem.count(volume(DimsRef(dims).drop_back()));
  const auto of_rows = static_cast<double>(config->rows),
             of_columns = static_cast<double>(config->columns);
  // A cluster takes tiles side by side.
  const double tiles =
      std::max(1.0, std::ceil(rows / of_rows)) *
      static_cast<double>(ceil_div(columns, config->columns * config->cluster) * config->cluster);
  const Dims& matrix = problem.graph()[op.operands[1]].type.dims;
  return product_cost(
      group,
      {.blocks = tiles,
       .slowest = slowest_tiles(problem.device(), problem.graph()[op.operands[0]].type.dtype, tiles,
                                of_rows, of_columns, static_cast<double>(matrix[1].constant())),
       .stores_behind = !config->in_turns},
      config->threads);
}

std::optional<KernelCost> tiled_codes_cost(const GroupView& group, int64_t) {
  const FusionProblem& problem = group.problem;
  const Op& op = problem.graph()[group.anchor()];
  const auto config =
      codes_config(problem.graph(), op, most_tokens(op, problem.symbols()), problem.device());
  if (!config) return std::nullopt;
  const double tokens = problem.count(volume(DimsRef(op.type.dims).drop_back()));
  const FewTokensForm& form = config->forms.back();
  const auto of_rows = static_cast<double>(form.rows),
             of_columns = static_cast<double>(form.columns);
  const double tiles = std::max(1.0, std::ceil(tokens / of_columns)) *
                       static_cast<double>(ceil_div(op.type.dims.back().constant(), form.rows));
  const TensorType& x = problem.graph()[op.operands[0]].type;
  return product_cost(group,
                      {.blocks = tiles,
                       .slowest = slowest_tiles(problem.device(), x.dtype, tiles, of_rows,
                                                of_columns, problem.extent(x.dims.back())),
                       .stores_behind = true},
                      config->threads);
}

bool tiled_linear_addresses(const Graph& graph, const Op& op, size_t operand,
                            llvm::ArrayRef<Symbol> symbols) {
  const ValueId id = op.operands[operand];
  if (operand == 2) return is_dense(graph, id);
  // The kernels of few tokens and of codes stream the matrix's rows.
  const bool takes_columns = operand == 1 && order_of(op) == Order::tiled_linear &&
                             most_tokens(op, symbols) > kMostFewTokens;
  return tensor_map_rows(graph, id, symbols).has_value() ||
         (takes_columns && tensor_map_columns(graph, id, symbols).has_value());
}

/// Few tokens, or a packed matrix: it is copied while earlier kernels run.
EarlyWish early_reads(const Graph& group, ValueId anchor, llvm::ArrayRef<Symbol> symbols) {
  const Op& op = group[anchor];
  const std::optional<uint32_t> matrix = input_of(group, op.operands[1]);
  EarlyWish wish;
  if (matrix &&
      (order_of(op) == Order::tiled_codes || most_tokens(op, symbols) <= kMostFewTokens) &&
      is_never_empty(group, symbols))
    wish.needed.push_back(*matrix);
  return wish;
}

/// A warpgroup of the epilogue has 64 rows (rounded_tiles.cuh).
int64_t summed_rows(const Graph&, const Op& op) {
  const SymExpr tokens = volume(DimsRef(op.type.dims).drop_back());
  const Dim columns = op.type.dims.back();
  return tokens.is_constant() && tokens.constant() > kMostFewTokens && columns.is_constant() &&
                 columns.constant() % kFewTokensChunk == 0 && dtype_info(op.type.dtype).bits == 16
             ? 64
             : 0;
}

Permission permission(const Recipe& recipe) {
  switch (recipe.products) {
    case Recipe::Products::own:
      return Permission::always;  // emission says what a target lacks
    case Recipe::Products::library:
      return Permission::never;
    case Recipe::Products::automatic:
      break;
  }
  return recipe.has_wgmma ? Permission::where_it_gains : Permission::never;
}

/// Its kernel rounds no element of the matrix.
Permission codes_permission(const Recipe& recipe) {
  return recipe.has_wgmma && recipe.codes != Recipe::Codes::rounded ? Permission::always
                                                                    : Permission::never;
}

KernelChoice explain_choice(const Op& own) {
  return {"product", fmt::format("Sinter's own, of {}", to_string(own.type.dtype))};
}

KernelChoice explain_codes(const Op& own) {
  return {"product",
          fmt::format("{} codes, on tensor cores", code_info(code_format(own.attrs).code).name)};
}

}  // namespace

extern const KernelFamily tiled_linear_family;
constinit const KernelFamily tiled_linear_family{
    .name = "tiled_linear",
    .kind = KernelFamily::Kind::anchored,
    .orders = kOrders,
    .make = emit_tiled_linear,
    .cost = tiled_linear_cost,
    .ports = tiled_linear_ports,
    .admits_epilogue = admits_tiled_linear_epilogue,
    .permission = permission,
    .gains = gains_by_epilogue,
    .choose = choose_tiled_linear,
    .explain_choice = explain_choice,
    .addresses = tiled_linear_addresses,
    .summed_rows = summed_rows,
    .early_reads = early_reads,
};

extern const KernelFamily tiled_codes_family;
constinit const KernelFamily tiled_codes_family{
    .name = "tiled_codes",
    .kind = KernelFamily::Kind::anchored,
    .orders = kCodesOrders,
    .make = emit_tiled_linear,
    .cost = tiled_codes_cost,
    .ports = tiled_linear_ports,
    .admits_epilogue = admits_tiled_linear_epilogue,
    .permission = codes_permission,
    .choose = choose_tiled_codes,
    .explain_choice = explain_codes,
    .addresses = tiled_linear_addresses,
    .early_reads = early_reads,
};

}  // namespace sinter
