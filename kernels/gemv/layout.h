// Where a gemv's block keeps what in its shared memory: the same text for the kernel, and for the
// schedule that sees to it that everything fits.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

constexpr int kGemvStages = 4;  // the most pieces of a warp in flight, if nothing else is said
constexpr int kMinGemvStages = 2, kMaxGemvStages = 8;  // what may be said
constexpr int kTileRows = 16, kTileTokens = 8;                // of a product of tensor cores
constexpr int kTileStageLength = 128;  // elements of each of a tile's rows in a piece
// A tile's pieces are dealt to so many warps, whatever the block has: each of fewer takes the share
// of several, so that the order of sums stays.
constexpr int kTileWarps = 16;
constexpr int kGemvAlignment = 128;  // bytes

/// What a kernel's text fixes, and the tokens of a launch.
struct GemvShape {
  int warps, rows, splits, tokens;  // rows of the block; parts of a row
  int operand_bytes;                // of a token in shared memory; 0: it stays where it is
  int element_bytes, piece;         // piece: elements, of one token
  bool tiles, ring;                 // several tokens go through tensor cores; pieces are copied
  int stages;                       // the most pieces of a warp in flight
};

/// Rows that a warp reads at once without tensor cores, so that what it reads of the operand serves
/// all of them.
SINTER_DEVICE constexpr int gemv_rows_at_once(int tokens) { return tokens == 1 ? 1 : 2; }

/// Tokens of a tile whose sums have a place: a lane writes those of two.
SINTER_DEVICE constexpr int gemv_tile_tokens(int tokens) { return (tokens + 1) / 2 * 2; }
/// Sums of a warp's tile.
SINTER_DEVICE constexpr int gemv_tile_sums(int tokens) {
  return kTileRows * gemv_tile_tokens(tokens);
}

/// Offsets into shared memory, in bytes.
struct GemvLayout {
  int together;  // rows that a warp reads at once, each from a piece of its own
  int piece;     // elements of a row in a piece
  int slot;      // bytes of a piece's place
  int most;      // places of a warp that have a barrier
  int parts;     // sums of a row and token
  int sums, tile_sums, operand, rings;
  /// Pieces of a warp that fit `bytes` of shared memory; at least `together` are needed.
  SINTER_DEVICE constexpr int stages(int bytes, int warps) const {
    const int fit = bytes > rings ? (bytes - rings) / (slot * warps) : 0;
    return fit < most ? fit : most;
  }
};

SINTER_DEVICE constexpr int gemv_aligned(int bytes) {
  return (bytes + kGemvAlignment - 1) / kGemvAlignment * kGemvAlignment;
}

SINTER_DEVICE constexpr GemvLayout gemv_layout(const GemvShape& shape) {
  // Rows that are read at once have a piece each in flight: shorter pieces leave room for more.
  const int short_piece = 1024 / shape.element_bytes;
  GemvLayout layout{};
  layout.rows_at_once = shape.tiles ? 1 : gemv_rows_at_once(shape.tokens);
  layout.stage_length = shape.tiles                                         ? kTileStageLength
                 : layout.rows_at_once == 1 || shape.stage_length < short_piece ? shape.stage_length
                                                                     : short_piece;
  layout.stage_bytes = layout.stage_length * shape.element_bytes * (shape.tiles ? kTileRows : 1);
  layout.max_stages = shape.stages;
  layout.splits = shape.tiles ? 1 : shape.splits;
  layout.sums = shape.pipelined ? 8 * shape.warps * shape.stages : 0;
  layout.tile_sums = gemv_aligned(layout.sums + 4 * shape.tokens * shape.rows * layout.splits);
  layout.operand =
      layout.tile_sums + (shape.tiles ? 2 * 4 * kTileWarps * gemv_tile_sums(shape.tokens) : 0);
  layout.pipelines = gemv_aligned(layout.operand + shape.tokens * shape.operand_bytes);
  return layout;
}

}  // namespace sinter
