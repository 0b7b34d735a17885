// Buffers share a slot of the arena only at different times, or if a kernel may write one in the
// memory of the other.
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>

#include <utility>

#include "ir/in_place.h"
#include "plan/check_parts.h"
#include "plan/shared_outputs.h"

namespace sinter::checker {
namespace {

Status check_range(const EntryPlan& entry, const Buffer& buffer, const LiveRange& range) {
  const std::string where = "entry " + printable(entry.name);
  if (range.written < 0)
    return violation(fmt::format("no step writes %{}", printable(buffer.value)), where);
  if (buffer.first_step != range.written || buffer.last_step != range.last)
    return violation(fmt::format("%{} is planned for steps {} to {} but used from {} to {}",
                                 printable(buffer.value), buffer.first_step, buffer.last_step,
                                 range.written, range.last),
                     where);
  return {};
}

/// Step `index`, which reads `before` last, may write `after` in the memory of `before`.
bool may_take_place(const Program& program, const EntryPlan& entry, uint32_t index, uint32_t before,
                    uint32_t after) {
  const StepFacts step = step_facts(program, entry.steps[index]);
  if (!step.kernel || entry.buffers[before].size_bytes != entry.buffers[after].size_bytes)
    return false;
  const auto output = llvm::find(step.writes, after), input = llvm::find(step.reads, before);
  if (output == step.writes.end() || input == step.reads.end() ||
      llvm::count(step.reads, before) != 1)
    return false;
  const InPlace pair{static_cast<uint32_t>(output - step.writes.begin()),
                     static_cast<uint32_t>(input - step.reads.begin())};
  return may_overwrite(*step.kernel, pair, program.symbols);
}

/// A kernel that places a part in a value has the value's memory for its result.
Status check_placed(const Program& program, const EntryPlan& entry, size_t index) {
  const StepFacts step = step_facts(program, entry.steps[index]);
  if (!step.kernel) return {};
  for (size_t output = 0; output < step.writes.size(); ++output) {
    const auto input = placed_input(step.kernel->group, output);
    if (!input) continue;
    const Buffer &before = entry.buffers[step.reads[*input]],
                 &after = entry.buffers[step.writes[output]];
    if (before.place != Buffer::Place::arena || after.place != Buffer::Place::arena ||
        before.slot != after.slot || before.last_step != index)
      return violation(fmt::format("%{} must have the memory of %{}, and has not",
                                   printable(after.value), printable(before.value)),
                       place(entry, index));
  }
  return {};
}

}  // namespace

Status check_arena(const Program& program, const EntryPlan& entry,
                   llvm::ArrayRef<LiveRange> ranges) {
  const std::string where = "entry " + printable(entry.name);
  std::vector<uint32_t> order;
  for (uint32_t id = 0; id < entry.buffers.size(); ++id) {
    const Buffer& buffer = entry.buffers[id];
    if (buffer.place != Buffer::Place::arena) continue;
    SINTER_TRY(check_range(entry, buffer, ranges[id]));
    if (buffer.slot >= entry.buffers.size())
      return violation(fmt::format("%{} is in slot {} of the arena, of at most {}",
                                   printable(buffer.value), buffer.slot, entry.buffers.size()),
                       where);
    order.push_back(id);
  }
  // Sizes grow with the symbols' values, so that the largest values show whether one can overflow.
  llvm::SmallVector<int64_t> highest;
  for (const Symbol& symbol : program.symbols) highest.push_back(symbol.high);
  if (!arena_layout(entry, highest)) return violation("the arena's size can exceed 63 bits", where);

  for (size_t index = 0; index < entry.steps.size(); ++index)
    SINTER_TRY(check_placed(program, entry, index));
  // In the order in which they are written, each buffer of a slot follows the last reader of the
  // one before it.
  llvm::stable_sort(order,
                    [&](uint32_t a, uint32_t b) { return ranges[a].written < ranges[b].written; });
  llvm::DenseMap<uint32_t, uint32_t> last_in;  // slot → buffer
  for (uint32_t id : order) {
    const auto [before, fresh] = last_in.try_emplace(entry.buffers[id].slot, id);
    if (fresh) continue;
    const uint32_t old = std::exchange(before->second, id);
    const bool in_place = ranges[old].last == ranges[id].written &&
                          may_take_place(program, entry, entry.buffers[id].first_step, old, id);
    if (ranges[old].last >= ranges[id].written && !in_place)
      return violation(
          fmt::format("%{}, live from step {} to {}, and %{}, live from step {} to {}, "
                      "share slot {} of the arena",
                      printable(entry.buffers[old].value), ranges[old].written, ranges[old].last,
                      printable(entry.buffers[id].value), ranges[id].written, ranges[id].last,
                      entry.buffers[id].slot),
          place(entry, static_cast<size_t>(ranges[id].written)));
  }
  return {};
}

}  // namespace sinter::checker
