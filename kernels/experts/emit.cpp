// The text of expert_linear: the sums of a block's rows, then the epilogue of each of them.
//
//   ExpertLinear<Config> product(sums);
//   product.run(x0, x1, x2);
//   const auto x3 = product.sums();
//   const int matrix_row = product.row();
//   if (matrix_row >= 0) { ... load(x3 + ...) ... store(y0 + ..., ...) }
//
// Where the matrices and the numbers of experts may be read early (launch_order.h),
// product.prefetch_rows(x1, x2) and the wait stand before product.run().
#include "codegen/emission/config_text.h"
#include "codegen/emission/emit_index.h"
#include "codegen/emission/emit_scope.h"
#include "codegen/emission/kernel_body.h"
#include "codegen/emission/operand_rows.h"
#include "codegen/emission/packed_matrix.h"
#include "ir/integers.h"
#include "kernels/common/sums_epilogue.h"
#include "kernels/experts/layout.h"

namespace sinter {

Result<KernelBody> emit_experts(const EmitContext& context) {
  OperandRows operands(context);
  const Op& op = operands.op();
  const Graph& group = context.group;
  SINTER_LET(x, operands.pointer(0));
  SINTER_LET(w, operands.pointer(1));
  SINTER_LET(experts, operands.pointer(2));
  const auto epilogue_of = [&](uint32_t row_axes) {
    return SumsEpilogue::create(group, context.anchor->id, group.outputs, context.symbols,
                                row_axes);
  };
  // The sums of one expert if they serve, or else of all experts of a token (admit.cpp).
  auto own = epilogue_of(1);
  const bool one_expert = own.has_value();
  SINTER_LET(epilogue, one_expert ? std::move(own) : epilogue_of(2));
  SINTER_LET(text, epilogue.emit(context.parameters, SumsEpilogue::Access::sum));
  const ColocatedRows& deal = epilogue.rows();
  const int64_t chosen = op.type.dims[1].constant();
  const DimsRef matrices = group[op.operands[1]].type.dims;
  const int64_t rows = matrices[1].constant();
  SINTER_CHECK(one_expert || deal.joins_matrices(chosen, rows),
               "an epilogue that admit.cpp refuses");
  const TensorType& x_type = group[op.operands[0]].type;
  const bool shared = x_type.rank() == 2;
  const int64_t length = x_type.dims.back().constant();

  KernelBody body;
  body.includes = "#include \"kernels/experts/experts.cuh\"\n";
  ConfigText config;
  config.type("Element", memory_type(op.type.dtype))
      .constant("kExperts", matrices[0].constant())
      .constant("kRows", rows)
      .constant("kLength", length)
      .constant("kChosen", chosen)
      .constant("kShared", shared)
      .constant("kTogether", !one_expert)
      .constant("kUnits", deal.units)
      .constant("kStride", deal.stride);
  const bool packed = op.attrs.has(AttrName::codes);
  if (packed) config.type("Matrix", packed_matrix(code_format(op.attrs), length));
  body.globals = text.globals + config.text() + "\n";
  const bool early = context.overlap.reads_early();
  const std::string prefetch =
      early ? fmt::format("fence_acq_rel_gpu();\nproduct.prefetch_rows({}, {});\n{}", w, experts,
                          wait_text(context.overlap))
            : "";
  body.waits = early;
  body.early_inputs = context.overlap.early_inputs;
  body.text = fmt::format(
      "__shared__ float sums[kExpertBlockRows];\n"
      "ExpertLinear<Config> product(sums);\n{}"
      "product.run({}, {}, {});\n"
      "const auto x{} = product.sums();\n"
      "const long long row = product.group();\n"
      "const int matrix_row = product.row();\n"
      "if (matrix_row >= 0) {{\n{}}}\n",
      prefetch, x, w, experts, epilogue.inputs(), indented(epilogue.of_matrix_row(text.sections)));
  static_assert(ColocatedRows::kMaxUnits <= kExpertThreads / 32);
  body.launch.rows = SymExpr(op.type.dims[0]) * SymExpr(one_expert ? chosen : 1);
  body.launch.items_per_row = ceil_div(one_expert ? rows / deal.units : rows,
                                       expert_block_classes(static_cast<int>(deal.units)));
  body.launch.threads = kExpertThreads;
  // With 64 registers a thread spills 72 to 160 bytes where codes have 4 bits (ptxas 13, sm_90a).
  body.resident_blocks = kThreadsOf64Registers / kExpertThreads - (packed ? 1 : 0);
  return body;
}

}  // namespace sinter
