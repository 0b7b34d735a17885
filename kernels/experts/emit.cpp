// The text of expert_linear: a call of kernels/experts/experts.cuh, and the ports of its result.
#include "codegen/emission/config_text.h"
#include "codegen/emission/element_ports.h"
#include "codegen/emission/emit_index.h"
#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/kernel_body.h"
#include "codegen/emission/operand_rows.h"
#include "ir/integers.h"
#include "kernels/experts/layout.h"

namespace sinter {

Result<KernelBody> emit_experts(const EmitContext& context) {
  OperandRows operands(context);
  const Op& op = operands.op();
  const Dims &x_dims = context.group[op.operands[0]].type.dims,
             &w_dims = context.group[op.operands[1]].type.dims;
  SINTER_LET(x, operands.pointer(0));
  SINTER_LET(w, operands.pointer(1));
  SINTER_LET(experts, operands.pointer(2));
  SINTER_LET(ports, emit_ports(context, kExpertThreads));
  const int64_t chosen = op.type.dims[1].constant(), rows = w_dims[1].constant();
  const SymExpr pairs = SymExpr(op.type.dims[0]) * SymExpr(chosen);

  KernelBody body;
  body.includes = "#include \"kernels/experts/experts.cuh\"\n" + ports.includes;
  body.globals = ports.memory + ports.accessors + ports.store_globals;
  body.globals += ConfigText()
                      .type("Element", memory_type(op.type.dtype))
                      .constant("kExperts", w_dims[0].constant())
                      .constant("kRows", rows)
                      .constant("kLength", w_dims[2].constant())
                      .constant("kPairsOfRow", x_dims.size() == 2 ? chosen : 1)
                      .text() +
                  "\n";
  body.text = ports.memory_value +
              call_text("expert_linear<Config>", {x, w, experts, "PortResult{memory}"}) +
              ports.stores;
  body.launch.rows = pairs;
  body.launch.items_per_row = ceil_div(rows, int64_t{kExpertBlockRows});
  body.launch.threads = kExpertThreads;
  body.resident_blocks = kThreadsOf64Registers / kExpertThreads;
  return body;
}

}  // namespace sinter
