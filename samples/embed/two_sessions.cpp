// Two sessions of one executable on two threads: states belong to sessions.
#include <sinter/sinter.h>

#include <cstdio>
#include <thread>
#include <vector>

namespace {

constexpr int kCalls = 20;
constexpr std::int64_t kWidth = 64;

// Each call appends a row to a cache and adds up the whole cache.
constexpr const char* kModule = R"(
module @running {
  state %cache : f32[32, 64]
  entry @main(%x: f32[1, 64], %slot: i32[1]) -> (%sum) {
    %next = kv_append %cache, %x, %slot : f32[32, 64]
    %sum = reduce_sum %next {axes = [0]} : f32[1, 64]
  }
})";

/// The sum that the session's last call gives, or a negative number.
float run(const sinter::Executable& executable, float step) {
  auto session = sinter::Session::create(executable);
  if (!session) return -1;
  auto call = sinter::Call::create(*session, "main");
  if (!call) return -1;
  std::vector<float> x(kWidth), sum(kWidth);
  std::int32_t slot = 0;
  if (!call->input("x", {sinter::DType::f32, {1, kWidth}, x.data()}) ||
      !call->input("slot", {sinter::DType::i32, {1}, &slot}) ||
      !call->output("sum", {sinter::DType::f32, {1, kWidth}, sum.data()}))
    return -1;
  for (; slot < kCalls; ++slot) {
    for (float& element : x) element = step;
    if (!call->run()) return -1;
  }
  return sum[kWidth - 1];
}

}  // namespace

int main() {
  const auto model = sinter::Model::parse(kModule);
  const auto plan = model ? sinter::Plan::compile(*model) : model.error();
  const auto device = sinter::Device::open("cpu");
  if (!plan || !device) {
    std::fprintf(stderr, "%s\n", (plan ? device.error() : plan.error()).message.c_str());
    return 1;
  }
  const auto executable = sinter::Executable::load(*plan, *device);
  if (!executable) {
    std::fprintf(stderr, "%s\n", executable.error().message.c_str());
    return 1;
  }
  float ones = 0, twos = 0;
  std::thread first([&] { ones = run(*executable, 1); });
  std::thread second([&] { twos = run(*executable, 2); });
  first.join();
  second.join();
  std::printf("%g and %g after %d calls\n", static_cast<double>(ones), static_cast<double>(twos),
              kCalls);
  return ones == kCalls && twos == 2 * kCalls ? 0 : 1;
}
