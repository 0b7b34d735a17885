// Groups of fast numerics: which roundings go, which stay, and the kernel text that is left.
#include "codegen/lowering/inner_roundings.h"

#include <doctest/doctest.h>

#include "codegen/groups.h"
#include "ir/text.h"
#include "support/result.h"

namespace sinter::inner_roundings_test {
namespace {

Graph parsed(const std::string& text) { return value(parse_graph(text, "test", group_symbols())); }

/// The transformed group, read from its text again and printed: it is valid.
std::string widened(const std::string& text) {
  const Graph result = without_inner_roundings(parsed(text), group_symbols());
  return print_graph(parsed(print_graph(result, group_symbols())), group_symbols());
}

void check(const std::string& from, const std::string& to) {
  CHECK(widened(from) == print_graph(parsed(to), group_symbols()));
}
void check_same(const std::string& text) { check(text, text); }

TEST_CASE("a sum that leaves is rounded for its store, not for the norm after it") {
  const std::string group = R"(graph(%x: bf16[N, 64], %r: bf16[N, 64], %w: bf16[64]) -> (%s, %y) {
  %s = add %x, %r : bf16[N, 64]
  %y = rms_norm %s, %w {eps = 0.5} : bf16[N, 64]
})";
  check(group, R"(graph(%x: bf16[N, 64], %r: bf16[N, 64], %w: bf16[64]) -> (%w3, %w4) {
  %w0 = cast %x : f32[N, 64]
  %w1 = cast %r : f32[N, 64]
  %s = add %w0, %w1 : f32[N, 64]
  %w2 = cast %w : f32[64]
  %y = rms_norm %s, %w2 {eps = 0.5} : f32[N, 64]
  %w3 = cast %s : bf16[N, 64]
  %w4 = cast %y : bf16[N, 64]
})");
  const Graph wide = without_inner_roundings(parsed(group), group_symbols());
  const auto emitted = [&](const Graph& graph) {
    auto kernel = emit_kernel(graph, 1, group_symbols(), *find_device("sm_90a"));
    REQUIRE(kernel.has_value());
    return kernel->source;
  };
  const auto count = [](const std::string& text, std::string_view part) {
    int64_t found = 0;
    for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  const std::string strict = emitted(parsed(group)), fast = emitted(wide);
  CHECK(count(strict, "round_bf16(") >= 2);
  CHECK(count(fast, "round_bf16(") == 0);
}

TEST_CASE("composites round inside, too") {
  check(R"(graph(%x: f16[N, 64], %w: f16[64]) -> (%y) {
  %y = rms_norm %x, %w {eps = 0.5} : f16[N, 64]
})",
        R"(graph(%x: f16[N, 64], %w: f16[64]) -> (%w2) {
  %w0 = cast %x : f32[N, 64]
  %w1 = cast %w : f32[64]
  %y = rms_norm %w0, %w1 {eps = 0.5} : f32[N, 64]
  %w2 = cast %y : f16[N, 64]
})");
}

TEST_CASE("casts between are nothing, and what moves elements moves them unrounded") {
  check(R"(graph(%x: f32[N, 8], %k: bf16[512, 8], %slot: i32[N]) -> (%y, %next) {
  %h = cast %x : bf16[N, 8]
  %t = neg %h : bf16[N, 8]
  %r = reshape %t {dims = [N, 2, 4]} : bf16[N, 2, 4]
  %c = concat %r, %r {axis = 2} : bf16[N, 2, 8]
  %y = cast %c : f32[N, 2, 8]
  %next = kv_append %k, %t, %slot : bf16[512, 8]
})",
        R"(graph(%x: f32[N, 8], %k: bf16[512, 8], %slot: i32[N]) -> (%c, %next) {
  %t = neg %x : f32[N, 8]
  %r = reshape %t {dims = [N, 2, 4]} : f32[N, 2, 4]
  %c = concat %r, %r {axis = 2} : f32[N, 2, 8]
  %w0 = cast %t : bf16[N, 8]
  %next = kv_append %k, %w0, %slot : bf16[512, 8]
})");
}

TEST_CASE("a product takes its operand rounded and gives its sums as they are") {
  check(R"(graph(%x: f16[B, 64], %w: f16[64], %m: f16[16, 64], %r: f16[B, 16]) -> (%y) {
  %n = rms_norm %x, %w {eps = 0.5} : f16[B, 64]
  %p = linear %n, %m {order = gemv, splits = 1} : f16[B, 16]
  %y = add %p, %r : f16[B, 16]
})",
        R"(graph(%x: f16[B, 64], %w: f16[64], %m: f16[16, 64], %r: f16[B, 16]) -> (%w4) {
  %w0 = cast %x : f32[B, 64]
  %w1 = cast %w : f32[64]
  %n = rms_norm %w0, %w1 {eps = 0.5} : f32[B, 64]
  %w2 = cast %n : f16[B, 64]
  %p = linear %w2, %m {order = gemv, dtype = f32, splits = 1} : f32[B, 16]
  %w3 = cast %r : f32[B, 16]
  %y = add %p, %w3 : f32[B, 16]
  %w4 = cast %y : f16[B, 16]
})");
}

TEST_CASE("a product and what is summed by blocks of rows are rounded, as the kernel has them") {
  check(R"(graph(%x: bf16[128, 16], %m: bf16[8, 16], %r: bf16[128, 8]) -> (%y, %s) {
  %p = linear %x, %m {order = tiled_linear} : bf16[128, 8]
  %t = mul %p, %r : bf16[128, 8]
  %y = neg %t : bf16[128, 8]
  %b = reshape %y {dims = [2, 64, 8]} : bf16[2, 64, 8]
  %c = cast %b : f32[2, 64, 8]
  %s = reduce_sum %c {axes = [1]} : f32[2, 1, 8]
})",
        R"(graph(%x: bf16[128, 16], %m: bf16[8, 16], %r: bf16[128, 8]) -> (%w2, %s) {
  %p = linear %x, %m {order = tiled_linear} : bf16[128, 8]
  %w0 = cast %p : f32[128, 8]
  %w1 = cast %r : f32[128, 8]
  %t = mul %w0, %w1 : f32[128, 8]
  %y = neg %t : f32[128, 8]
  %w2 = cast %y : bf16[128, 8]
  %b = reshape %w2 {dims = [2, 64, 8]} : bf16[2, 64, 8]
  %c = cast %b : f32[2, 64, 8]
  %s = reduce_sum %c {axes = [1]} : f32[2, 1, 8]
})");
}

TEST_CASE("outputs that become one value are copies, values that are read become some") {
  check(R"(graph(%x: f32[N, 8]) -> (%a, %b, %c) {
  %a = neg %x : f32[N, 8]
  %h = cast %a : bf16[N, 8]
  %b = cast %h : f32[N, 8]
  %g = cast %x : f16[N, 8]
  %c = cast %g : f32[N, 8]
})",
        R"(graph(%x: f32[N, 8]) -> (%a, %w0, %w1) {
  %a = neg %x : f32[N, 8]
  %w0 = copy %a : f32[N, 8]
  %w1 = copy %x : f32[N, 8]
})");
}

TEST_CASE("what rounds nothing inside stays as it is") {
  check_same(R"(graph(%x: bf16[N, 64], %r: bf16[N, 64]) -> (%s) {
  %s = add %x, %r : bf16[N, 64]
})");
  check_same(R"(graph(%x: f32[N, 64], %w: f32[64]) -> (%s, %y) {
  %s = add %x, %x : f32[N, 64]
  %y = rms_norm %s, %w {eps = 0.5} : f32[N, 64]
})");
  check_same(
      R"(graph(%t: bf16[40, 64], %i: i32[N], %k: bf16[512, 64], %slot: i32[N]) -> (%x, %next) {
  %x = embedding %t, %i : bf16[N, 64]
  %next = kv_append %k, %x, %slot : bf16[512, 64]
})");
  check_same(R"(graph(%x: bf16[B, 64], %m: bf16[16, 64], %b: bf16[16]) -> (%y) {
  %y = linear %x, %m, %b {order = gemv, splits = 1} : bf16[B, 16]
})");
}

}  // namespace
}  // namespace sinter::inner_roundings_test
