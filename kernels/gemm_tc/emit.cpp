// The kernel of a group around tiled_linear: tensor maps of both operands, and an accessor of the
// result that holds the text of the epilogue.
#include "kernels/tile/emit.h"

#include "codegen/emission/element_ports.h"
#include "codegen/emission/emit_index.h"
#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/kernel_body.h"
#include "codegen/emission/operand_rows.h"
#include "ir/integers.h"
#include "kernels/gemm_tc/schedule.h"

namespace sinter {
namespace {

/// The tensor map of an operand, in boxes of `rows` rows of a panel.
Result<TensorMap> tensor_map(const EmitContext& context, size_t operand, int64_t rows) {
  const Graph& group = context.group;
  const ValueId id = context.anchor_op().operands[operand];
  const auto matrix = tensor_map_rows(group, id, context.symbols);
  if (!matrix)
    return fail("tiled_linear reads a matrix that no tensor map describes", {}, {},
                ExitCode::internal_error);
  const DimsRef dims = group[id].type.dims;
  return TensorMap{.input = *input_of(group, id),
                   .offset = matrix->offset,
                   .dims = {SymExpr(dims.back()), volume(dims.drop_back())},
                   .strides = {matrix->row_stride},
                   .box = {kTiledLinearDepth, rows},
                   .swizzle = 2 * kTiledLinearDepth};
}

}  // namespace

Result<KernelBody> emit_tiled_linear(const EmitContext& context) {
  const Op& op = context.anchor_op();
  const int64_t columns = op.type.dims.back().constant();
  const int64_t length = context.group[op.operands[1]].type.dims[1].constant();
  const auto config = tiled_linear_config(columns, context.device);
  if (!config)
    return fail(
        fmt::format("Sinter's own product on tensor cores does not run on {}", context.device.name),
        {}, "compile for sm_90a, or without --products own");
  KernelBody body;
  for (const auto& [operand, rows] : {std::pair(0, config->rows), {1, config->columns}}) {
    SINTER_LET(map, tensor_map(context, static_cast<size_t>(operand), rows));
    body.tensor_maps.push_back(std::move(map));
  }
  std::string bias = "nullptr";
  if (op.operands.size() == 3) {
    SINTER_LET(pointer, OperandRows(context).pointer(2));
    bias = std::move(pointer);
  }
  SINTER_LET(ports, emit_ports(context, config->threads));
  body.includes += "#include \"kernels/gemm_tc/gemm_tc.cuh\"\n" + ports.includes;
  body.globals = ports.memory + ports.accessors + ports.store_globals;
  body.globals += fmt::format(
      "struct Config {{\n"
      "  using Element = {};\n"
      "  using ResultElement = {};\n"
      "  static constexpr int kLength = {}, kResultColumns = {};\n"
      "  static constexpr int kRows = {}, kColumns = {}, kDepth = {}, kStages = {};\n"
      "  static constexpr bool kBias = {};\n"
      "}};\n\n",
      memory_type(context.group[op.operands[0]].type.dtype), memory_type(op.type.dtype), length,
      columns, config->rows, config->columns, kTiledLinearDepth, config->stages,
      op.operands.size() == 3);
  const SymExpr rows = volume(DimsRef(op.type.dims).drop_back());
  body.text = fmt::format(
      "{}{}multiply_matrices<Config>(t0, t1, {}, {}, PortResult{{memory}}, "
      "shared_memory);\n{}",
      kTileMemory, ports.memory_value, bias, size_code(rows, context.parameters, false),
      ports.stores);
  const int64_t column_tiles = ceil_div(columns, config->columns);
  set_tile_launch(body, context.device,
                  {.work_tiles = (rows + SymExpr(config->rows - 1)) * SymExpr(column_tiles),
                   .units_per_tile = config->rows,
                   .threads = config->threads,
                   .shared_bytes = config->shared_bytes,
                   .persistent = true});
  body.minimum_arch = kFirstArchWithClusters;
  return body;
}

}  // namespace sinter
