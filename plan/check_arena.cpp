// Buffers of the arena lie inside it and share bytes only at different times.
#include <llvm/ADT/STLExtras.h>

#include "plan/check_parts.h"

namespace sinter::checker {
namespace {

Status check_place(const Program& program, const EntryPlan& entry, const Buffer& buffer) {
  const llvm::ArrayRef<Symbol> symbols = program.symbols;
  const std::string where = "entry " + printable(entry.name);
  SINTER_TRY(check_expr(buffer.offset_bytes, symbols, "an offset", where));
  if (buffer.offset_bytes.divisor(symbols) % kArenaAlignment != 0)
    return violation(fmt::format("{} does not begin at a multiple of {} bytes",
                                 interval(buffer, symbols), kArenaAlignment),
                     where);
  if (!never_less(buffer.offset_bytes, SymExpr(0), symbols) ||
      !never_less(entry.arena_bytes, buffer.offset_bytes + buffer.size_bytes, symbols))
    return violation(fmt::format("{} leaves the arena of {} bytes", interval(buffer, symbols),
                                 to_string(entry.arena_bytes, symbols)),
                     where);
  return {};
}

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

bool apart(const Buffer& a, const Buffer& b, llvm::ArrayRef<Symbol> symbols) {
  return never_less(b.offset_bytes, a.offset_bytes + a.size_bytes, symbols) ||
         never_less(a.offset_bytes, b.offset_bytes + b.size_bytes, symbols);
}

}  // namespace

Status check_arena(const Program& program, const EntryPlan& entry,
                   llvm::ArrayRef<LiveRange> ranges) {
  const llvm::ArrayRef<Symbol> symbols = program.symbols;
  const std::string where = "entry " + printable(entry.name);
  SINTER_TRY(check_expr(entry.arena_bytes, symbols, "the arena's size", where));
  llvm::SmallVector<int64_t> highest;
  for (const Symbol& symbol : symbols) highest.push_back(symbol.high);
  if (!entry.arena_bytes.evaluate(highest))
    return violation(fmt::format("the arena's size, {}, can exceed 63 bits",
                                 to_string(entry.arena_bytes, symbols)),
                     where);

  std::vector<uint32_t> order;
  for (uint32_t id = 0; id < entry.buffers.size(); ++id) {
    const Buffer& buffer = entry.buffers[id];
    if (buffer.place != Buffer::Place::arena) continue;
    SINTER_TRY(check_range(entry, buffer, ranges[id]));
    SINTER_TRY(check_place(program, entry, buffer));
    order.push_back(id);
  }
  // Only buffers that are still live when one is written can overlap it.
  llvm::stable_sort(order,
                    [&](uint32_t a, uint32_t b) { return ranges[a].written < ranges[b].written; });
  std::vector<uint32_t> live;
  for (uint32_t id : order) {
    llvm::erase_if(live, [&](uint32_t old) { return ranges[old].last < ranges[id].written; });
    for (uint32_t old : live)
      if (!apart(entry.buffers[old], entry.buffers[id], symbols))
        return violation(
            fmt::format("{}, live from step {} to {}, overlaps {}, live from step {} to {}",
                        interval(entry.buffers[old], symbols), ranges[old].written,
                        ranges[old].last, interval(entry.buffers[id], symbols), ranges[id].written,
                        ranges[id].last),
            place(entry, static_cast<size_t>(ranges[id].written)));
    live.push_back(id);
  }
  return {};
}

}  // namespace sinter::checker
