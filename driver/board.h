// A board's measured rates, which replace the device table's.
#pragma once

#include "device/device.h"
#include "runtime/cuda/memory.h"

namespace sinter {

/// Rates in the units of DeviceDescription.
struct BoardRates {
  std::string device;  // "NVIDIA H200"
  double memory_bytes_per_s = 0, cache_bytes_per_s = 0;
  double tensor_flops_per_s = 0, float_flops_per_s = 0;
  double launch_s = 0;
};

/// Measures a board, in some seconds: copies, reads from the second-level cache, products of
/// matrices and launches. Errors: no NVRTC, a driver that fails.
Result<BoardRates> measure_board(const CudaDevicePtr& device);

std::string board_json(const BoardRates& rates);
/// Errors name the place in the file; a rate that is not above 0.
Result<BoardRates> read_board(const std::string& path);

/// The file that keeps the rates of a board: "boards/NVIDIA-H200.json" in the folder of the kernel
/// cache. Empty: the user has none.
std::string board_path(const std::string& device);
/// The rates kept for a board; nullopt: it was not measured, or its file is damaged.
std::optional<BoardRates> kept_board(const std::string& device);
/// Writes the rates to board_path().
Status keep_board(const BoardRates& rates);

/// The device with the board's rates: what reports state times with. Never what plans are made for.
DeviceDescription with_rates(DeviceDescription device, const BoardRates& rates);

}  // namespace sinter
