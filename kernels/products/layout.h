// The layout on which schedule and kernels of tiled_linear agree.
#pragma once

#include "ir/packed_codes.h"
#include "ir/scalar_math.h"

namespace sinter {

/// Bytes of a row of a panel of a tile (kernels/tile/layout.h): 64 elements.
constexpr int kFewTokensPanelRow = 128;

/// Elements of a row of a panel of a transposed matrix, which has rows of the sum.
constexpr int kTransposedPanel = 64;

/// Registers of a thread in the kernel of many tokens: in the copying warpgroup, and in the
/// epilogue's warpgroups. The multiplying warpgroups get the rest. The block begins with 65536
/// registers, or fewer by less than 8 a thread.
constexpr int kTiledLinearCopyRegisters = 32, kTiledLinearEpilogueRegisters = 64;
SINTER_DEVICE constexpr int tiled_linear_registers(int multiplying, int epilogue = 0) {
  const int warpgroups = multiplying + epilogue + 1;
  const int of_thread = 65536 / (128 * warpgroups) / 8 * 8;
  const int left = (of_thread * warpgroups - kTiledLinearCopyRegisters -
                    epilogue * kTiledLinearEpilogueRegisters) /
                   multiplying / 8 * 8;
  return left < 240 ? left : 240;
}

constexpr int kMostFewTokensStages = 16;
/// Bytes behind the stages: a pipeline's barriers.
constexpr int kFewTokensBarrierBytes = 16 * kMostFewTokensStages;

/// The most rows of the matrix in a box of its tensor map, and of a warpgroup's product.
constexpr int kFewTokensBox = 64;

/// Rows of the matrix that are next to each other in a box: the rows that a lane's chunk has.
constexpr int kFewTokensChunk = 8;

/// The rows of a box of `box` rows where an epilogue needs pairs of rows `stride` apart, the
/// classes of ir/colocation.h of two units: 8 first rows of pairs, then their partners, and so
/// on. So a lane of wgmma's result has the sums of both rows of a pair. A box begins at pair
/// `position` / 2.
template <int stride, int box>
struct PairedRows {
  static constexpr int kChunks = box / 2 / kFewTokensChunk, kOfStride = stride / kFewTokensChunk;
  /// Chunks of a run of pairs that a box has, and runs.
  static constexpr int kRun = kChunks < kOfStride ? kChunks : kOfStride;
  static_assert(stride % kFewTokensChunk == 0 && kChunks % kRun == 0 && kOfStride % kRun == 0,
                "boxes have whole runs of pairs");

  /// The row of the matrix that is the first of a box's chunk of pairs.
  static SINTER_DEVICE constexpr int matrix_row(int position, int chunk) {
    const int pair = position / 2 + kFewTokensChunk * chunk;
    return pair / stride * (2 * stride) + pair % stride;
  }
};

/// Stages of `stage_bytes` that `shared_bytes` hold, and that have barriers.
SINTER_DEVICE constexpr int few_tokens_stages(int shared_bytes, int stage_bytes) {
  const int fit = shared_bytes / stage_bytes;
  return fit < kMostFewTokensStages ? fit : kMostFewTokensStages;
}

/// Stages of codes (codes.cuh): half of the lanes of a step, of each row two panels of the codes of
/// 8 lanes, then the scales of the step. A panel is swizzled like a panel of kernels/tile/layout.h.
constexpr int kCodesPanelRow = 128, kCodesHalfBytes = 2 * kCodesPanelRow;
/// Columns of a window of tokens, the unit in which they are loaded.
constexpr int kCodesWindow = 64;
/// Scales and zeros of a step of a row.
SINTER_DEVICE constexpr int codes_scale_bytes(const CodeLayout& layout) {
  return layout.step_bytes() - layout.code_bytes(layout.step_rounds());
}
SINTER_DEVICE constexpr int codes_stage_bytes(const CodeLayout& layout, int rows) {
  return (rows * (kCodesHalfBytes + codes_scale_bytes(layout)) + 1023) / 1024 * 1024;
}
/// Stages of the two pipelines; at least two and three, else there is too little memory.
struct CodesStages {
  int codes, tokens;
};
constexpr int kMostCodeStages = 16, kMostTokenStages = 8;
constexpr int kCodesBarrierBytes = 16 * (kMostCodeStages + kMostTokenStages);
/// Tokens get the stages that fit beside two of codes, and codes the rest.
SINTER_DEVICE constexpr CodesStages codes_stages(int shared_bytes, int code_stage,
                                                 int token_stage) {
  const int fit = (shared_bytes - 2 * code_stage) / token_stage;
  const int tokens = fit < kMostTokenStages ? fit : kMostTokenStages;
  const int codes = (shared_bytes - tokens * token_stage) / code_stage;
  return {codes < kMostCodeStages ? codes : kMostCodeStages, tokens};
}

/// Whether rows are whole panels. The dimensions of an operand's tensor map are then the elements
/// of a panel, rows, and panels, so that one box has several panels; else elements, rows, and one.
SINTER_DEVICE constexpr bool few_tokens_panels(long long length) { return length % 64 == 0; }

}  // namespace sinter
