// y = LayerNorm(x + residual) · weight + bias, as one kernel: built, compiled, asked about and run
// on the CPU.
#include <sinter/sinter.h>

#include <cmath>
#include <cstdio>
#include <vector>

namespace {

constexpr std::int64_t kRows = 4, kWidth = 768;

int failed(const sinter::Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}

sinter::Result<sinter::Model> build() {
  using sinter::DType;
  sinter::ModuleBuilder module("post_norm");
  const sinter::Symbol rows = module.symbol("N", 1, 4096);
  module.weight("weight", DType::f32, {kWidth});
  module.weight("bias", DType::f32, {kWidth});
  sinter::Graph graph = module.entry("main");
  const sinter::Value x = graph.input("x", DType::f32, {rows, kWidth});
  const sinter::Value residual = graph.input("residual", DType::f32, {rows, kWidth});
  const sinter::Value sum = graph.add(x, residual, "sum");
  graph.output(graph.layer_norm(sum, graph.use("weight"), graph.use("bias"), 1e-5, "y"));
  return module.build();
}

}  // namespace

int main() {
  const auto model = build();
  if (!model) return failed(model.error());
  const auto plan = sinter::Plan::compile(*model);
  if (!plan) return failed(plan.error());

  const auto why = plan->why("main", "sum", "y");
  if (!why) return failed(why.error());
  const auto costs = plan->costs(0, {{"N", kRows}});
  if (!costs) return failed(costs.error());
  std::printf("sum and y: %s; %lld launch, %lld bytes moved\n", why->reason.c_str(),
              static_cast<long long>(costs->launches), static_cast<long long>(costs->moved_bytes));

  // Weights and tensors are the program's own memory.
  std::vector<float> weight(kWidth, 2.0f), bias(kWidth, 0.5f);
  std::vector<float> x(kRows * kWidth), residual(x.size()), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = std::sin(static_cast<float>(i));
    residual[i] = 0.25f * static_cast<float>(i % 7);
  }
  sinter::Weights weights;
  weights.add("weight", {sinter::DType::f32, {kWidth}, weight.data()});
  weights.add("bias", {sinter::DType::f32, {kWidth}, bias.data()});

  const auto device = sinter::Device::open("cpu");
  if (!device) return failed(device.error());
  const auto executable = sinter::Executable::load(*plan, *device, weights);
  if (!executable) return failed(executable.error());
  auto session = sinter::Session::create(*executable);
  if (!session) return failed(session.error());
  auto call = sinter::Call::create(*session, "main");
  if (!call) return failed(call.error());
  for (const sinter::Status& done :
       {call->input("x", {sinter::DType::f32, {kRows, kWidth}, x.data()}),
        call->input("residual", {sinter::DType::f32, {kRows, kWidth}, residual.data()}),
        call->output("y", {sinter::DType::f32, {kRows, kWidth}, y.data()}), call->run()})
    if (!done) return failed(done.error());

  // The same in float64.
  double largest = 0;
  for (std::int64_t row = 0; row < kRows; ++row) {
    double sum = 0, squares = 0;
    const auto at = [&](std::int64_t i) {
      const std::size_t index = static_cast<std::size_t>(row * kWidth + i);
      return static_cast<double>(x[index]) + residual[index];
    };
    for (std::int64_t i = 0; i < kWidth; ++i) sum += at(i);
    const double mean = sum / kWidth;
    for (std::int64_t i = 0; i < kWidth; ++i) squares += (at(i) - mean) * (at(i) - mean);
    const double scale = 1 / std::sqrt(squares / kWidth + 1e-5);
    for (std::int64_t i = 0; i < kWidth; ++i) {
      const double exact = (at(i) - mean) * scale * 2 + 0.5;
      largest =
          std::fmax(largest, std::fabs(exact - y[static_cast<std::size_t>(row * kWidth + i)]));
    }
  }
  std::printf("largest error against float64: %.1e\n", largest);
  return largest < 1e-5 ? 0 : 1;
}
