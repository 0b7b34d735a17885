// Fusion around a caller's op: its ports, and the reasons of refusals.
#include <doctest/doctest.h>

#include "ir/text.h"
#include "kernels/registry.h"
#include "passes/fusion/fusion.h"
#include "passes/pipeline.h"
#include "support/custom_ops.h"
#include "support/result.h"

namespace sinter::custom_fusion_test {
namespace {

/// A module's entry after all passes, fused.
struct Fused {
  Module module;
  Fusion fusion;

  Fused(std::string_view results, std::string_view text) {
    test::register_custom_ops();
    module = value(parse_module(fmt::format(kModule, results, text), "test"));
    const DeviceDescription device = value(find_device("sm_90a"));
    run_passes(module);
    fusion = fuse(module.entries[0].graph, module.symbols, device, {}, kernel_families());
  }

  std::string why(std::string_view a, std::string_view b) const {
    const Graph& graph = module.entries[0].graph;
    const Verdict verdict = fusion.why(graph.find(std::string(a)), graph.find(std::string(b)));
    return fmt::format("{}: {}", reason_id(verdict.reason), verdict.detail);
  }

  static constexpr const char* kModule = R"(module @m {{
  symbol N in [0, 4096]
  state %cache : f16[64, 512]
  entry @main(%x : f16[N, 512], %r : f16[N, 512], %w : f16[512], %b : f16[512], %c : f16[64, 512],
              %slot : i32[N]) -> ({}) {{
{}
  }}
}}
)";
};

TEST_CASE("elementwise neighbours on the same elements share a caller's kernel") {
  const Fused fused("%s, %a", R"(
    %a = add %x, %r : f16[N, 512]
    %y = custom %a, %w {op = "test.rms_norm", numbers = [0x1p-20]} : f16[N, 512]
    %t = tanh %r : f16[N, 512]
    %c1 = add %y, %b : f16[N, 512]
    %s = mul %c1, %t : f16[N, 512])");
  CHECK(fused.why("a", "y") == "fused: ");
  CHECK(fused.why("y", "c1") == "fused: ");
  CHECK(fused.why("y", "s") == "fused: ");
  CHECK(fused.fusion.grouping.groups.size() == 1);
}

TEST_CASE("a reshape of the rows' elements shares a caller's kernel") {
  const Fused fused("%s", R"(
    %e = exp %x : f16[N, 512]
    %y = custom %e, %w {op = "test.rms_norm", numbers = [0x1p-20]} : f16[N, 512]
    %h = reshape %y {dims = [N, 8, 64]} : f16[N, 8, 64]
    %s = silu %h : f16[N, 8, 64])");
  CHECK(fused.why("y", "s") == "fused: ");
}

TEST_CASE("rows of a state are written by a caller's kernel") {
  const Fused fused("%s", R"(
    %y = custom %x, %w {op = "test.rms_norm", numbers = [0x1p-20]} : f16[N, 512]
    %s = neg %y : f16[N, 512]
    %k = kv_append %cache, %s, %slot : f16[64, 512])");
  CHECK(fused.why("y", "k") == "fused: ");
}

TEST_CASE("closed ports share nothing, and say so") {
  const Fused fused("%s, %v", R"(
    %e = exp %x : f16[N, 512]
    %y = custom %e, %w {op = "test.closed_norm", numbers = [0x1p-20]} : f16[N, 512]
    %s = exp %y : f16[N, 512]
    %f = exp %w : f16[512]
    %z = custom %x, %f {op = "test.rms_norm", numbers = [0x1p-20]} : f16[N, 512]
    %v = exp %z : f16[N, 512])");
  CHECK(fused.why("e", "y") == "port.closed: y");
  CHECK(fused.why("y", "s") == "port.closed: y");
  CHECK(fused.why("f", "z") == "port.closed: z takes f from memory");
  CHECK(fused.why("z", "v") == "fused: ");
}

TEST_CASE("a value that an open and a closed operand read is computed before") {
  const Fused fused("%y", R"(
    %e = exp %w : f16[512]
    %y = custom %e, %e {op = "test.rms_norm", numbers = [0x1p-20]} : f16[512])");
  CHECK(fused.why("e", "y") == "port.closed: y takes e from memory");
}

TEST_CASE("reductions and other elements of a row stay outside") {
  const Fused fused("%p", R"(
    %n = rms_norm %x, %w {eps = 0x1p-20} : f16[N, 512]
    %y = custom %n, %w {op = "test.rms_norm", numbers = [0x1p-20]} : f16[N, 512]
    %p = softmax %y : f16[N, 512])");
  CHECK(fused.why("n", "y").starts_with("space.prefix: "));
  CHECK(fused.why("y", "p") == "port.other_element: p of y");
}

TEST_CASE("an epilogue has the elements of the result, each where it is set") {
  const auto why = [](std::string_view op) {
    return Fused("%q", fmt::format(R"(
    %y = custom %x, %w {{op = "test.rms_norm", numbers = [0x1p-20]}} : f16[N, 512]
    %left = slice %y {{axis = 1, begin = 0, size = 256}} : f16[N, 256]
    %right = slice %y {{axis = 1, begin = 256, size = 256}} : f16[N, 256]
    %q = {})",
                                   op))
        .why("y", "q");
  };
  CHECK(why("exp %left : f16[N, 256]") == "port.other_element: q of y");
  CHECK(why("mul %left, %right : f16[N, 256]") == "port.other_element: q of y");
  CHECK(why("concat %right, %left {axis = 1} : f16[N, 512]") == "port.other_element: q of y");
  CHECK(why("reduce_max %y {axes = [1]} : f16[N, 1]") == "port.other_element: q of y");
  CHECK(why("reduce_sum %y {axes = [0]} : f16[1, 512]").starts_with("space."));
  CHECK(why("embedding %y, %slot : f16[N, 512]").find("port.gathered") == 0);
  CHECK(why("copy %y : f16[N, 512]") == "fused: ");
}

TEST_CASE("two callers' ops, a product and a caller's op stay apart") {
  const Fused fused("%z, %p", R"(
    %y = custom %x, %w {op = "test.rms_norm", numbers = [0x1p-20]} : f16[N, 512]
    %z = custom %y, %w {op = "test.rms_norm", numbers = [0x1p-20]} : f16[N, 512]
    %p = linear %y, %c : f16[N, 64])");
  CHECK(fused.why("y", "z").starts_with("anchor.second: "));
  CHECK(fused.why("y", "p").starts_with("anchor.second: "));
}

TEST_CASE("a value without the op's rows is not stored by its kernel") {
  // Without rows nothing is launched, and the table has 64 rows whatever N is.
  const Fused fused("%s, %e", R"(
    %e = exp %c : f16[64, 512]
    %t = embedding %e, %slot : f16[N, 512]
    %s = custom %t, %w {op = "test.rms_norm", numbers = [0x1p-20]} : f16[N, 512])");
  CHECK(fused.why("t", "s") == "fused: ");
  CHECK_FALSE(fused.why("e", "s").starts_with("fused"));
}

TEST_CASE("what an open operand is a view of needs no copy, what a closed one is a view of does") {
  const Fused fused("%y, %z", R"(
    %t = transpose %c {axes = [1, 0]} : f16[512, 64]
    %half = slice %b {axis = 0, begin = 64, size = 64} : f16[64]
    %y = custom %t, %half {op = "test.rms_norm", numbers = [0x1p-20]} : f16[512, 64]
    %z = custom %t {op = "test.rotate"} : f16[512, 64])");
  std::vector<std::string> copies;
  for (const Op& op : fused.module.entries[0].graph.ops())
    if (op.kind == OpKind::copy) copies.push_back(op.name);
  CHECK(copies == std::vector<std::string>{"y.half", "z.t"});
}

}  // namespace
}  // namespace sinter::custom_fusion_test
