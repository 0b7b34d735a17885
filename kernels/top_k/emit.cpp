// The text of top_k: a call of the kernel library.
#include "codegen/emission/emit_index.h"
#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/kernel_body.h"
#include "codegen/emission/operand_rows.h"
#include "ir/integers.h"
#include "kernels/top_k/order.h"

namespace sinter {

Result<KernelBody> emit_top_k(const EmitContext& context) {
  SINTER_LET(operands, OperandRows::create(context));
  const Op& op = operands.op();
  SINTER_LET(rows, operands.rows(0));
  const SymExpr count(op.type.dims[0]);
  KernelBody body;
  body.includes = "#include \"kernels/top_k/top_k.cuh\"\n";
  body.text = fmt::format(
      "top_k<{}, {}>({}, {}, y0);\n", context.group[op.operands[0]].type.dims[1].constant(),
      op.attrs.get<int64_t>(AttrName::count), rows, size_code(count, context.parameters, false));
  body.launch.rows = count;
  body.launch.items_per_block = kTopKThreads / 32;
  body.launch.threads = kTopKThreads;
  body.resident_blocks = kThreadsOf64Registers / kTopKThreads;
  return body;
}

}  // namespace sinter
