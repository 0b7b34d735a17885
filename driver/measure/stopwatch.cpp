#include "driver/measure/stopwatch.h"

namespace sinter {

Result<Stopwatch> Stopwatch::create(CudaDevicePtr device) {
  Stopwatch watch;
  SINTER_LET(begin, CudaEvent::create(device));
  SINTER_LET(end, CudaEvent::create(std::move(device)));
  watch.begin_ = std::move(begin);
  watch.end_ = std::move(end);
  return watch;
}

Status Stopwatch::start(const CudaStream& stream) {
  begin_time_ = Clock::now();
  return begin_.record(stream);
}

Result<Stopwatch::Times> Stopwatch::stop(const CudaStream& stream) {
  SINTER_TRY(end_.record(stream));
  SINTER_TRY(end_.wait());
  Times times;
  times.host_s = seconds_since(begin_time_);
  SINTER_LET(device_s, end_.seconds_since(begin_));
  times.device_s = device_s;
  return times;
}

}  // namespace sinter
