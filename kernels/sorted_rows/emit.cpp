// The text of a sort: a call of the kernel library. The kernel computes the results of the op and
// of its companions.
#include <llvm/ADT/STLExtras.h>

#include "codegen/emission/emit_index.h"
#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/kernel_body.h"
#include "codegen/emission/operand_rows.h"
#include "kernels/sorted_rows/layout.h"

namespace sinter {

Result<KernelBody> emit_sorted_rows(const EmitContext& context) {
  const OperandRows operands(context);
  const Op& op = operands.op();
  const Graph& group = context.group;
  SINTER_LET(numbers, operands.pointer(0));
  const auto runs = static_cast<int>(op.attrs.get<int64_t>(AttrName::count));
  const auto result = [&](OpKind kind) -> std::string {
    const auto at =
        llvm::find_if(group.outputs, [&](ValueId id) { return group[id].kind == kind; });
    return at == group.outputs.end() ? "nullptr" : fmt::format("y{}", at - group.outputs.begin());
  };
  const SymExpr count = volume(group[op.operands[0]].type.dims);
  KernelBody body;
  body.includes = "#include \"kernels/sorted_rows/sorted_rows.cuh\"\n";
  body.text = fmt::format(
      "__shared__ CountingSort<{0}>::Shared shared;\n"
      "sort_numbers<{0}>({1}, {2}, {3}, {4}, {5}, shared);\n",
      runs, numbers, size_code(count, context.parameters, false), result(OpKind::sorted_positions),
      result(OpKind::sorted_places), result(OpKind::run_ends));
  body.launch.rows = count + SymExpr(1);  // of no numbers the ends are zeros
  body.launch.items_per_block = kSortedPerBlock;
  body.launch.threads = 32 * sort_warps(runs);
  body.resident_blocks = 1;
  return body;
}

}  // namespace sinter
