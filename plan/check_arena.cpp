// Buffers share a slot of the arena only at different times.
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>

#include <utility>

#include "plan/check_parts.h"

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

  // In the order in which they are written, each buffer of a slot follows the last reader of the
  // one before it.
  llvm::stable_sort(order,
                    [&](uint32_t a, uint32_t b) { return ranges[a].written < ranges[b].written; });
  llvm::DenseMap<uint32_t, uint32_t> last_in;  // slot → buffer
  for (uint32_t id : order) {
    const auto [before, fresh] = last_in.try_emplace(entry.buffers[id].slot, id);
    if (fresh) continue;
    const uint32_t old = std::exchange(before->second, id);
    if (ranges[old].last >= ranges[id].written)
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
