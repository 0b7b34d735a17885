#include "driver/measure/parts.h"

#include "runtime/compare.h"
#include "runtime/random_inputs.h"

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

void add_sample(PlanTimes& plan, const Stopwatch::Times& times, int64_t calls) {
  plan.device_s.push_back(times.device_s / static_cast<double>(calls));
  plan.host_s.push_back(times.host_s / static_cast<double>(calls));
}

namespace {

Status require_near(const HostTensor& fused, const HostTensor& unfused, std::string_view what) {
  constexpr double kMostApart = 0.25;
  if (!is_float(unfused.dtype)) return {};
  const std::vector<double> values = to_doubles(unfused);
  SINTER_LET(apart, accuracy(fused, values));
  SINTER_LET(size, accuracy(unfused, std::vector<double>(values.size(), 0)));
  if (apart.rms <= kMostApart * size.rms) return {};
  return fail(fmt::format("the fused and the unfused plan are {:.2e} apart (RMS), of {:.2e}",
                          apart.rms, size.rms),
              std::string(what), "`sinter verify --numerics fast` compares both with float64",
              ExitCode::check_failed);
}

}  // namespace

Status require_same(const BenchPlans& plans, const HostTensor& fused, const HostTensor& unfused,
                    std::string_view what) {
  if (plans.numerics() == Numerics::fast) return require_near(fused, unfused, what);
  SINTER_LET(difference, compare_bits(fused, unfused));
  if (!difference) return {};
  return fail(fmt::format("the fused and the unfused plan differ: {}", to_string(*difference)),
              std::string(what), "`sinter verify` finds the first value that does",
              ExitCode::check_failed);
}

Result<std::vector<std::vector<int32_t>>> random_sequences(int64_t vocabulary, int64_t count,
                                                           int64_t length, uint64_t seed) {
  SINTER_LET(ids, random_tensor(DType::i32, {count, length}, seed, {1, 0, vocabulary - 1}));
  std::vector<std::vector<int32_t>> sequences;
  for (int64_t s = 0; s < count; ++s)
    sequences.emplace_back(ids.data<int32_t>() + s * length,
                           ids.data<int32_t>() + (s + 1) * length);
  return sequences;
}

}  // namespace sinter
