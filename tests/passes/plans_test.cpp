// Whole plans, fused against unfused against the evaluator, where sizes or values are awkward.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "ir/every_op.h"
#include "ir/text.h"
#include "passes/pipeline.h"
#include "passes/plan_runs.h"
#include "support/result.h"

namespace sinter::test::plans_test {
namespace {

Module module_of(const std::string& text) { return value(parse_module(text, "test")); }

void check_plans(const Module& module, llvm::ArrayRef<int64_t> symbol_values,
                 const InputEditor& edit = {}) {
  const std::string difference = compare_plans(module, symbol_values, {}, edit);
  CHECK_MESSAGE(difference.empty(), difference);
}

TEST_CASE("a residual that lives across 32 layers") {
  std::string ops, weights, last = "x";
  for (int i = 0; i < 32; ++i) {
    weights += fmt::format("  weight %w{0} : f32[16, 16] = file {{tensor = \"w{0}\"}}\n", i);
    ops += fmt::format(
        "    %a{0} = tanh %{1} : f32[N, 16]\n"
        "    %b{0} = linear %a{0}, %w{0} : f32[N, 16]\n"
        "    %c{0} = exp %b{0} : f32[N, 16]\n",
        i, last);
    last = fmt::format("c{}", i);
  }
  const Module module =
      module_of("module @m {\n  symbol N in [1, 8]\n" + weights +
                "  entry @f(%x: f32[N, 16], %y: f32[N, 16]) -> (%out) {\n    %res = add %x, %y : "
                "f32[N, 16]\n" +
                ops + "    %out = add %res, %" + last + " : f32[N, 16]\n  }\n}\n");
  check_plans(module, {5});
}

/// Products of one value, each with a weight of two rows.
Module module_of_linears(int count, const std::string& prefix) {
  std::string weights, ops, outputs;
  for (int i = 0; i < count; ++i) {
    weights += fmt::format("  weight %w{0} : f32[2, 8] = file {{tensor = \"w{0}\"}}\n", i);
    ops += fmt::format("    %{0}{1} = linear %x, %w{1} : f32[N, 2]\n", prefix, i);
    outputs += fmt::format("{}%{}{}", i == 0 ? "" : ", ", prefix, i);
  }
  return module_of("module @m {\n  symbol N in [1, 64]\n" + weights +
                   "  entry @f(%x: f32[N, 8]) -> (" + outputs + ") {\n" + ops + "  }\n}\n");
}

std::vector<std::string> names_of_linears(Module module) {
  run_passes(module);
  std::vector<std::string> names;
  for (const Op& op : module.entries.back().graph.ops())  // of many tokens
    if (op.kind == OpKind::linear) names.push_back(op.name);
  return names;
}

TEST_CASE("more products of one value than a concat has operands") {
  const Module module = module_of_linears(130, "p");
  CHECK(names_of_linears(module).size() == 3);
  check_plans(module, {33});
}

TEST_CASE("merged products with long names") {
  const std::string long_name(500, 'p');
  const Module module = module_of_linears(3, long_name);
  CHECK(names_of_linears(module) == std::vector<std::string>{long_name + "0_and_2_more"});
  check_plans(module, {33});
}

TEST_CASE("a view chain that keeps a buffer alive") {
  check_plans(module_of(R"(module @m {
  symbol N in [1, 8]
  weight %w : f32[12, 12] = file {tensor = "w"}
  entry @f(%x: f32[N, 12]) -> (%late, %z) {
    %big = exp %x : f32[N, 12]
    %v1 = reshape %big : f32[N, 3, 4]
    %v2 = transpose %v1 {axes = [0, 2, 1]} : f32[N, 4, 3]
    %v3 = slice %v2 {axis = 1, begin = 1, size = 2} : f32[N, 2, 3]
    %y = linear %x, %w : f32[N, 12]
    %y2 = linear %y, %w : f32[N, 12]
    %y3 = linear %y2, %w : f32[N, 12]
    %z = tanh %y3 : f32[N, 12]
    %late = neg %v3 : f32[N, 2, 3]
  }
})"),
              {3});
}

TEST_CASE("reads of a state that its own update changes") {
  // The appended value is made of a shifted, a transposed and a gathered read of the old version;
  // the result of the same reads of the new one.
  check_plans(module_of(R"(module @m {
  symbol N in [1, 8]
  state %s : f32[8, 8]
  entry @f(%x: f32[4, 8], %slot: i32[4]) -> (%old, %new) {
    %shifted = slice %s {axis = 0, begin = 3, size = 4} : f32[4, 8]
    %turned = transpose %s {axes = [1, 0]} : f32[8, 8]
    %part = slice %turned {axis = 0, begin = 2, size = 4} : f32[4, 8]
    %rows = embedding %s, %slot : f32[4, 8]
    %sum1 = add %shifted, %part : f32[4, 8]
    %sum2 = add %sum1, %rows : f32[4, 8]
    %old = add %sum2, %x : f32[4, 8]
    %s1 = kv_append %s, %old, %slot : f32[8, 8]
    %shifted1 = slice %s1 {axis = 0, begin = 3, size = 4} : f32[4, 8]
    %turned1 = transpose %s1 {axes = [1, 0]} : f32[8, 8]
    %part1 = slice %turned1 {axis = 0, begin = 2, size = 4} : f32[4, 8]
    %sum3 = add %shifted1, %part1 : f32[4, 8]
    %s2 = kv_append %s1, %sum3, %slot : f32[8, 8]
    %rows2 = embedding %s2, %slot : f32[4, 8]
    %new = mul %rows2, %sum3 : f32[4, 8]
  }
})"),
              {1}, [](std::string_view, std::vector<HostTensor>& inputs) {
                const int32_t slots[] = {6, 1, 4, 3};
                std::copy(std::begin(slots), std::end(slots), inputs[1].data<int32_t>());
              });
}

TEST_CASE("rows of every length") {
  for (int64_t length : {1, 3, 7, 31, 33, 127, 129, 1023, 1025, 4095}) {
    CAPTURE(length);
    check_plans(module_of(fmt::format(R"(module @m {{
  symbol N in [0, 8]
  weight %w : f16[{0}] = file {{tensor = "norm.weight"}}
  weight %b : f16[{0}] = file {{tensor = "norm.bias"}}
  entry @f(%x: f16[N, {0}], %r: f16[N, {0}]) -> (%sum, %soft, %norm) {{
    %sum = add %x, %r : f16[N, {0}]
    %soft = softmax %sum : f16[N, {0}]
    %ln = layer_norm %soft, %w, %b {{eps = 1e-5}} : f16[N, {0}]
    %rms = rms_norm %sum, %w {{eps = 1e-5}} : f16[N, {0}]
    %norm = add %ln, %rms : f16[N, {0}]
  }}
}})",
                                      length)),
                {3});
  }
}

TEST_CASE("softmax of rows that are masked, infinite or no numbers") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (int64_t length : {1, 31, 33, 1023, 1025}) {
    CAPTURE(length);
    check_plans(module_of(fmt::format(R"(module @m {{
  entry @f(%x: f32[6, {0}], %y: f32[6, {0}]) -> (%soft, %sum) {{
    %sum = add %x, %y : f32[6, {0}]
    %soft = softmax %sum : f32[6, {0}]
  }}
}})",
                                      length)),
                {}, [&](std::string_view, std::vector<HostTensor>& inputs) {
                  float* x = inputs[0].data<float>();
                  std::fill(x, x + length, -kInfinity);  // fully masked
                  x[length + length / 2] = kInfinity;    // one +inf
                  x[2 * length + length - 1] = NAN;      // one NaN
                  std::fill(x + 3 * length, x + 4 * length, kInfinity);
                  std::fill(x + 4 * length, x + 5 * length - 1, -kInfinity);  // one element left
                });
  }
}

TEST_CASE("sizes of zero, for every op") {
  Module module = module_of(every_op_text());
  module.symbols[0].low = 0;
  std::erase_if(module.entries, [](const Entry& entry) { return entry.name == "leaf"; });
  // The second output has a size that only the device knows: no kernel on the host has that.
  Graph& graph = module.entries[0].graph;
  graph.outputs.erase(graph.outputs.begin() + 1);
  remove_dead_ops(graph);
  for (int64_t tokens : {0, 1, 5}) {
    CAPTURE(tokens);
    check_plans(module, {tokens, 8, 0});
  }
}

TEST_CASE("sizes that are never more than zero, one or a few, for every op") {
  for (const int64_t high : {0, 1, 8})
    for (const int64_t low : {int64_t{0}, high}) {
      CAPTURE(low);
      CAPTURE(high);
      Module module = module_of(every_op_text());
      module.symbols[0].low = low;
      module.symbols[0].high = high;
      std::erase_if(module.entries, [](const Entry& entry) { return entry.name == "leaf"; });
      Graph& graph = module.entries[0].graph;
      graph.outputs.erase(graph.outputs.begin() + 1);  // as above
      remove_dead_ops(graph);
      check_plans(module, {high, 8, 0});
    }
}

TEST_CASE("products of no rows and of no columns") {
  for (const auto& [rows, length, width] :
       {std::array{0, 8, 8}, {0, 8, 1}, {1, 8, 1}, {8, 8, 0}, {0, 0, 8}, {1, 1, 1}, {9, 0, 1}}) {
    CAPTURE(rows);
    CAPTURE(length);
    CAPTURE(width);
    check_plans(module_of(fmt::format(R"(module @m {{
  weight %w : f32[{2}, {1}] = file {{tensor = "w"}}
  weight %b : f32[{2}] = file {{tensor = "b"}}
  entry @f(%x: f32[{0}, {1}]) -> (%y, %z) {{
    %n = softmax %x : f32[{0}, {1}]
    %p = linear %n, %w, %b : f32[{0}, {2}]
    %y = silu %p : f32[{0}, {2}]
    %z = linear %x, %w : f32[{0}, {2}]
  }}
}})",
                                      rows, length, width)),
                {});
  }
}

/// An einsum whose axes have these extents by letter; the axis `symbol`, if there is one, is a
/// symbol.
void check_einsum(const std::map<char, int64_t>& extents, char symbol, const std::string& a,
                  const std::string& b, const std::string& result) {
  const auto dims = [&](const std::string& letters) {
    std::string text;
    for (const char letter : letters)
      text += (text.empty() ? "" : ", ") +
              (letter == symbol ? "N" : std::to_string(extents.at(letter)));
    return text;
  };
  const std::string spec = fmt::format("{},{}->{}", a, b, result);
  CAPTURE(spec);
  CAPTURE(symbol);
  check_plans(module_of(fmt::format(R"(module @m {{
  symbol N in [0, 8]
  entry @f(%a: f32[{}], %b: f32[{}]) -> (%y) {{
    %y = einsum %a, %b {{spec = "{}"}} : f32[{}]
  }}
}})",
                                    dims(a), dims(b), spec, dims(result))),
              {symbol == ' ' ? 0 : extents.at(symbol)});
}

// Axes of one role that stand apart, in every order: operands are copied until they join.
TEST_CASE("einsums with several summed axes, one of them a symbol") {
  const std::map<char, int64_t> extents = {{'a', 3}, {'b', 4}, {'c', 5}, {'x', 7}};
  for (const char symbol : {'a', 'b', 'c', 'x', ' '}) {
    std::string a = "abc";
    do {
      std::string b = "acx";
      do {
        for (const char* result : {"bx", "xb"}) check_einsum(extents, symbol, a, b, result);
      } while (std::next_permutation(b.begin(), b.end()));
    } while (std::next_permutation(a.begin(), a.end()));
  }
}

// Free axes of one operand stand apart in the result, in every order.
TEST_CASE("einsums with several free axes, one of them a symbol") {
  const std::map<char, int64_t> extents = {{'a', 3}, {'b', 4}, {'x', 5}, {'y', 2}};
  for (const char symbol : {'a', 'b', 'x', 'y', ' '}) {
    std::string b = "bxy";
    do {
      std::string result = "axy";
      do {
        check_einsum(extents, symbol, "ab", b, result);
      } while (std::next_permutation(result.begin(), result.end()));
    } while (std::next_permutation(b.begin(), b.end()));
  }
}

TEST_CASE("names as long as names may be, to which passes add") {
  // An output that is an input, one that is a view, and two values of one name.
  const std::string a(4096, 'a'), b = std::string(4093, 'b') + "\u20ac";
  check_plans(module_of(fmt::format(R"(module @m {{
  entry @f(%{0}: f32[3, 4], %x: f32[4, 3]) -> (%{0}, %"{1}", %y) {{
    %"{1}" = transpose %x {{axes = [1, 0]}} : f32[3, 4]
    %s = transpose %{0} {{axes = [1, 0]}} : f32[4, 3]
    %y = einsum %s, %"{1}" {{spec = "ab,bc->ca"}} : f32[4, 4]
  }}
}}
)",
                                    a, b)),
              {});
}

TEST_CASE("constant sizes of zero") {
  check_plans(module_of(R"(module @m {
  symbol N in [0, 8]
  weight %w : f32[16, 0] = file {tensor = "w"}
  weight %none : f32[0, 16] = file {tensor = "none"}
  state %s : f32[8, 0]
  entry @f(%x: f32[N, 0], %y: f32[N, 16], %slot: i32[N], %e: f32[0, 4]) -> (%a, %b, %c, %d, %soft, %sum, %max, %turned, %joined) {
    %a = exp %x : f32[N, 0]
    %b = linear %x, %w : f32[N, 16]
    %c = linear %y, %none : f32[N, 0]
    %s1 = kv_append %s, %x, %slot : f32[8, 0]
    %rows = embedding %s1, %slot : f32[N, 0]
    %d = add %rows, %a : f32[N, 0]
    %soft = softmax %x : f32[N, 0]
    %sum = reduce_sum %x {axes = [1]} : f32[N, 1]
    %max = reduce_max %e {axes = [0]} : f32[1, 4]
    %turn = transpose %e {axes = [1, 0]} : f32[4, 0]
    %turned = neg %turn : f32[4, 0]
    %joined = concat %e, %e {axis = 0} : f32[0, 4]
  }
})"),
              {3});
}

TEST_CASE("products of operands that begin at the second element of a tensor") {
  constexpr int64_t kRows = 3, kColumns = 5;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (const int64_t width : {1, 3, 7, 127, 129, 4095}) {
      CAPTURE(to_string(dtype));
      CAPTURE(width);
      check_plans(module_of(fmt::format(R"(module @m {{
  weight %w.all : {0}[{3}] = file {{tensor = "w"}}
  weight %bias.all : {0}[6] = file {{tensor = "bias"}}
  entry @f(%x.all: {0}[{2}]) -> (%y, %gram) {{
    %x.flat = slice %x.all {{axis = 0, begin = 1, size = {4}}} : {0}[{4}]
    %x = reshape %x.flat : {0}[3, {1}]
    %w.flat = slice %w.all {{axis = 0, begin = 1, size = {5}}} : {0}[{5}]
    %w = reshape %w.flat : {0}[5, {1}]
    %bias = slice %bias.all {{axis = 0, begin = 1, size = 5}} : {0}[5]
    %y = linear %x, %w, %bias : {0}[3, 5]
    %gram = einsum %x, %x {{dtype = f32, spec = "nk,mk->nm"}} : f32[3, 3]
  }}
}})",
                                        to_string(dtype), width, kRows * width + 1,
                                        kColumns * width + 1, kRows * width, kColumns * width)),
                  {});
    }
}

TEST_CASE("closed ops whose operands all begin at the second element of a tensor") {
  check_plans(module_of(R"(module @m {
  entry @f(%q.all: f16[97], %k.all: f16[257], %range.all: i32[4], %t.all: f32[4])
      -> (%attended, %token) {
    %q.flat = slice %q.all {axis = 0, begin = 1, size = 96} : f16[96]
    %q = reshape %q.flat : f16[3, 32]
    %k.flat = slice %k.all {axis = 0, begin = 1, size = 256} : f16[256]
    %k = reshape %k.flat : f16[16, 16]
    %range = slice %range.all {axis = 0, begin = 1, size = 3} : i32[3]
    %t = slice %t.all {axis = 0, begin = 1, size = 3} : f32[3]
    %attended = attention %q, %k, %k, %range, %range {order = decode_attention, heads = 2, kv_heads = 1, scale = 0.25, splits = 2} : f16[3, 32]
    %token = sample %q, %t, %range, %t, %range, %range : i32[3]
  }
})"),
              {});
}

}  // namespace
}  // namespace sinter::test::plans_test
