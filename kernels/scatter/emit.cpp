// scatter_add: how many rows and columns of the result a block of kernels/scatter/scatter.cuh has.
#include <algorithm>

#include "codegen/emission/config_text.h"
#include "codegen/emission/element_ports.h"
#include "codegen/emission/emit_index.h"
#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/kernel_body.h"
#include "codegen/emission/operand_rows.h"
#include "ir/integers.h"
#include "kernels/scatter/layout.h"

namespace sinter {
namespace {

// Every block reads the whole index, so that there are no more blocks than the device holds at a
// time, if a block then has no more rows than these: longer lists take longer to walk.
constexpr int64_t kBlocksOfProcessor = 8;
constexpr int64_t kMaxRowsOfBlock = 64;

}  // namespace

Result<KernelBody> emit_scatter(const EmitContext& context) {
  OperandRows operands(context);
  const Op& op = operands.op();
  SINTER_LET(index, operands.pointer(0));
  SINTER_LET(updates, operands.rows(1));
  SINTER_LET(ports, emit_ports(context, kScatterThreads));
  const SymExpr rows(op.type.dims[0]), columns(op.type.dims[1]);
  const SymExpr count(context.group[op.operands[1]].type.dims[0]);
  const int64_t blocks = kBlocksOfProcessor * context.device.multiprocessors;
  const int64_t most_rows = std::max<int64_t>(rows.upper_bound(context.symbols), 1);
  int64_t of_block = 1;
  while (of_block < kMaxRowsOfBlock && of_block * blocks < most_rows) of_block *= 2;
  // Few rows: blocks share their columns.
  const int64_t slices =
      std::max<int64_t>(ceil_div(columns.upper_bound(context.symbols), kScatterColumns), 1);
  const int64_t groups = of_block > 1 ? 1 : std::clamp<int64_t>(blocks / most_rows, 1, slices);
  const bool aligned = operands.aligned() && columns.divisor(context.symbols) % 8 == 0;
  const auto code = [&](const SymExpr& e) { return size_code(e, context.parameters, false); };

  KernelBody body;
  body.includes = "#include \"kernels/scatter/scatter.cuh\"\n" + ports.includes;
  body.globals = ports.memory + ports.accessors + ports.store_globals;
  body.globals += ConfigText()
                      .type("Element", memory_type(op.type.dtype))
                      .constant("kRows", of_block)
                      .constant("kGroups", groups)
                      .constant("kAligned", aligned)
                      .text() +
                  "\n";
  body.text = "__shared__ ScatterShared shared;\n" + ports.memory_value +
              call_text("scatter_add<Config>", {index, code(count), updates, "PortResult{memory}",
                                                braced({code(rows), code(columns)}), "shared"}) +
              ports.stores;
  body.launch.rows = rows;
  body.launch.items_per_row = groups;
  body.launch.items_per_block = of_block;
  body.launch.threads = kScatterThreads;
  body.resident_blocks = kThreadsOf64Registers / kScatterThreads;
  return body;
}

}  // namespace sinter
