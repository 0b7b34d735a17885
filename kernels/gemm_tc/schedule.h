// The configuration of a tiled_linear kernel, and which operands its tensor maps can describe.
#pragma once

#include <optional>

#include "device/device.h"
#include "ir/contraction.h"

namespace sinter {

struct TiledLinearConfig {
  int64_t rows = 0, columns = 0;  // of a tile of the result: tokens, rows of the matrix
  int64_t threads = 0;            // of a block
  int64_t stages = 0;             // tiles of both operands in shared memory
  int64_t shared_bytes = 0;       // of the tiles
};
/// Elements of K in a stage: a row of a panel of 128 bytes.
inline constexpr int64_t kTiledLinearDepth = 64;

/// nullopt: the device has no products of warpgroups.
std::optional<TiledLinearConfig> tiled_linear_config(int64_t columns,
                                                     const DeviceDescription& device);

/// An operand as rows of neighbouring elements that a tensor map can describe: rows begin at
/// multiples of 16 bytes. nullopt: it has to be copied first.
std::optional<StridedMatrix> tensor_map_rows(const Graph& graph, ValueId id,
                                             llvm::ArrayRef<Symbol> symbols);

}  // namespace sinter
