// Which kernels of a plan trigger after their wait and what they read before it: of samples' decode
// entries in full (SINTER_BLESS=1 rewrites the expectation), and small modules for each rule.
#include <doctest/doctest.h>

#include "driver/compile/compile.h"
#include "frontends/load_model.h"
#include "frontends/model/build_model.h"
#include "ir/text.h"
#include "support/check_text.h"
#include "support/result.h"

namespace sinter::test::launch_order_test {
namespace {

/// A line a step: its values, then how its kernel overlaps its neighbours.
std::string order_text(const Program& program) {
  const EntryPlan& entry = program.entries.back();  // of variants, the one for many tokens
  std::string text;
  for (const Step& step : entry.steps) {
    text += fmt::format("{}:", fmt::join(step.values, " "));
    if (const StepFacts facts = step_facts(program, step); facts.kernel) {
      const Overlap& overlap = facts.kernel->overlap;
      const auto list = [&](std::string_view role, llvm::ArrayRef<uint32_t> inputs) {
        if (inputs.empty()) return;
        text += fmt::format(", {}", role);
        for (uint32_t k : inputs) text += ' ' + entry.buffers[facts.reads[k]].value;
      };
      text += overlap.waits ? " waits" : " alone";
      if (overlap.triggers_after_wait) text += ", late trigger";
      list("early", overlap.early_inputs);
      list("caches", overlap.early_caches);
    } else {
      text += " call";
    }
    text += '\n';
  }
  return text;
}

std::string order_of(const Module& module, const std::string& entry,
                     Numerics numerics = Numerics::strict) {
  CompileOptions options;
  options.fusion.numerics = numerics;
  return order_text(*value(compile(value(freeze(module, {entry})), options)).program);
}

/// Three layers: the first, the last and one between.
Module sample(const std::string& name) {
  ModelSpec spec = *value(load_model(fmt::format("{}/{}", SINTER_SAMPLES_DIR, name))).spec;
  spec.layers = 3;
  return value(build_model(spec, {WeightMap::identity(), {}}, nullptr, spec.name));
}

TEST_CASE("decode entries of samples") {
  std::string text;
  for (const char* name : {"pythia-2.8b.json", "llama-3.2-1b.json"})
    for (Numerics numerics : {Numerics::strict, Numerics::fast})
      text += fmt::format("{}{}, {}\n{}", text.empty() ? "" : "\n", name, to_string(numerics),
                          order_of(sample(name), "decode", numerics));
  check_text_file(text, "codegen/launch_order.txt", "launch_order");
}

std::string order_of(const std::string& text) {
  const Module module = value(parse_module(text, "case"));
  return order_of(module, module.entries[0].name);
}

/// %q: a norm and a product, after what `ahead` computes.
std::string norm_and_product(const std::string& ahead, const std::string& results,
                             const std::string& norm_of = "x") {
  return order_of(fmt::format(R"(
module @m {{
  symbol M in [0, 8]
  symbol N in [1, 8]
  symbol T in [1, 512]
  weight %n : f16[256] = file {{tensor = "n"}}
  weight %u : f16[256, 256] = file {{tensor = "u"}}
  weight %w : f16[512, 256] = file {{tensor = "w"}}
  entry @f(%x: f16[N, 256], %y: f16[N, 256], %a: f16[M, 8], %t: f16[T, 256]) -> ({1}, %q) {{
{0}
    %h = rms_norm %{2}, %n {{eps = 0x1p-20}} : f16[N, 256]
    %q = linear %h, %w : f16[N, 512]
  }}
}})",
                              ahead, results, norm_of));
}

TEST_CASE("a product's operand is made early after a kernel that triggers after its wait") {
  CHECK(norm_and_product("    %b = exp %y : f16[N, 256]", "%b") ==
        "b: waits, late trigger\n"
        "h q: waits, early x n w\n");
  CHECK(norm_and_product("    %v = exp %y : f16[N, 256]\n    %b = linear %v, %u : f16[N, 256]",
                         "%b") ==
        "v b: waits, late trigger\n"
        "h q: waits, early x n w\n");
}

TEST_CASE("no kernel that may have nothing to do triggers after its wait") {
  CHECK(norm_and_product("    %b = exp %a : f16[M, 8]", "%b") ==
        "b: waits\n"
        "h q: waits\n");
  CHECK(norm_and_product("    %v = exp %y : f16[N, 256]\n    %c = linear %v, %u : f16[N, 256]\n"
                         "    %b = exp %a : f16[M, 8]",
                         "%c, %b") ==
        "v c: waits, late trigger\n"
        "b: waits\n"
        "h q: waits, early x n w\n");
}

TEST_CASE("a long kernel triggers late rather than a short one before it") {
  CHECK(order_of(R"(
module @m {
  symbol N in [1, 8]
  weight %gate_up : f16[16, 1024, 256] = file {tensor = "gate_up"}
  weight %down : f16[16, 256, 512] = file {tensor = "down"}
  entry @f(%x: f16[N, 256], %logits: f32[N, 16]) -> (%y) {
    %e = top_k %logits {count = 2} : i32[N, 2]
    %w = gather %logits, %e {axis = 1} : f32[N, 2]
    %s = softmax %w : f32[N, 2]
    %gu = expert_linear %x, %gate_up, %e : f16[N, 2, 1024]
    %g = slice %gu {axis = 2, begin = 0, size = 512} : f16[N, 2, 512]
    %u = slice %gu {axis = 2, begin = 512, size = 512} : f16[N, 2, 512]
    %c = silu %g : f16[N, 2, 512]
    %a = mul %c, %u : f16[N, 2, 512]
    %d = expert_linear %a, %down, %e : f16[N, 2, 256]
    %y = expert_sum %d, %s : f16[N, 256]
  }
})") == "e: waits\n"
        "w s: waits\n"
        "gu c a: waits, late trigger\n"
        "d y: waits, early down e\n");
}

TEST_CASE("a library call triggers nothing") {
  CHECK(norm_and_product("    %b = linear %t, %u : f16[T, 256]", "%b") ==
        "b: call\n"
        "h q: waits\n");
}

TEST_CASE("a kernel directly after the writer of its operand reads nothing early") {
  CHECK(norm_and_product("    %b = exp %y : f16[N, 256]\n    %s = linear %x, %u : f16[N, 256]",
                         "%b, %s", "s") ==
        "b: waits, late trigger\n"
        "s: waits, early x u\n"
        "h q: waits\n");
}

TEST_CASE("a prologue with a result is computed after the wait") {
  const std::string ahead = "    %b = exp %y : f16[N, 256]\n    %s = add %x, %x : f16[N, 256]";
  CHECK(norm_and_product(ahead, "%b, %s", "s") ==
        "b: waits\n"
        "s h q: waits\n");
  CHECK(norm_and_product(ahead, "%b", "s") ==
        "b: waits, late trigger\n"
        "s h q: waits, early x n w\n");
}

/// Attention of keys that were appended at `slots`.
std::string attention(const std::string& slots, const std::string& between = "") {
  return order_of(fmt::format(R"(
module @m {{
  symbol N in [1, 8]
  symbol R in [8, 64] step 8
  state %keys : f16[R, 32]
  state %values : f16[R, 32]
  entry @f(%q: f16[N, 64], %k: f16[N, 32], %first: i32[N], %last: i32[N], %slots: i32[N]) -> (%b, {1}%o) {{
    %b = exp %q : f16[N, 64]
    %keys1 = kv_append %keys, %k, %{0} : f16[R, 32]
    %values1 = kv_append %values, %k, %{0} : f16[R, 32]
{2}    %o = attention %q, %keys1, %values1, %first, %last {{heads = 4, kv_heads = 2, scale = 0.25}} : f16[N, 64]
  }}
}})",
                              slots, between.empty() ? "" : "%c, ", between));
}

TEST_CASE("attention reads early the rows of a cache that were there before the call") {
  CHECK(attention("last") ==
        "b: waits, late trigger\n"
        "keys1 values1: waits\n"
        "o: waits, early first last, caches keys1 values1\n");
}

TEST_CASE("rows appended at other slots than attention's have to be complete") {
  CHECK(attention("slots") ==
        "b: waits\n"
        "keys1 values1: waits\n"
        "o: waits\n");
  // The lookup stands between the append and the attention.
  CHECK(attention("slots", "    %c = embedding %keys1, %slots : f16[N, 32]\n") ==
        "b: waits\n"
        "keys1 values1: waits\n"
        "c: waits, late trigger\n"
        "o: waits, early first last, caches keys1 values1\n");
}

TEST_CASE("a rounding of the prologue that is a result is stored after the wait") {
  auto module = parse_module(R"(
module @m {
  symbol N in [1, 8]
  weight %n : f16[256] = file {tensor = "n"}
  weight %w : f16[512, 256] = file {tensor = "w"}
  entry @f(%x: f16[N, 256], %y: f16[N, 256]) -> (%b, %s, %q) {
    %b = exp %y : f16[N, 256]
    %s = add %x, %y : f16[N, 256]
    %h = rms_norm %s, %n {eps = 0x1p-20} : f16[N, 256]
    %q = linear %h, %w : f16[N, 512]
  }
})",
                             "case");
  REQUIRE(module.has_value());
  CHECK(order_of(*module, "f", Numerics::fast) ==
        "b: waits\n"
        "s h q: waits\n");
}

TEST_CASE("rows of which the attention knows a part have to be complete") {
  CHECK(order_of(R"(
module @m {
  symbol R in [8, 64] step 8
  state %keys : f16[R, 32]
  state %values : f16[R, 32]
  entry @f(%q: f16[4, 64], %k: f16[8, 32], %first: i32[4], %slots: i32[8]) -> (%b, %o) {
    %b = exp %q : f16[4, 64]
    %keys1 = kv_append %keys, %k, %slots : f16[R, 32]
    %values1 = kv_append %values, %k, %slots : f16[R, 32]
    %last = slice %slots {axis = 0, begin = 0, size = 4} : i32[4]
    %o = attention %q, %keys1, %values1, %first, %last {heads = 4, kv_heads = 2, scale = 0.25} : f16[4, 64]
  }
})") == "b: waits\n"
        "keys1 values1: waits\n"
        "o: waits\n");
}

TEST_CASE("what an attention reads twice stands once in its lists") {
  CHECK(order_of(R"(
module @m {
  symbol N in [1, 8]
  symbol R in [8, 64] step 8
  state %keys : f16[R, 32]
  entry @f(%q: f16[N, 64], %k: f16[N, 32], %slots: i32[N]) -> (%b, %o) {
    %b = exp %q : f16[N, 64]
    %keys1 = kv_append %keys, %k, %slots : f16[R, 32]
    %o = attention %q, %keys1, %keys1, %slots, %slots {heads = 4, kv_heads = 2, scale = 0.25} : f16[N, 64]
  }
})") == "b: waits, late trigger\n"
        "keys1: waits\n"
        "o: waits, early slots, caches keys1\n");
}

TEST_CASE("rows whose numbers are not those of the cache have to be complete") {
  const std::string text = R"(
module @m {{
  symbol N in [1, 8]
  state %keys : f16[64, 64]
  entry @f(%q: f16[N, 64], %k: f16[N, 64], %first: i32[N], %last: i32[N]) -> (%b, %o) {{
    %b = exp %q : f16[N, 64]
    %keys1 = kv_append %keys, %k, %last : f16[64, 64]
    %ks = {}
    %o = attention %q, %ks, %ks, %first, %last {{heads = 4, kv_heads = {}, scale = 0.25}} : f16[N, 64]
  }}
}})";
  const auto order = [&](std::string_view view, int kv_heads) {
    return order_of(fmt::format(fmt::runtime(text), view, kv_heads));
  };
  const std::string late = "b: waits\nkeys1: waits\no: waits\n";
  CHECK(order("slice %keys1 {axis = 0, begin = 8, size = 48} : f16[48, 64]", 4) == late);
  CHECK(order("reshape %keys1 : f16[128, 32]", 2) == late);
  CHECK(order("slice %keys1 {axis = 1, begin = 32, size = 32} : f16[64, 32]", 2) ==
        "b: waits, late trigger\nkeys1: waits\no: waits, early first last, caches keys1\n");
}

TEST_CASE("keys that are no state are read early as inputs are") {
  CHECK(order_of(R"(
module @m {
  symbol N in [1, 8]
  entry @f(%q: f16[N, 64], %k: f16[N, 32], %first: i32[N], %last: i32[N]) -> (%b, %o) {
    %b = exp %q : f16[N, 64]
    %o = attention %q, %k, %k, %first, %last {heads = 4, kv_heads = 2, scale = 0.25} : f16[N, 64]
  }
})") == "b: waits, late trigger\n"
        "o: waits, early first last, caches k\n");
}

TEST_CASE("steps that share a kernel's text read early what all of them may") {
  const std::string branch = R"(
    %y{0} = linear %{1}, %v{0} : f16[N, 512]
    %u{0} = slice %y{0} {{axis = 1, begin = 0, size = 128}} : f16[N, 128]
    %t{0} = slice %y{0} {{axis = 1, begin = 128, size = 384}} : f16[N, 384]
    %p{0} = add %u{0}, %{2} : f16[N, 128]
    %q{0} = exp %t{0} : f16[N, 384])";
  CHECK(order_of(fmt::format(R"(
module @m {{
  symbol N in [1, 8]
  weight %v1 : f16[512, 256] = file {{tensor = "v1"}}
  weight %v2 : f16[512, 256] = file {{tensor = "v2"}}
  entry @f(%x1: f16[N, 256], %x2: f16[N, 256], %z: f16[N, 128]) -> (%e, %p1, %q1, %p2, %q2) {{
    %e = exp %x1 : f16[N, 256]{}{}
  }}
}})",
                             fmt::format(fmt::runtime(branch), 1, "x1", "z"),
                             fmt::format(fmt::runtime(branch), 2, "x2", "p1"))) ==
        "e: waits, late trigger\n"
        "y1 p1 q1: waits, early x1\n"
        "y2 p2 q2: waits, early x2\n");
}

}  // namespace
}  // namespace sinter::test::launch_order_test
