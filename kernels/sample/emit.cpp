// The text of sample: a call of the kernel library with the addresses of the operands.
#include "codegen/emission/emit_index.h"
#include "codegen/emission/kernel_body.h"
#include "codegen/emission/operand_rows.h"
#include "kernels/sample/order.h"

namespace sinter {

Result<KernelBody> emit_sample(const EmitContext& context) {
  SINTER_LET(operands, OperandRows::create(context));
  const Op& op = operands.op();
  SINTER_LET(logits, operands.rows(0));
  std::string vectors;  // of one value a row
  for (size_t operand = 1; operand < op.operands.size(); ++operand) {
    SINTER_LET(vector, operands.pointer(operand));
    vectors += vector + ", ";
  }
  KernelBody body;
  body.includes = "#include \"kernels/sample/sample.cuh\"\n";
  body.text = fmt::format("__shared__ SampleShared shared;\nsample({}, {}, {}y0, shared);\n",
                          logits, context.group[op.operands[0]].type.dims[1].constant(), vectors);
  body.launch.rows = SymExpr(op.type.dims[0]);
  body.launch.threads = kSampleThreads;
  // Beside the product that it waits for.
  body.resident_blocks = kThreadsOf64Registers / kSampleThreads;
  return body;
}

}  // namespace sinter
