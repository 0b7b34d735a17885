// Collectives: a step of its own, in which the ranks of a group exchange a value. Nothing fuses
// with it.
#include "kernels/family.h"

#include "codegen/emission/step_context.h"

namespace sinter {
namespace {

constexpr OpKind kCollectives[] = {OpKind::all_reduce};

Result<Step> lower_collective(const StepContext& context) {
  const ValueId value = context.members[0];
  const Op& op = context.graph[value];
  CollectiveStep step;
  step.from = context.read(op.operands[0]);
  step.to = context.write(value);
  step.exchange = context.exchange(value);
  step.group = op.attrs.get<std::string>(AttrName::group);
  return Step{std::move(step), {}};
}

/// The operand is a buffer of its own: no view of one, and no constant, which has none.
bool addresses(const Graph& graph, const Op& op, size_t operand, llvm::ArrayRef<Symbol>) {
  const ValueId value = op.operands[operand];
  return root_of(graph, value) == value && op_class(graph[value]) != OpClass::generator;
}

}  // namespace

extern const KernelFamily collective_family;
constinit const KernelFamily collective_family{
    .name = "collective",
    .kind = KernelFamily::Kind::call,
    .anchors = kCollectives,
    .make = lower_collective,
    .cost = streaming_cost,
    .addresses = addresses,
};

}  // namespace sinter
