// Named descriptions of devices: what code generation and the cost model know of a GPU.
#pragma once

#include <cstdint>
#include <string>

#include "ir/matvec_ring.h"

namespace sinter {

struct DeviceDescription {
  std::string name;                 // "sm_90a"
  int64_t compute_capability = 90;  // 10 * major + minor
  int64_t multiprocessors = 132;
  int64_t registers_per_block = 65536;
  int64_t shared_bytes_per_block = 48 * 1024;
  int64_t max_threads_per_block = 1024;
  double memory_bytes_per_s = 4.2e12;
  double tensor_flops_per_s = 7.5e14;      // 16-bit operands, float32 accumulation
  double launch_s = 2.0e-6;                // of one more kernel in a chain
  int64_t most_shared_bytes = 227 * 1024;  // of a block that asks for them at its launch
  double cache_bytes_per_s = 5.5e12;       // second level
  MatvecRings rings = {};  // forms measured on this very device; others are schedule_matvec's own
};

/// "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"; others are an error listing
/// them.
Result<DeviceDescription> find_device(std::string_view name);

}  // namespace sinter
