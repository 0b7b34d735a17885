#include "codegen/lowering/arena.h"

#include <llvm/ADT/STLExtras.h>

#include "ir/fault.h"
#include "plan/step_heights.h"

namespace sinter {
namespace {

/// Buffers of one place, one after the other, where symbols have their greatest values.
struct Piece {
  uint32_t first = 0, last = 0;
  int64_t bytes = 0, begin = 0;
  llvm::SmallVector<uint32_t, 2> buffers = {};

  bool meets(const Piece& other) const { return first <= other.last && other.first <= last; }
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

/// The lowest place of the piece among those that are placed, which are sorted by their begin.
int64_t lowest_place(const Piece& piece, llvm::ArrayRef<const Piece*> placed) {
  int64_t begin = 0;
  for (const Piece* other : placed) {
    if (!piece.meets(*other)) continue;
    if (other->begin >= begin && other->begin - begin >= piece.bytes) break;
    begin = std::max(begin, other->end());
  }
  return begin;
}

/// Gives each piece a place, the largest first, and returns them by their places.
std::vector<Piece*> placed(std::vector<Piece>& pieces) {
  std::vector<Piece*> order, placed;
  for (Piece& piece : pieces) order.push_back(&piece);
  llvm::stable_sort(order, [](const Piece* a, const Piece* b) { return a->bytes > b->bytes; });
  for (Piece* piece : order) {
    piece->begin = lowest_place(*piece, placed);
    const auto at = llvm::upper_bound(
        placed, piece->begin, [](int64_t begin, const Piece* p) { return begin < p->begin; });
    placed.insert(at, piece);
  }
  return placed;
}

}  // namespace

void plan_arena(std::vector<Buffer>& buffers, llvm::ArrayRef<Symbol> symbols,
                llvm::ArrayRef<BufferInPlace> in_place) {
  std::vector<Piece> pieces = pieces_of(buffers, symbols, in_place);
  uint32_t steps = 0;
  for (const Piece& piece : pieces) steps = std::max(steps, piece.last + 1);
  StepHeights levels(steps);
  for (const Piece* piece : placed(pieces)) {
    const int64_t level = levels.highest(piece->first, piece->last);
    levels.raise(piece->first, piece->last, level + 1);
    for (uint32_t i : piece->buffers)
      buffers[i].slot = fault(Fault::overlapping_buffers) ? 0 : static_cast<uint32_t>(level);
  }
}

}  // namespace sinter
