#include "codegen/emission/operand_rows.h"

#include <llvm/ADT/STLExtras.h>

#include "codegen/emission/emit_index.h"
#include "ir/contraction.h"
#include "ir/grouping.h"

namespace sinter {

Result<OperandRows> OperandRows::create(const EmitContext& context) {
  const Graph& group = context.group;
  const Op& op = context.anchor_op();
  const bool alone = llvm::count_if(group.ops(), [](const Op& other) {
                       return op_class(other) != OpClass::view && op_class(other) != OpClass::leaf;
                     }) == 1;
  if (!alone || group.outputs.size() != 1 || &group[group.outputs[0]] != &op)
    return fail(fmt::format("a kernel of {} computes nothing else", algorithm_name(op)), {},
                "compute the ops in separate kernels", ExitCode::internal_error);
  return OperandRows(context);
}

std::string OperandRows::root(size_t operand) const {
  return fmt::format("x{}", *input_of(context_->group, op_->operands[operand]));
}

Result<std::string> OperandRows::pointer(size_t operand) const {
  if (!is_dense(context_->group, op_->operands[operand]))
    return fail(fmt::format("{} reads a value that does not stand in memory as it is",
                            algorithm_name(*op_)),
                {}, {}, ExitCode::internal_error);
  return root(operand);
}

Result<std::string> OperandRows::rows(size_t operand) {
  const auto matrix = strided_rows(context_->group, op_->operands[operand]);
  if (!matrix)
    return fail(fmt::format("{} reads a matrix without rows of neighbouring elements",
                            algorithm_name(*op_)),
                {}, {}, ExitCode::internal_error);
  aligned_ = aligned_ && matrix->row_stride.divisor(context_->symbols) % 8 == 0 &&
             matrix->offset.divisor(context_->symbols) % 8 == 0;
  const std::string offset =
      matrix->offset.is(0) ? "" : " + " + size_code(matrix->offset, context_->parameters);
  return fmt::format("{}{}, {}", root(operand), offset,
                     size_code(matrix->row_stride, context_->parameters, false));
}

}  // namespace sinter
