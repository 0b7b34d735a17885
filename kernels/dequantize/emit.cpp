// dequantize: a thread for each chunk of 8 codes (kernels/dequantize/dequantize.cuh).
#include "codegen/emission/element_ports.h"
#include "codegen/emission/emit_index.h"
#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/kernel_body.h"
#include "codegen/emission/operand_rows.h"
#include "codegen/emission/packed_matrix.h"
#include "ir/integers.h"

namespace sinter {
namespace {

constexpr int64_t kDequantizeThreads = 256;

}  // namespace

Result<KernelBody> emit_dequantize(const EmitContext& context) {
  const OperandRows operands(context);
  const Op& op = operands.op();
  SINTER_LET(packed, operands.pointer(0));
  SINTER_LET(ports, emit_ports(context, kDequantizeThreads));
  const int64_t length = op.type.dims.back().constant();
  const SymExpr rows = volume(DimsRef(op.type.dims).drop_back());
  KernelBody body;
  body.includes = "#include \"kernels/dequantize/dequantize.cuh\"\n" + ports.includes;
  body.globals =
      ports.memory + ports.accessors + ports.store_globals +
      fmt::format("using Matrix = {};\n\n", packed_matrix(code_format(op.attrs), length));
  body.text =
      fmt::format("{}dequantize<Matrix>({}, {}, PortResult{{memory}});\n{}", ports.memory_value,
                  packed, size_code(rows, context.parameters, false), ports.stores);
  body.launch.rows = rows;
  body.launch.items_per_row = ceil_div(length, int64_t{kCodeChunk});
  body.launch.items_per_block = kDequantizeThreads;
  body.launch.threads = kDequantizeThreads;
  body.resident_blocks = kThreadsOf64Registers / kDequantizeThreads;
  return body;
}

}  // namespace sinter
