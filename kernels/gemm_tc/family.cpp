// Products of 16-bit elements on tensor cores, with an epilogue.
#include "kernels/family.h"

#include <algorithm>

#include "codegen/emission/kernel_body.h"
#include "ir/integers.h"
#include "kernels/gemm_tc/schedule.h"

namespace sinter {

EmitKernel emit_tiled_linear;
std::optional<ValueId> choose_tiled_linear(Builder& b, const Op& op, Tokens tokens);

namespace {

constexpr Order kOrders[] = {Order::tiled_linear};

/// Operands come from memory, by tensor maps; the result goes to the epilogue by tile.
Ports tiled_linear_ports(const Graph&, const Op& op) {
  Ports ports;
  ports.result = {
      .port = Port::tile, .row_axes = static_cast<uint32_t>(op.type.rank() - 1), .walked = {}};
  return ports;
}

std::optional<KernelCost> tiled_linear_cost(const GroupView& group, int64_t) {
  const FusionProblem& problem = group.problem;
  const Dims& dims = problem.graph()[group.anchor()].type.dims;
  const int64_t columns = dims.back().constant();
  const auto config = tiled_linear_config(columns, problem.device());
  if (!config) return std::nullopt;
  const double rows = problem.count(volume(DimsRef(dims).drop_back()));
  const auto column_tiles = static_cast<double>(ceil_div(columns, config->columns));
  return product_cost(group, std::max(1.0, rows / static_cast<double>(config->rows)) * column_tiles,
                      config->threads);
}

bool tiled_linear_addresses(const Graph& graph, const Op& op, size_t operand,
                            llvm::ArrayRef<Symbol> symbols) {
  const ValueId id = op.operands[operand];
  return operand < 2 ? tensor_map_rows(graph, id, symbols).has_value() : is_dense(graph, id);
}

KernelChoice explain_choice(const Op& own) {
  return {"product", fmt::format("--products own, of {}", to_string(own.type.dtype))};
}

}  // namespace

extern const KernelFamily gemm_tc_family;
constinit const KernelFamily gemm_tc_family{
    .name = "gemm_tc",
    .kind = KernelFamily::Kind::anchored,
    .orders = kOrders,
    .make = emit_tiled_linear,
    .cost = tiled_linear_cost,
    .ports = tiled_linear_ports,
    .on_request = true,
    .choose = choose_tiled_linear,
    .explain_choice = explain_choice,
    .addresses = tiled_linear_addresses,
};

}  // namespace sinter
