#include "codegen/lowering/arena.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <bit>

#include "ir/fault.h"
#include "plan/step_heights.h"

namespace sinter {
namespace {

/// Buffers of one place, one after the other, where symbols have their greatest values.
struct Piece {
  uint32_t first = 0, last = 0;
  int64_t bytes = 0, begin = 0;
  llvm::SmallVector<uint32_t, 2> buffers = {};

  int64_t end() const { return bytes > INT64_MAX - begin ? INT64_MAX : begin + bytes; }
};

std::vector<Piece> pieces_of(const std::vector<Buffer>& buffers, llvm::ArrayRef<Symbol> symbols,
                             llvm::ArrayRef<BufferInPlace> in_place) {
  std::vector<int64_t> before(buffers.size(), -1), piece_of(buffers.size(), -1);
  for (const BufferInPlace& pair : in_place) before[pair.after] = pair.before;
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].place == Buffer::Place::arena) order.push_back(i);
  llvm::stable_sort(
      order, [&](uint32_t a, uint32_t b) { return buffers[a].first_step < buffers[b].first_step; });
  std::vector<Piece> pieces;
  for (uint32_t i : order) {
    const Buffer& buffer = buffers[i];
    if (before[i] < 0) pieces.push_back({.first = buffer.first_step});
    piece_of[i] = before[i] < 0 ? static_cast<int64_t>(pieces.size()) - 1
                                : piece_of[static_cast<size_t>(before[i])];
    Piece& piece = pieces[static_cast<size_t>(piece_of[i])];
    piece.last = buffer.last_step;
    piece.bytes = buffer.size_bytes.upper_bound(symbols);
    if (piece.bytes <= INT64_MAX - kArenaAlignment)
      piece.bytes = static_cast<int64_t>(aligned_bytes(static_cast<size_t>(piece.bytes)));
    piece.buffers.push_back(i);
  }
  return pieces;
}

/// Placed pieces, found by the steps in which they live: a segment tree over the steps.
class PlacedPieces {
 public:
  explicit PlacedPieces(uint32_t steps)
      : leaves_(std::bit_ceil(std::max(steps, 1u))), throughout_(2 * leaves_), begin_at_(leaves_) {}

  void add(const Piece& piece) {
    begin_at_[piece.first].push_back(&piece);
    uint32_t begin = leaves_ + piece.first, end = leaves_ + piece.last + 1;
    for (; begin < end; begin /= 2, end /= 2) {
      if (begin % 2 == 1) throughout_[begin++].push_back(&piece);
      if (end % 2 == 1) throughout_[--end].push_back(&piece);
    }
  }

  /// The pieces that live in a step of this one, by their places: in its first step, or they begin
  /// in a later one.
  llvm::SmallVector<const Piece*, 16> meeting(const Piece& piece) const {
    llvm::SmallVector<const Piece*, 16> found;
    for (uint32_t node = leaves_ + piece.first; node > 0; node /= 2)
      llvm::append_range(found, throughout_[node]);
    for (uint32_t step = piece.first + 1; step <= piece.last; ++step)
      llvm::append_range(found, begin_at_[step]);
    llvm::sort(found, [](const Piece* a, const Piece* b) { return a->begin < b->begin; });
    return found;
  }

 private:
  uint32_t leaves_;
  std::vector<std::vector<const Piece*>>
      throughout_;                                   // by node, 1 the root: living in all its steps
  std::vector<std::vector<const Piece*>> begin_at_;  // by step
};

/// The lowest place of the piece among those that meet it.
int64_t lowest_place(const Piece& piece, const PlacedPieces& placed) {
  int64_t begin = 0;
  for (const Piece* other : placed.meeting(piece)) {
    if (other->begin >= begin && other->begin - begin >= piece.bytes) break;
    begin = std::max(begin, other->end());
  }
  return begin;
}

/// Gives each piece a place, the largest first, and returns them by their places.
std::vector<Piece*> placed(std::vector<Piece>& pieces, uint32_t steps) {
  std::vector<Piece*> order;
  for (Piece& piece : pieces) order.push_back(&piece);
  llvm::stable_sort(order, [](const Piece* a, const Piece* b) { return a->bytes > b->bytes; });
  PlacedPieces placed(steps);
  for (Piece* piece : order) {
    piece->begin = lowest_place(*piece, placed);
    placed.add(*piece);
  }
  llvm::stable_sort(order, [](const Piece* a, const Piece* b) { return a->begin < b->begin; });
  return order;
}

}  // namespace

void plan_arena(std::vector<Buffer>& buffers, llvm::ArrayRef<Symbol> symbols,
                llvm::ArrayRef<BufferInPlace> in_place) {
  std::vector<Piece> pieces = pieces_of(buffers, symbols, in_place);
  uint32_t steps = 0;
  for (const Piece& piece : pieces) steps = std::max(steps, piece.last + 1);
  StepHeights levels(steps);
  for (const Piece* piece : placed(pieces, steps)) {
    const int64_t level = levels.highest(piece->first, piece->last);
    levels.raise(piece->first, piece->last, level + 1);
    for (uint32_t i : piece->buffers)
      buffers[i].slot = fault(Fault::overlapping_buffers) ? 0 : static_cast<uint32_t>(level);
  }
}

}  // namespace sinter
