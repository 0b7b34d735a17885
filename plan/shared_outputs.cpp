#include "plan/shared_outputs.h"

#include <llvm/ADT/STLExtras.h>

#include "ir/in_place.h"

namespace sinter {
namespace {

/// Another buffer of the same slot holds a value at a step at which this one does.
bool takes_a_place(const EntryPlan& entry, uint32_t id) {
  const Buffer& own = entry.buffers[id];
  for (uint32_t i = 0; i < entry.buffers.size(); ++i) {
    const Buffer& other = entry.buffers[i];
    if (i != id && other.place == Buffer::Place::arena && other.slot == own.slot &&
        other.first_step <= own.last_step && own.first_step <= other.last_step)
      return true;
  }
  return false;
}

/// The kernel of a step reads `input` and writes `output`, which may have the same address.
bool may_overwrite_in(const Program& program, const StepFacts& step, uint32_t output,
                      uint32_t input) {
  if (!step.kernel || llvm::count(step.reads, input) != 1) return false;
  const InPlace pair{static_cast<uint32_t>(llvm::find(step.writes, output) - step.writes.begin()),
                     static_cast<uint32_t>(llvm::find(step.reads, input) - step.reads.begin())};
  return may_overwrite(*step.kernel, pair, program.symbols);
}

}  // namespace

bool may_overwrite(const Kernel& kernel, const InPlace& pair, llvm::ArrayRef<Symbol> symbols) {
  return (kernel.overlap.waits || llvm::is_contained(kernel.in_place, pair)) &&
         may_overwrite(kernel.group, pair.output, pair.input, symbols);
}

bool may_share_memory(const Program& program, const EntryPlan& entry, size_t output, size_t input) {
  if (output >= entry.outputs.size() || input >= entry.inputs.size()) return false;
  const uint32_t after = entry.outputs[output], before = entry.inputs[input];
  const Buffer &result = entry.buffers[after], &given = entry.buffers[before];
  const auto is_checked = [&](const RowCheck& check) { return check.buffer == before; };
  if (result.place != Buffer::Place::arena || given.place != Buffer::Place::input ||
      result.type != given.type || result.size_bytes != given.size_bytes ||
      llvm::is_contained(entry.outputs, before) || llvm::count(entry.outputs, after) != 1 ||
      llvm::count(entry.inputs, before) != 1 || llvm::any_of(entry.row_checks, is_checked) ||
      takes_a_place(entry, after))
    return false;
  const size_t written = result.first_step;
  const auto reads = [&](const Step& step) {
    return llvm::is_contained(step_facts(program, step).reads, before);
  };
  const llvm::ArrayRef<Step> steps(entry.steps);
  if (written >= steps.size() || llvm::any_of(steps.drop_front(written + 1), reads)) return false;
  const StepFacts step = step_facts(program, steps[written]);
  return !llvm::is_contained(step.reads, before) || may_overwrite_in(program, step, after, before);
}

}  // namespace sinter
