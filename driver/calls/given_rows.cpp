#include "driver/calls/given_rows.h"

#include <llvm/ADT/STLExtras.h>

#include "ir/row_numbers.h"

namespace sinter {
namespace {

/// The entry's input that a group's value is a view of; null: none.
const Buffer* entry_input(const EntryPlan& entry, const StepFacts& step, ValueId id) {
  const std::optional<uint32_t> input = input_of(step.kernel->group, id);
  if (!input) return nullptr;
  const Buffer& buffer = entry.buffers[step.reads[*input]];
  return buffer.place == Buffer::Place::input ? &buffer : nullptr;
}

bool is_looked_at(const EntryPlan& entry, const Buffer& input, const RowNumbers& numbers) {
  return llvm::any_of(entry.row_checks, [&](const RowCheck& check) {
    const Buffer& buffer = entry.buffers[check.buffer];
    return buffer.place == Buffer::Place::input && buffer.index == input.index &&
           check.rows == numbers.rows && check.ends == numbers.ends;
  });
}

}  // namespace

Status require_checked_inputs(const Program& program, const EntryPlan& entry) {
  for (const Step& step : entry.steps) {
    const StepFacts facts = step_facts(program, step);
    if (!facts.kernel) continue;
    const Graph& group = facts.kernel->group;
    for (const RowNumbers& numbers : row_numbers(group)) {
      if (!numbers.address) continue;
      const Buffer* input = entry_input(entry, facts, numbers.values);
      if (!input) continue;
      if (!is_checked(group[numbers.op]) || !is_looked_at(entry, *input, numbers))
        return fail(
            fmt::format("kernel {} takes the row numbers of input {} for addresses, and nothing "
                        "checks them in device memory",
                        facts.kernel->name, printable(input->value)),
            "entry " + printable(entry.name),
            "compile the plan with the option for inputs in device memory (device_inputs)",
            ExitCode::usage);
    }
  }
  return {};
}

}  // namespace sinter
