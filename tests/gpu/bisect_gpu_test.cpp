// bisect by time: a delay in the kernel of one fusion is found, and no fusion in a plan without
// one.
#include <doctest/doctest.h>

#include <cmath>

#include "driver/bisect/bisect.h"
#include "ir/text.h"
#include "support/result.h"

namespace sinter {
namespace {

constexpr int kLayers = 8;

/// Layers of two kernels each: sums along rows and along columns share none.
OpenedModel layers() {
  std::string text = "module @layers {\n  entry @main(%x: f32[256, 1024]) -> (%y) {\n";
  std::string x = "x";
  for (int i = 0; i < kLayers; ++i) {
    text += fmt::format(
        "    %{1}.square = mul %{0}, %{0} : f32[256, 1024]\n"
        "    %{1}.soft = softmax %{1}.square : f32[256, 1024]\n"
        "    %{1}.wave = sin %{1}.soft : f32[256, 1024]\n"
        "    %{1}.column = reduce_sum %{1}.wave {{axes = [0]}} : f32[1, 1024]\n"
        "    %{1}.tanh = tanh %{1}.column : f32[1, 1024]\n"
        "    %{2} = add %{1}.wave, %{1}.tanh : f32[256, 1024]\n",
        x, fmt::format("l{}", i), i + 1 == kLayers ? "y" : fmt::format("x{}", i + 1));
    x = fmt::format("x{}", i + 1);
  }
  Model model;
  model.module = value(parse_module(text + "  }\n}\n", "layers.sir"));
  model.origin = "layers.sir";
  return OpenedModel(std::move(model));
}

/// The program with a delay in each block of the kernel that computes both values; without one
/// where they share no kernel.
std::shared_ptr<const Program> delayed(const Compiled& compiled, const std::string& a,
                                       const std::string& b) {
  auto program = std::make_shared<Program>(*compiled.program);
  for (EntryPlan& entry : program->entries)
    for (Step& step : entry.steps) {
      KernelStep* const run = visit(
          step, [](KernelStep& kernel) { return &kernel; },
          [](GemmStep&) -> KernelStep* { return nullptr; },
          [](CopyStep&) -> KernelStep* { return nullptr; },
          [](CollectiveStep&) -> KernelStep* { return nullptr; });
      const Graph& graph = compiled.module.entries[0].graph;
      const std::vector<uint32_t>& group_of = compiled.fusions[0].grouping.group_of;
      const ValueId x = graph.find(a), y = graph.find(b);
      if (!run || !x.valid() || !y.valid() || group_of[x.index] == UINT32_MAX ||
          group_of[x.index] != group_of[y.index])
        continue;
      const bool is_theirs = llvm::any_of(step.values, [&](const std::string& value) {
        const ValueId id = graph.find(value);
        return id.valid() && group_of[id.index] == group_of[x.index];
      });
      if (!is_theirs) continue;
      Kernel kernel = program->kernels[run->kernel];
      const size_t head = kernel.source.find("__global__");
      const size_t body = kernel.source.find(") {\n", head);
      REQUIRE(body != std::string::npos);
      constexpr std::string_view kOpening = ") {\n";
      kernel.source.insert(
          body + kOpening.size(),
          "  for (const long long end = clock64() + 1000000; clock64() < end;) {\n  }\n");
      kernel.source_hash.clear();
      run->kernel = static_cast<uint32_t>(program->kernels.size());
      program->kernels.push_back(std::move(kernel));
      return program;
    }
  return compiled.program;
}

TEST_CASE("a fusion whose kernel is slow is found by its time") {
  const OpenedModel model = layers();
  BisectOptions options;
  options.backend = value(Backend::open({.device = "cuda", .record = {}, .progress = {}}));
  options.slower_than = 1.02;
  options.repeats = 3;
  const BisectReport right = value(bisect(model, options));
  INFO(bisect_text(right));
  CHECK(right.verdict == BisectReport::Verdict::right);
  for (const auto& [a, b] : {std::pair("l2.soft", "l2.wave"), std::pair("l6.column", "l6.tanh")}) {
    options.planted = [a = a, b = b](const Compiled& compiled) { return delayed(compiled, a, b); };
    const BisectReport report = value(bisect(model, options));
    INFO(bisect_text(report));
    REQUIRE(report.guilty.size() == 1);
    REQUIRE(report.guilty[0].fusions.size() == 1);
    CHECK(report.guilty[0].fusions[0].a == a);
    CHECK(report.guilty[0].fusions[0].b == b);
    CHECK(report.guilty[0].failure.find("times as long") != std::string::npos);
    CHECK(report.checks <= std::ceil(std::log2(static_cast<double>(report.fusions))) + 4);
    MESSAGE(bisect_text(report));
  }
}

}  // namespace
}  // namespace sinter
