// The layout of a gemv block's shared memory: the same text for the kernel and for the schedule
// that makes sure that everything fits.
//
//   | barriers | sums | sums of two tiles, by warp | operand | stages of warp 0 | of warp 1 | ... |
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

constexpr int kGemvStages = 4;  // of a warp's pipeline, unless a form says otherwise
constexpr int kMinGemvStages = 2, kMaxGemvStages = 8;
constexpr int kTileRows = 16, kTileTokens = 8;  // of a product of tensor cores
constexpr int kTileStageLength = 128;           // elements of each row of a tile in a stage
// The runs of a tile, of kTileStageLength elements of each row, are dealt to this number of shares,
// whatever the warps of the block: with fewer warps each takes several shares, so that the order of
// sums stays the same.
constexpr int kTileWarps = 16;
constexpr int kGemvAlignment = 128;  // bytes

/// The constants of a kernel, and the tokens of a launch.
struct GemvShape {
  int warps, rows, splits, tokens;  // rows of the block; split-K of a row
  int operand_bytes;                // of a token in shared memory; 0: the operand stays in memory
  int element_bytes;                // of the operand
  int step_length, step_bytes;      // elements of a matrix row that are read together, their bytes
  int stage_length;                 // elements, for one token: a multiple of a step
  bool packed;                      // the matrix has codes
  bool tiles, pipelined;            // several tokens by tensor cores; stages are copied
  int stages;                       // the largest number of a warp
};

/// Rows that a warp reads together without tensor cores, so that one read of the operand serves
/// all of them. Widening a token costs as much as reading codes: two rows of these share it.
SINTER_DEVICE constexpr int gemv_rows_at_once(int tokens, bool packed) {
  return tokens == 1 && !packed ? 1 : 2;
}

/// The elements of an operand in float32 stand in runs (gemv_values.cuh).
constexpr int kWideRun = 256;
SINTER_DEVICE constexpr int gemv_wide_bytes(int length) {
  return (length + kWideRun - 1) / kWideRun * kWideRun * 4;
}
/// Bytes of a token's operand in the shared memory of a kernel for at most `tokens` tokens. Beside
/// a packed matrix one token is kept in float32, if that has no more than `most` bytes.
SINTER_DEVICE constexpr bool gemv_widens(int length, int element_bytes, bool packed, int tokens,
                                         int most) {
  return packed && tokens == 1 && element_bytes == 2 && gemv_wide_bytes(length) <= most;
}
SINTER_DEVICE constexpr int gemv_operand_bytes(int length, int element_bytes, bool packed,
                                               int tokens, int most) {
  return gemv_widens(length, element_bytes, packed, tokens, most) ? gemv_wide_bytes(length)
                                                                  : length * element_bytes;
}

/// Tokens of a tile for which sums are kept: a lane writes the sums of two tokens.
SINTER_DEVICE constexpr int gemv_tile_tokens(int tokens) { return (tokens + 1) / 2 * 2; }
/// Sums of a warp's tile.
SINTER_DEVICE constexpr int gemv_tile_sums(int tokens) {
  return kTileRows * gemv_tile_tokens(tokens);
}

/// Offsets into shared memory, in bytes.
struct GemvLayout {
  int rows_at_once;  // rows that a warp reads together, from one stage
  int stage_length;  // elements of a row in a stage
  int run_bytes;     // bytes of a row in a stage
  int stage_bytes;
  int max_stages;  // stages of a warp that have a barrier
  int splits;      // sums of a row and token
  int sums, tile_sums, operand, pipelines;
  /// Stages of a warp that fit into `bytes` of shared memory; at least one is needed.
  SINTER_DEVICE constexpr int stages(int bytes, int warps) const {
    const int fit = bytes > pipelines ? (bytes - pipelines) / (stage_bytes * warps) : 0;
    return fit < max_stages ? fit : max_stages;
  }
};

SINTER_DEVICE constexpr int gemv_aligned(int bytes) {
  return (bytes + kGemvAlignment - 1) / kGemvAlignment * kGemvAlignment;
}

SINTER_DEVICE constexpr GemvLayout gemv_layout(const GemvShape& shape) {
  // Rows that are read together share a stage: shorter runs leave room for more stages.
  const int short_stage =
      shape.step_length * (shape.step_bytes < 1024 ? 1024 / shape.step_bytes : 1);
  GemvLayout layout{};
  layout.rows_at_once = shape.tiles ? 1 : gemv_rows_at_once(shape.tokens, shape.packed);
  layout.stage_length = shape.tiles                                             ? kTileStageLength
                        : shape.tokens == 1 || shape.stage_length < short_stage ? shape.stage_length
                                                                                : short_stage;
  layout.run_bytes = shape.tiles ? kTileStageLength * shape.element_bytes
                                 : layout.stage_length / shape.step_length * shape.step_bytes;
  layout.stage_bytes = layout.run_bytes * (shape.tiles ? kTileRows : layout.rows_at_once);
  layout.max_stages = shape.tiles && shape.packed ? 0 : shape.stages;  // tiles of codes have none
  layout.splits = shape.tiles ? 1 : shape.splits;
  layout.sums = shape.pipelined ? 8 * shape.warps * shape.stages : 0;
  layout.tile_sums = gemv_aligned(layout.sums + 4 * shape.tokens * shape.rows * layout.splits);
  layout.operand =
      layout.tile_sums + (shape.tiles ? 2 * 4 * kTileWarps * gemv_tile_sums(shape.tokens) : 0);
  layout.pipelines = gemv_aligned(layout.operand + shape.tokens * shape.operand_bytes);
  return layout;
}

}  // namespace sinter
