#include "kernels/tile/emit.h"

namespace sinter {

std::string tile_text(const PortText& ports, std::string_view call) {
  return fmt::format("{}{}{}{}", kTileMemory, ports.memory_value, call, ports.stores);
}

void set_tile_launch(KernelBody& body, const DeviceDescription& device, const TileLaunch& launch) {
  body.launch.rows = launch.work_tiles;
  body.launch.items_per_block = launch.units_per_tile;
  body.launch.threads = launch.threads;
  body.launch.shared_bytes = launch.shared_bytes;
  body.launch.cluster = launch.cluster;
  if (launch.persistent) body.launch.most_blocks = device.multiprocessors / launch.cluster;
}

}  // namespace sinter
