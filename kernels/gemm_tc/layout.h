// The layout on which schedule and kernel of tiled_linear for few tokens agree.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

/// Bytes of a row of a panel of a tile (kernels/tile/layout.h): 64 elements.
constexpr int kFewTokensPanelRow = 128;

constexpr int kMostFewTokensStages = 16;
/// Bytes behind the stages: a pipeline's barriers.
constexpr int kFewTokensBarrierBytes = 16 * kMostFewTokensStages;

/// Stages of `stage_bytes` that `shared_bytes` hold, and that have barriers.
SINTER_DEVICE constexpr int few_tokens_stages(int shared_bytes, int stage_bytes) {
  const int fit = shared_bytes / stage_bytes;
  return fit < kMostFewTokensStages ? fit : kMostFewTokensStages;
}

/// Whether rows are whole panels. The dimensions of an operand's tensor map are then the elements
/// of a panel, rows, and panels, so that one box has several panels; else elements, rows, and one.
SINTER_DEVICE constexpr bool few_tokens_panels(long long length) { return length % 64 == 0; }

}  // namespace sinter
