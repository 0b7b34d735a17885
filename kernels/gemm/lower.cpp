// A product and its epilogue as a step of the plan.
#include "codegen/emission/step_context.h"
#include "ir/contraction.h"
#include "ir/fault.h"
#include "kernels/gemm/epilogue.h"

namespace sinter {

Result<Step> lower_gemm(const StepContext& context) {
  const Graph& graph = context.graph;
  const Op& op = graph[context.members[0]];
  const auto form = contraction_form(graph, op, context.symbols);
  SINTER_CHECK(form.has_value(), "{} has no form as a product", op.name);
  const auto operand = [](const StridedMatrix& m, uint32_t buffer) {
    return GemmOperand{buffer, m.offset, m.row_stride, m.column_stride};
  };
  GemmStep step;
  step.a = operand(form->a, context.read(form->a.root));
  step.b = operand(form->b, context.read(form->b.root));
  if (form->bias.valid()) step.bias = context.read(form->bias);
  ValueId result = context.members[0];
  if (context.members.size() > 1) {
    const auto epilogue = product_epilogue(graph, context.members);
    SINTER_CHECK(epilogue.has_value(), "no call computes {}", graph[context.members.back()].name);
    if (epilogue->residual.valid())
      step.residual = context.read(root_of(graph, epilogue->residual));
    step.activation = epilogue->activation;
    result = epilogue->result;
  }
  step.c = operand(form->c, context.write(result));
  step.m = form->m, step.n = form->n, step.k = form->k;
  for (const auto& loop : form->loops)
    step.loops.push_back({loop.count, loop.a_stride, loop.b_stride, loop.c_stride});
  if (fault(Fault::wrong_stride_gemm) && !step.a.row_stride.is(1)) step.a.row_stride += SymExpr(1);
  return Step{std::move(step), {}};
}

}  // namespace sinter
