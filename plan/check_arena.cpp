// Buffers of the arena lie inside it and share bytes only at different times.
#include <llvm/ADT/STLExtras.h>

#include <set>

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

/// The live buffers in the order in which they lie. If each ends before the next one begins, for
/// all symbol values, then no two of them overlap, since none has fewer than 0 bytes.
class LiveBuffers {
 public:
  LiveBuffers(const EntryPlan& entry, llvm::ArrayRef<LiveRange> ranges,
              llvm::ArrayRef<Symbol> symbols)
      : entry_(entry), ranges_(ranges), symbols_(symbols) {
    // The order is that at one choice of values, where no value is 0: what is apart for all values
    // lies in the same order at each.
    for (const Symbol& symbol : symbols) {
      values_.push_back(std::max<int64_t>(symbol.high, 1));
      if (symbol.at_most) values_.back() = std::min(values_.back(), values_[symbol.at_most->index]);
    }
  }

  /// Forgets the buffers that are read before `step` for the last time.
  void advance(int64_t step) {
    for (; !by_end_.empty() && by_end_.begin()->first < step; by_end_.erase(by_end_.begin()))
      by_place_.erase(key(by_end_.begin()->second));
  }

  /// Adds a buffer; if it may overlap a live one, returns that one.
  std::optional<uint32_t> add(uint32_t id) {
    const auto at = by_place_.insert(key(id)).first;
    by_end_.insert({ranges_[id].last, id});
    if (at != by_place_.begin() && !before(std::prev(at)->id, id)) return std::prev(at)->id;
    if (std::next(at) != by_place_.end() && !before(id, std::next(at)->id))
      return std::next(at)->id;
    return std::nullopt;
  }

 private:
  struct Key {
    int64_t begin, end;
    uint32_t id;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  Key key(uint32_t id) const {
    const Buffer& buffer = entry_.buffers[id];
    const auto at = [&](const SymExpr& offset) {
      return offset.evaluate(values_).value_or(INT64_MAX);
    };
    return {at(buffer.offset_bytes), at(buffer.offset_bytes + buffer.size_bytes), id};
  }

  /// `a` ends before `b` begins.
  bool before(uint32_t a, uint32_t b) const {
    const Buffer& first = entry_.buffers[a];
    return never_less(entry_.buffers[b].offset_bytes, first.offset_bytes + first.size_bytes,
                      symbols_);
  }

  const EntryPlan& entry_;
  llvm::ArrayRef<LiveRange> ranges_;
  llvm::ArrayRef<Symbol> symbols_;
  llvm::SmallVector<int64_t> values_;
  std::set<Key> by_place_;
  std::set<std::pair<int64_t, uint32_t>> by_end_;  // the last step that reads it, buffer
};

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
  LiveBuffers live(entry, ranges, symbols);
  for (uint32_t id : order) {
    live.advance(ranges[id].written);
    if (const auto old = live.add(id))
      return violation(
          fmt::format("{}, live from step {} to {}, overlaps {}, live from step {} to {}",
                      interval(entry.buffers[*old], symbols), ranges[*old].written,
                      ranges[*old].last, interval(entry.buffers[id], symbols), ranges[id].written,
                      ranges[id].last),
          place(entry, static_cast<size_t>(ranges[id].written)));
  }
  return {};
}

}  // namespace sinter::checker
