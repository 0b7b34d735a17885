// The layout on which configurations and kernels of products agree.
#pragma once

#include "kernels/tile/layout.h"

namespace sinter {

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

/// Rows of the matrix by which the shares of blocks differ at most: a warp's rows.
constexpr int kShareRows = 16;

constexpr int kMostFewStages = 16;
/// Bytes behind the stages: a pipeline's barriers.
constexpr int kFewBarrierBytes = 16 * kMostFewStages;

/// Stages of `stage_bytes` that `shared_bytes` hold, and that have barriers.
SINTER_DEVICE constexpr int few_stages(int shared_bytes, int stage_bytes) {
  const int fit = shared_bytes / stage_bytes;
  return fit < kMostFewStages ? fit : kMostFewStages;
}

/// Stages of the two pipelines of codes.cuh; at least two and three, else there is too little
/// memory.
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

}  // namespace sinter
