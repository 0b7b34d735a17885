// Times of work on a device.
#pragma once

#include "runtime/clock.h"
#include "runtime/cuda/executable.h"

namespace sinter {

/// Launches of a graph before its measured ones.
inline constexpr int64_t kWarmLaunches = 3;

/// Times work in a stream by events, and by the host's clock from start() until it is done.
class Stopwatch {
 public:
  struct Times {
    double device_s = 0, host_s = 0;
  };
  static Result<Stopwatch> create(CudaDevicePtr device);
  Status start(const CudaStream& stream);
  /// Waits for what was enqueued since start().
  Result<Times> stop(const CudaStream& stream);

 private:
  CudaEvent begin_, end_;
  Clock::time_point begin_time_;
};

}  // namespace sinter
