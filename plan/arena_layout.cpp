// Where the buffers of an entry lie for the sizes of a call.
#include <llvm/ADT/STLExtras.h>

#include <set>

#include "plan/program.h"
#include "plan/shared_outputs.h"
#include "plan/step_heights.h"

namespace sinter {
namespace {

// Outputs in whose memory other buffers may lie: the largest.
constexpr size_t kMaxHosts = 8;

/// Buffers that have one place, one after the other.
struct Piece {
  uint32_t slot = 0, first = 0, last = 0;
  int64_t bytes = 0;
  llvm::SmallVector<uint32_t, 2> buffers = {};
  int64_t output = ArenaLayout::kInArena;  // the output in whose memory it lies
  int64_t offset = 0;
};

/// The end of `piece` above `offset`, aligned; nullopt beyond 63 bits.
std::optional<int64_t> end_of(const Piece& piece, int64_t offset) {
  int64_t end = 0;
  if (__builtin_add_overflow(offset, piece.bytes, &end) ||
      __builtin_add_overflow(end, kArenaAlignment - 1, &end))
    return std::nullopt;
  return end / kArenaAlignment * kArenaAlignment;
}

/// The pieces of an entry by slot, then by time; their steps counted among those that matter.
class Pieces {
 public:
  static std::optional<Pieces> of(const EntryPlan& entry, llvm::ArrayRef<int64_t> symbol_values) {
    Pieces pieces;
    if (!pieces.add_buffers(entry, symbol_values)) return std::nullopt;
    for (uint32_t step = 0; step < entry.steps.size(); ++step) pieces.moments_.push_back(step);
    llvm::sort(pieces.moments_);
    pieces.moments_.erase(std::unique(pieces.moments_.begin(), pieces.moments_.end()),
                          pieces.moments_.end());
    for (Piece& piece : pieces.list)
      for (uint32_t* step : {&piece.first, &piece.last}) *step = pieces.moment(*step);
    return pieces;
  }

  /// The number of a step among those at which a life begins or ends, and the entry's own.
  uint32_t moment(uint32_t step) const {
    return static_cast<uint32_t>(llvm::lower_bound(moments_, step) - moments_.begin());
  }
  uint32_t moments() const { return static_cast<uint32_t>(moments_.size()); }

  std::vector<Piece> list;

 private:
  bool add_buffers(const EntryPlan& entry, llvm::ArrayRef<int64_t> symbol_values) {
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < entry.buffers.size(); ++i)
      if (entry.buffers[i].place == Buffer::Place::arena) order.push_back(i);
    llvm::stable_sort(order, [&](uint32_t a, uint32_t b) {
      const Buffer &x = entry.buffers[a], &y = entry.buffers[b];
      return std::pair(x.slot, x.first_step) < std::pair(y.slot, y.first_step);
    });
    for (uint32_t i : order) {
      const Buffer& buffer = entry.buffers[i];
      const auto bytes = buffer.size_bytes.evaluate(symbol_values);
      if (!bytes || *bytes < 0 || buffer.slot >= entry.buffers.size() ||
          buffer.first_step > buffer.last_step)
        return false;
      add(buffer, i, *bytes);
    }
    return true;
  }

  void add(const Buffer& buffer, uint32_t id, int64_t bytes) {
    for (uint32_t step : {buffer.first_step, buffer.last_step}) moments_.push_back(step);
    if (list.empty() || list.back().slot != buffer.slot || list.back().last < buffer.first_step)
      list.push_back({.slot = buffer.slot, .first = buffer.first_step});
    Piece& piece = list.back();
    piece.last = std::max(piece.last, buffer.last_step);
    piece.bytes = std::max(piece.bytes, bytes);
    piece.buffers.push_back(id);
  }

  std::vector<uint32_t> moments_;
};

/// An output whose memory holds other pieces before it is written.
struct Host {
  int64_t output;
  const Piece* piece;
  StepHeights heights;
};

class Placement {
 public:
  Placement(const EntryPlan& entry, Pieces& pieces) : entry_(entry), pieces_(pieces) {}

  /// Pieces with an output, which has memory of its own, and pieces that fit before one that is not
  /// shared.
  void place_in_outputs(const std::vector<bool>& shared) {
    std::vector<Piece*> others;
    std::vector<Host> hosts;
    for (Piece& piece : pieces_.list) {
      for (size_t k = 0; k < entry_.outputs.size(); ++k)
        if (llvm::is_contained(piece.buffers, entry_.outputs[k]))
          piece.output = static_cast<int64_t>(k);
      if (piece.output == ArenaLayout::kInArena)
        others.push_back(&piece);
      else if (!shared[static_cast<size_t>(piece.output)])
        hosts.push_back({piece.output, &piece, StepHeights(0)});
    }
    llvm::stable_sort(hosts,
                      [](const Host& a, const Host& b) { return a.piece->bytes > b.piece->bytes; });
    if (hosts.size() > kMaxHosts) hosts.erase(hosts.begin() + kMaxHosts, hosts.end());
    for (Host& host : hosts) host.heights = StepHeights(pieces_.moments());
    sort_by_need(others);
    for (Piece* piece : others)
      for (Host& host : hosts)
        if (fits(*piece, host)) break;
  }

  /// The others, on one another; the arena's size, nullopt beyond 63 bits.
  std::optional<int64_t> stack(StepHeights& heights) {
    int64_t bytes = 0;
    for (Piece& piece : pieces_.list) {
      if (piece.output != ArenaLayout::kInArena) continue;
      piece.offset = heights.highest(piece.first, piece.last);
      const auto end = end_of(piece, piece.offset);
      if (!end) return std::nullopt;
      heights.raise(piece.first, piece.last, *end);
      bytes = std::max(bytes, *end);
    }
    return bytes;
  }

 private:
  /// First those that are there when most bytes are; of these the largest.
  void sort_by_need(std::vector<Piece*>& others) const {
    std::vector<double> live(pieces_.moments() + 1, 0);
    for (const Piece* piece : others) {
      live[piece->first] += static_cast<double>(piece->bytes);
      live[piece->last + 1] -= static_cast<double>(piece->bytes);
    }
    for (size_t i = 1; i < live.size(); ++i) live[i] += live[i - 1];
    const auto most = [&](const Piece& piece) {
      return *std::max_element(live.begin() + piece.first, live.begin() + piece.last + 1);
    };
    std::vector<std::pair<std::pair<double, int64_t>, Piece*>> keyed;
    for (Piece* piece : others) keyed.push_back({{most(*piece), piece->bytes}, piece});
    llvm::stable_sort(keyed, [](const auto& a, const auto& b) { return a.first > b.first; });
    for (size_t i = 0; i < keyed.size(); ++i) others[i] = keyed[i].second;
  }

  /// Places the piece in the host's memory if there is room before the output is written.
  static bool fits(Piece& piece, Host& host) {
    if (piece.last >= host.piece->first) return false;
    const int64_t offset = host.heights.highest(piece.first, piece.last);
    if (piece.bytes > host.piece->bytes - offset) return false;
    const auto end = end_of(piece, offset);
    if (!end) return false;
    piece.output = host.output;
    piece.offset = offset;
    host.heights.raise(piece.first, piece.last, *end);
    return true;
  }

  const EntryPlan& entry_;
  Pieces& pieces_;
};

}  // namespace

std::vector<bool> buffers_written_over(const EntryPlan& entry) {
  std::set<std::pair<uint32_t, uint32_t>> begins;  // slot, step
  for (const Buffer& buffer : entry.buffers)
    if (buffer.place == Buffer::Place::arena) begins.emplace(buffer.slot, buffer.first_step);
  std::vector<bool> written_over;
  for (const Buffer& buffer : entry.buffers)
    written_over.push_back(buffer.place == Buffer::Place::arena &&
                           buffer.first_step < buffer.last_step &&
                           begins.contains({buffer.slot, buffer.last_step}));
  return written_over;
}

namespace {

/// `shared`: of outputs that are apart; null: they are not.
std::optional<ArenaLayout> layout_with(const EntryPlan& entry,
                                       llvm::ArrayRef<int64_t> symbol_values,
                                       const std::vector<bool>* shared) {
  auto pieces = Pieces::of(entry, symbol_values);
  if (!pieces) return std::nullopt;
  Placement placement(entry, *pieces);
  if (shared) placement.place_in_outputs(*shared);
  StepHeights heights(pieces->moments());
  const auto bytes = placement.stack(heights);
  if (!bytes) return std::nullopt;
  ArenaLayout layout;
  layout.bytes = *bytes;
  layout.offsets.resize(entry.buffers.size(), 0);
  layout.outputs.resize(entry.buffers.size(), ArenaLayout::kInArena);
  for (const Piece& piece : pieces->list)
    for (uint32_t id : piece.buffers) {
      layout.offsets[id] = piece.offset;
      layout.outputs[id] = piece.output;
    }
  for (uint32_t step = 0; step < entry.steps.size(); ++step) {
    const uint32_t moment = pieces->moment(step);
    layout.used.push_back(heights.highest(moment, moment));
  }
  return layout;
}

}  // namespace

std::optional<ArenaLayout> arena_layout(const EntryPlan& entry,
                                        llvm::ArrayRef<int64_t> symbol_values, bool outputs_apart) {
  const std::vector<bool> none(entry.outputs.size(), false);
  return layout_with(entry, symbol_values, outputs_apart ? &none : nullptr);
}

std::optional<ArenaLayout> arena_layout(const EntryPlan& entry,
                                        llvm::ArrayRef<int64_t> symbol_values,
                                        const std::vector<bool>& shared) {
  SINTER_CHECK(shared.size() == entry.outputs.size(), "{} outputs of {}", shared.size(),
               entry.name);
  return layout_with(entry, symbol_values, &shared);
}

}  // namespace sinter
