// Outputs that a call may write in the memory of inputs.
#include "plan/shared_outputs.h"

#include <doctest/doctest.h>

#include "driver/compile/compile.h"
#include "ir/text.h"
#include "support/result.h"

namespace sinter::shared_outputs_test {
namespace {

/// The pairs "OUTPUT=INPUT" of entry @e that may share memory, where all `wanted` are asked for.
std::string shared(std::string_view body, std::vector<std::pair<std::string, std::string>> wanted,
                   bool fuse = true) {
  CompileOptions options;
  options.overwritten = std::move(wanted);
  options.fusion.enabled = fuse;
  Module module = value(parse_module(fmt::format("module @m {{\n{}\n}}\n", body), "m.sir"));
  module = value(freeze(std::move(module), {}, {}, {}));
  const auto program = value(compile(std::move(module), options)).program;
  const EntryPlan& entry = program->entries[0];
  std::string pairs;
  for (size_t output = 0; output < entry.outputs.size(); ++output)
    for (size_t input = 0; input < entry.inputs.size(); ++input)
      if (may_share_memory(*program, entry, output, input))
        pairs += fmt::format("{}{}={}", pairs.empty() ? "" : " ", entry.output_names[output],
                             entry.buffers[entry.inputs[input]].value);
  return pairs;
}

// The moment is read by the parameter's formula too, through its new value; 4,000,000 elements, so
// that the kernel does not overlap its neighbours.
constexpr std::string_view kMomentum = R"(
  entry @e(%p: f32[2000, 2000], %m: f32[2000, 2000], %g: f32[2000, 2000]) -> (%p1, %m1) {
    %half = constant {value = 0.5} : f32[]
    %old = mul %m, %half : f32[2000, 2000]
    %m1 = add %old, %g : f32[2000, 2000]
    %part = mul %m1, %half : f32[2000, 2000]
    %p1 = sub %p, %part : f32[2000, 2000]
  })";

TEST_CASE("a kernel writes parameters and moments in place where that is wanted") {
  CHECK(shared(kMomentum, {{"p1", "p"}, {"m1", "m"}}) == "p1=p m1=m");
  CHECK(shared(kMomentum, {{"m1", "m"}}) == "m1=m");
  CHECK(shared(kMomentum, {}) == "");
  CHECK(shared(kMomentum, {{"p1", "p"}, {"none", "m"}, {"m1", "none"}}) == "p1=p");
}

TEST_CASE("without fusion an output takes the place of an input that an earlier step read last") {
  // m1 is written by the step after the one that reads m, but before the last that reads g.
  CHECK(shared(kMomentum, {{"p1", "p"}, {"m1", "m"}}, false) == "p1=p p1=m p1=g m1=m");
}

TEST_CASE("an input that is read elsewhere keeps its memory") {
  CHECK(shared(R"(
  entry @e(%p: f32[2000, 2000]) -> (%p1, %sum) {
    %p1 = neg %p : f32[2000, 2000]
    %sum = reduce_sum %p {axes = [0]} : f32[1, 2000]
  })",
               {{"p1", "p"}}) == "");
  CHECK(shared(R"(
  entry @e(%p: f32[2000, 2000]) -> (%p1) {
    %t = transpose %p {axes = [1, 0]} : f32[2000, 2000]
    %p1 = add %p, %t : f32[2000, 2000]
  })",
               {{"p1", "p"}}) == "");
  CHECK(shared(R"(
  entry @e(%p: f32[2000, 2000]) -> (%p1, %p) {
    %p1 = neg %p : f32[2000, 2000]
  })",
               {{"p1", "p"}}) == "");
}

TEST_CASE("threads that share a number alone do not wait for each other") {
  CHECK(shared(R"(
  entry @e(%p: f32[2000, 2000], %q: f32[2000, 2000], %s: f32[]) -> (%p1, %q1) {
    %t = add %s, %s : f32[]
    %p1 = mul %p, %t : f32[2000, 2000]
    %old = mul %q, %t : f32[2000, 2000]
    %q1 = add %old, %p : f32[2000, 2000]
  })",
               {{"p1", "p"}, {"q1", "q"}}) == "q1=q");
}

TEST_CASE("nothing else lies in the memory of an output that an input has") {
  // Without sharing, %a or %b lies in the output's memory before that is written.
  Module module = value(parse_module(R"(module @m {
  entry @e(%p: f32[512, 512], %w: f32[512, 512]) -> (%p1) {
    %a = linear %p, %w : f32[512, 512]
    %b = linear %a, %w : f32[512, 512]
    %c = linear %b, %w : f32[512, 512]
    %p1 = add %p, %c : f32[512, 512]
  }
})",
                                     "m.sir"));
  module = value(freeze(std::move(module), {}, {}, {}));
  CompileOptions options;
  options.overwritten = {{"p1", "p"}};
  const auto program = value(compile(std::move(module), options)).program;
  const EntryPlan& entry = program->entries[0];
  const auto in_output = [](const std::optional<ArenaLayout>& layout) {
    REQUIRE(layout);
    return llvm::count_if(layout->outputs, [](int64_t o) { return o != ArenaLayout::kInArena; });
  };
  CHECK(in_output(arena_layout(entry, {}, true)) > 1);
  CHECK(in_output(arena_layout(entry, {}, std::vector<bool>{true})) == 1);
}

}  // namespace
}  // namespace sinter::shared_outputs_test
