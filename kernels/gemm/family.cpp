// Products of a library, and what its call does beside them:
//
//   %p = linear %x, %w, %b        one call: C = gelu_tanh(A B + b)
//   %y = gelu_tanh %p
#include "kernels/family.h"

#include "codegen/emission/kernel_body.h"
#include "codegen/emission/step_context.h"
#include "kernels/gemm/epilogue.h"

namespace sinter {

LowerStep lower_gemm;
std::optional<KernelCost> gemm_cost(const GroupView& group, int64_t min_threads);

namespace {

constexpr OpKind kAnchors[] = {OpKind::linear, OpKind::einsum, OpKind::attention};

std::optional<ValueId> call_of(const FusionProblem& problem, Members members) {
  const std::optional<ProductEpilogue> epilogue = product_epilogue(problem.graph(), members);
  if (!epilogue) return std::nullopt;
  // The call stores its last value alone.
  for (ValueId member : members)
    if (member != epilogue->result && problem.read_outside(member, members)) return std::nullopt;
  return epilogue->product;
}

}  // namespace

extern const KernelFamily gemm_family;
constinit const KernelFamily gemm_family{
    .name = "gemm",
    .kind = KernelFamily::Kind::call,
    .anchors = kAnchors,
    .make = lower_gemm,
    .cost = gemm_cost,
    .call_of = call_of,
};

}  // namespace sinter
