#include "driver/bench/parts.h"

#include "runtime/compare.h"

namespace sinter {

void add_sample(PlanTimes& plan, const Stopwatch::Times& times, int64_t calls) {
  plan.device_s.push_back(times.device_s / static_cast<double>(calls));
  plan.host_s.push_back(times.host_s / static_cast<double>(calls));
}

namespace {

Status require_near(const HostTensor& fused, const HostTensor& unfused, std::string_view what) {
  constexpr double kMaxApart = 0.25;
  if (!is_float(unfused.dtype)) return {};
  const std::vector<double> values = to_doubles(unfused);
  SINTER_LET(apart, accuracy(fused, values));
  SINTER_LET(size, accuracy(unfused, std::vector<double>(values.size(), 0)));
  if (apart.rms <= kMaxApart * size.rms) return {};
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

}  // namespace sinter
