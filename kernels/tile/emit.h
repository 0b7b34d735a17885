// The launch of kernels that compute tiles.
#pragma once

#include "codegen/emission/element_ports.h"
#include "codegen/emission/kernel_body.h"
#include "device/device.h"

namespace sinter {

/// Declares the tiles' dynamic shared memory: `shared_memory`.
inline constexpr std::string_view kTileMemory =
    "extern __shared__ __align__(1024) unsigned char shared_memory[];\n";

/// The oldest device that runs kernels which load tiles by cp.async.
inline constexpr uint32_t kFirstArchWithAsyncCopies = 80;

struct TileLaunch {
  SymExpr work_tiles;          // their number, times units_per_tile
  int64_t cluster = 1;         // blocks that compute a work tile
  int64_t units_per_tile = 1;  // units that are left over count as a whole tile
  int64_t threads = 0;         // of a block
  int64_t shared_bytes = 0;    // of a block's tiles
  /// A block, or a cluster, computes several work tiles, and there are no more blocks than
  /// multiprocessors.
  bool persistent = false;
};
/// The statements of a kernel that `call` computes: memory of tiles and ports before it, the ports'
/// stores behind it.
std::string tile_text(const PortText& ports, std::string_view call);

void set_tile_launch(KernelBody& body, const DeviceDescription& device, const TileLaunch& launch);

}  // namespace sinter
