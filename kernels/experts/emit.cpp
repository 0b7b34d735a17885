// The text of expert_linear: the sums of a block's rows, then the epilogue of each of them.
//
//   ExpertLinear<Config> product(sums);
//   product.run(x0, x1, x2);
//   const auto x3 = product.sums();
//   if (threadIdx.x < product.rows()) { ... load(x3 + ...) ... store(y0 + ..., ...) }
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
  SINTER_LET(epilogue,
             SumsEpilogue::create(group, context.anchor->id, group.outputs, context.symbols));
  SINTER_LET(text, epilogue.emit(context.parameters, SumsEpilogue::Access::sum));
  const ColocatedRows& deal = epilogue.rows();
  const int64_t chosen = op.type.dims[1].constant();
  const DimsRef matrices = group[op.operands[1]].type.dims;
  const TensorType& x_type = group[op.operands[0]].type;
  const bool shared = x_type.rank() == 2;
  const int64_t length = x_type.dims.back().constant();

  KernelBody body;
  body.includes = "#include \"kernels/experts/experts.cuh\"\n";
  ConfigText config;
  config.type("Element", memory_type(op.type.dtype))
      .constant("kExperts", matrices[0].constant())
      .constant("kRows", matrices[1].constant())
      .constant("kLength", length)
      .constant("kPairsOfRow", shared ? chosen : 1)
      .constant("kUnits", deal.units)
      .constant("kStride", deal.stride);
  const bool packed = op.attrs.has(AttrName::codes);
  if (packed) config.type("Matrix", packed_matrix(code_format(op.attrs), length));
  body.globals = text.globals + config.text() + "\n";
  body.text = fmt::format(
      "__shared__ float sums[kExpertBlockRows];\n"
      "ExpertLinear<Config> product(sums);\n"
      "product.run({}, {}, {});\n"
      "const auto x{} = product.sums();\n"
      "const long long row = product.pair();\n"
      "if (static_cast<int>(threadIdx.x) < product.rows()) {{\n"
      "  const int matrix_row = product.row(static_cast<int>(threadIdx.x));\n{}}}\n",
      x, w, experts, epilogue.inputs(), indented(epilogue.of_matrix_row(text.sections)));
  body.launch.rows = SymExpr(op.type.dims[0]) * SymExpr(chosen);
  body.launch.items_per_row =
      ceil_div(matrices[1].constant() / deal.units, int64_t{kExpertBlockRows} / deal.units);
  body.launch.threads = kExpertThreads;
  // With 64 registers a thread spills 72 to 160 bytes where codes have 4 bits (ptxas 13, sm_90a).
  body.resident_blocks = kThreadsOf64Registers / kExpertThreads - (packed ? 1 : 0);
  return body;
}

}  // namespace sinter
