// Named descriptions of devices: what code generation and the cost model know of a GPU.
#pragma once

#include <cstdint>

#include "device/capabilities.h"
#include "ir/dtype.h"
#include "ir/error.h"

namespace sinter {

struct DeviceDescription {
  std::string name;  // "sm_90a"
  Capabilities has;
  int64_t multiprocessors = 0;
  int64_t registers_per_block = 64 * 1024;
  int64_t static_shared_bytes = 48 * 1024;  // of a block that declares them
  int64_t max_shared_bytes = 0;             // of a block that asks for them at its launch
  int64_t max_threads_per_block = 1024;
  double memory_bytes_per_s = 0;
  double cache_bytes = 0;         // second level
  double cache_bytes_per_s = 0;   // second level
  double tensor_flops_per_s = 0;  // 16-bit operands, float32 accumulation
  /// The same of multiprocessors of which some are idle: where all work, power limits the clock.
  double tensor_peak_flops_per_s = 0;
  double float_flops_per_s = 0;  // float32, without tensor cores
  double launch_s = 0;           // of one more kernel in a chain
  double latency_s = 8e-7;       // from a load to its data, in memory that is busy
};

/// The rate of products whose operands have this type.
double flops_per_s(const DeviceDescription& device, DType operands);
/// The same where some multiprocessors are idle.
double peak_flops_per_s(const DeviceDescription& device, DType operands);

/// "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"; others are an error listing
/// them.
Result<DeviceDescription> find_device(std::string_view name);

}  // namespace sinter
