#include "runtime/input_ranges.h"

#include <algorithm>
#include <climits>

#include "ir/op_roles.h"

namespace sinter {

Status check_input_ranges(const Program& program, const EntryPlan& entry,
                          llvm::ArrayRef<int64_t> symbol_values,
                          llvm::ArrayRef<const HostTensor*> inputs) {
  std::vector<int64_t> rows(inputs.size(), INT64_MAX);
  for (const Step& step : entry.steps) {
    const StepFacts facts = step_facts(program, step);
    if (!facts.kernel) continue;
    const Graph& group = facts.kernel->group;
    for (const Op& op : group.ops())
      for (size_t i = 0; i < op.operands.size(); ++i) {
        const OperandRole role = operand_role(op.kind, i);
        if (!role.is_address()) continue;
        const auto at = llvm::find(group.inputs, root_of(group, op.operands[i]));
        if (at == group.inputs.end()) continue;
        const Buffer& buffer =
            entry.buffers[facts.reads[static_cast<size_t>(at - group.inputs.begin())]];
        if (buffer.place != Buffer::Place::input) continue;
        const Dim extent = group[op.operands[role.rows_of]].type.dims[0];
        const int64_t count =
            extent.is_constant() ? extent.constant() : symbol_values[extent.symbol().index];
        rows[buffer.index] = std::min(rows[buffer.index], count);
      }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (rows[i] == INT64_MAX) continue;
    const auto* values = inputs[i]->data<int32_t>();
    for (int64_t k = 0; k < inputs[i]->volume(); ++k)
      if (values[k] < 0 || values[k] >= rows[i])
        return fail(
            fmt::format("%{}[{}] is {}, outside the 0 .. {} that it points into",
                        printable(entry.buffers[entry.inputs[i]].value), k, values[k], rows[i] - 1),
            "entry " + printable(entry.name), "check the inputs");
  }
  return {};
}

}  // namespace sinter
