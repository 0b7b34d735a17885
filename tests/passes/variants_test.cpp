// Entries with variants: a call of any size has the results of the module, and of the unfused plan.
#include <doctest/doctest.h>

#include "ir/text.h"
#include "ir/verifier.h"
#include "passes/pipeline.h"
#include "passes/plan_runs.h"
#include "support/result.h"

namespace sinter::test::variants_test {
namespace {

Module module_of(const std::string& text) { return value(parse_module(text, "test")); }

/// "1-8 9-64" of each entry.
std::string ranges(Module module, const PassOptions& options = {}) {
  run_passes(module, {}, options);
  std::string text;
  for (const Entry& entry : module.entries)
    text += entry.range ? fmt::format("{} {}-{}; ", entry.name, entry.range->low, entry.range->high)
                        : fmt::format("{} all; ", entry.name);
  return text;
}

constexpr const char* kBlock = R"(module @m {{
  symbol N in [{}, {}] step {}
  symbol R in [64, 128] step 8
  weight %norm : f16[32] = file {{tensor = "norm"}}
  weight %wq : f16[32, 32] = file {{tensor = "q"}}
  weight %wo : f16[32, 32] = file {{tensor = "o"}}
  state %keys : f16[R, 32]
  entry @main(%x: f16[N, 32], %v: f16[R, 32], %first: i32[N], %slot: i32[N]) -> (%y) {{
    %n = rms_norm %x, %norm {{eps = 1e-5}} : f16[N, 32]
    %q = linear %n, %wq : f16[N, 32]
    %next = kv_append %keys, %q, %slot : f16[R, 32]
    %a = attention %q, %next, %v, %first, %slot {{heads = 2, kv_heads = 2, scale = 0.25}} : f16[N, 32]
    %o = linear %a, %wo : f16[N, 32]
    %y = add %x, %o : f16[N, 32]
  }}
}}
)";

TEST_CASE("ranges end where orders change") {
  CHECK(ranges(module_of(fmt::format(kBlock, 1, 64, 1))) == "main 1-1; main 2-8; main 9-64; ");
  CHECK(ranges(module_of(fmt::format(kBlock, 0, 64, 1))) == "main 0-1; main 2-8; main 9-64; ");
  CHECK(ranges(module_of(fmt::format(kBlock, 1, 8, 1))) == "main all; ");
  CHECK(ranges(module_of(fmt::format(kBlock, 9, 64, 1))) == "main all; ");
  CHECK(ranges(module_of(fmt::format(kBlock, 3, 63, 3))) == "main 3-6; main 9-63; ");
  CHECK(ranges(module_of(fmt::format(kBlock, 8, 9, 1))) == "main 8-8; main 9-9; ");
}

TEST_CASE(
    "ranges of products by Sinter's own kernels, and of attention of one token of each sequence") {
  Module module = module_of(R"(module @m {
  symbol N in [1, 64]
  weight %w : f16[32, 32] = file {tensor = "w"}
  entry @main(%x: f16[N, 32], %k: f16[64, 32], %first: i32[N], %slot: i32[N]) -> (%y) tokens one_each {
    %q = linear %x, %w : f16[N, 32]
    %y = attention %q, %k, %k, %first, %slot {heads = 2, kv_heads = 2, scale = 0.25} : f16[N, 32]
  }
}
)");
  PassOptions options;
  CHECK(ranges(module) == "main 1-1; main 2-8; main 9-64; ");
  options.recipe.products = Recipe::Products::own;
  CHECK(ranges(module, options) == "main 1-1; main 2-4; main 5-8; main 9-64; ");
}

TEST_CASE("products by Sinter's own kernels have results of the operands' type or of float32") {
  for (const auto& [dtype, own] : {std::pair("f16", 1), {"f32", 1}, {"bf16", 0}}) {
    Module module = module_of(fmt::format(R"(module @m {{
  symbol N in [9, 64]
  weight %w : f16[32, 16] = file {{tensor = "w"}}
  entry @main(%x: f16[N, 16]) -> (%y) {{
    %p = einsum %x, %w {{spec = "ab,xb->ax", dtype = {0}}} : {0}[N, 32]
    %y = gelu %p : {0}[N, 32]
  }}
}}
)",
                                          dtype));
    PassOptions options;
    options.recipe.products = Recipe::Products::own;
    run_passes(module, {}, options);
    const auto is_own = [](const Op& op) { return order_of(op) == Order::tiled_linear; };
    CHECK(llvm::count_if(module.entries[0].graph.ops(), is_own) == own);
  }
}

/// The names of products by Sinter's own kernels, of all entries.
std::string own_products(Module module) {
  run_passes(module);
  std::string names;
  for (const Entry& entry : module.entries)
    for (const Op& op : entry.graph.ops())
      if (order_of(op) == Order::tiled_linear) names += op.name + " ";
  return names;
}

/// Products of `tokens` tokens, with 8 elements of a sum.
std::string products_text(const std::string& body, const std::string& tokens = "49152",
                          const std::string& marker = "") {
  return fmt::format(R"(module @m {{
  symbol N in [9, 98304]
  entry @main(%x: bf16[{0}, 8], %u: bf16[{0}, 8], %w: bf16[128, 8], %v: bf16[256, 8], %z: f32[4]) -> (%y) {1} {{
{2}  }}
}}
)",
                     tokens, marker, body);
}

TEST_CASE("a product is by Sinter's own kernel where the group that fusion gives it gains") {
  const auto own = [](const std::string& body) {
    return own_products(module_of(products_text(body)));
  };
  CHECK(own("%h = linear %x, %w\n%y = gelu_tanh %h\n") == "h ");
  CHECK(own("%h = linear %x, %w\n%y = relu %h\n") == "");
  std::string far;
  for (int i = 0; i < 400; ++i)
    far += fmt::format("%e{} = exp %{}\n", i, i ? fmt::format("e{}", i - 1) : "z");
  far += "%s = reduce_sum %e399 {axes = [0]}\n%f = cast %s {dtype = bf16}\n";
  CHECK(own("%h = linear %x, %w\n" + far + "%g = mul %h, %f\n%y = gelu_tanh %g\n") == "h ");
  // The same rows in another shape, and other rows.
  CHECK(own("%h = linear %x, %w\n%r = reshape %h : bf16[49152, 2, 64]\n%y = gelu_tanh %r\n") ==
        "h ");
  CHECK(own("%h = linear %x, %w\n%r = reshape %h : bf16[24576, 2, 128]\n%y = gelu_tanh %r\n") ==
        "");
  // The epilogue is in the kernel of one product.
  CHECK(own("%h = linear %x, %w\n%p = linear %u, %w\n%g = gelu_tanh %h\n%y = mul %g, %p\n") ==
        "h ");
  // It waits for a reduction of the product.
  CHECK(own("%h = linear %x, %w\n%s = reduce_max %h {axes = [0, 1]}\n%g = mul %h, %s\n%y = "
            "gelu_tanh %g\n") == "");
  // It needs pairs of rows of the matrix.
  CHECK(own("%h = linear %x, %v\n%a = slice %h {axis = 1, begin = 0, size = 128}\n"
            "%b = slice %h {axis = 1, begin = 128, size = 128}\n"
            "%g = gelu_tanh %a\n%y = mul %g, %b\n") == "");
}

TEST_CASE("a product of tokens without a constant number gains where their largest number does") {
  const std::string body = "%h = linear %x, %w\n%y = gelu_tanh %h\n";
  CHECK(ranges(module_of(products_text(body, "N"))) == "main 9-49151; main 49152-98304; ");
  CHECK(own_products(module_of(products_text(body, "N"))) == "h ");
  CHECK(ranges(module_of(products_text(body, "N", "tokens invariant"))) == "main all; ");
  // One order for every number: the fewest lose what the most gain.
  CHECK(own_products(module_of(products_text(body, "N", "tokens invariant"))) == "");
  CHECK(own_products(module_of(products_text(body, "49152", "tokens invariant"))) == "h ");
}

TEST_CASE(
    "a product of few tokens gains where they are of sequences, or their number is constant") {
  // `tokens`: of a module with the symbol N in 1 .. `high`.
  const auto module_with = [](const std::string& tokens, int high, const std::string& marker) {
    return module_of(fmt::format(R"(module @m {{
  symbol N in [1, {1}]
  entry @main(%x: bf16[{0}, 64], %w: bf16[128, 64]) -> (%h) {2} {{
    %h = linear %x, %w
  }}
}}
)",
                                 tokens, high, marker));
  };
  const auto own = [&](int tokens) {
    return own_products(module_with(std::to_string(tokens), 1, ""));
  };
  for (const int tokens : {1, 4, 65, 256}) CHECK(own(tokens) == "");
  for (const int tokens : {5, 8, 64}) CHECK(own(tokens) == "h ");
  CHECK(ranges(module_with("N", 8, "tokens one_each")) == "main all; ");
  CHECK(own_products(module_with("N", 8, "tokens one_each")) == "");
  const Module sequences = module_with("N", 256, "tokens one_each");
  CHECK(ranges(sequences) == "main 1-1; main 2-8; main 9-64; main 65-256; ");
  CHECK(own_products(sequences) == "h ");
  CHECK(ranges(module_with("N", 256, "")) == "main 1-1; main 2-8; main 9-256; ");
  CHECK(own_products(module_with("N", 256, "")) == "");
}

TEST_CASE("orders do not depend on what a caller lets fusion do") {
  const Module module = module_of(products_text("%h = linear %x, %w\n%y = gelu_tanh %h\n"));
  CompileOptions usual, unfused, apart;
  unfused.fusion.enabled = false;
  apart.fusion.forbidden = {{"h", "y"}};
  const auto frozen = [&](const CompileOptions& options) {
    return print_module(value(freeze(module, {}, {}, pass_options(options))));
  };
  CHECK(frozen(usual).find("order = tiled_linear") != std::string::npos);
  CHECK(frozen(unfused) == frozen(usual));
  CHECK(frozen(apart) == frozen(usual));
}

TEST_CASE("an entry whose types depend on the largest value of its symbol stays one") {
  CHECK(ranges(module_of(R"(module @m {
  symbol N in [1, 300]
  weight %w : f16[32, 32] = file {tensor = "w"}
  entry @main(%x: f16[N, 32], %mask: i1[1, 1, N, 600]) -> (%y, %tiles) {
    %y = linear %x, %w
    %tiles = mask_tiles %mask {tile_tokens = 128, tile_keys = 128}
  }
}
)")) == "main all; ");
}

TEST_CASE("results keep their names, whichever pass comes first") {
  const Module read = module_of(R"(module @m {
  symbol N in [1, 12]
  state %keys : f32[1, 2]
  entry @main(%q: f32[N, 2], %first: i32[N]) -> (%y, %z) {
    %last = constant {value = 0} : i32[N]
    %y = attention %q, %keys, %keys, %first, %last {heads = 2, kv_heads = 2, scale = 1} : f32[N, 2]
    %i = iota {axis = 0} : i32[N]
    %zero = constant {value = 0} : i32[]
    %z = maximum %i, %zero : i32[N]
  }
}
)");
  size_t have_variants = 0;
  for (const Pass& first : pipeline()) {
    CAPTURE(first.name);
    Module module = read;
    run_pass(first, module);
    run_passes(module);
    have_variants += module.entries.size() > 1;
    for (const Entry& entry : module.entries)
      CHECK(entry.output_names == std::vector<std::string>{"y", "z"});
  }
  // All but choose_kernels and expand_attention, which give the attention one order.
  CHECK(have_variants + 2 == pipeline().size());
}

TEST_CASE("rewrites that would need a ninth axis are left out") {
  constexpr const char* kModules[] = {
      R"(module @concatenated {
  symbol N in [1, 64]
  entry @main(%x: f32[2, 2, 2, 2, 2, 2, N, 4]) -> (%y) {
    %a = neg %x
    %b = mul %x, %x
    %c = concat %a, %b {axis = 7}
    %y = exp %c
  }
}
)",
      R"(module @summed {
  weight %w : bf16[64, 64] = file {tensor = "w"}
  entry @main(%x: bf16[2, 2, 2, 2, 2, 2, 64, 64]) -> (%y, %s) {
    %p = linear %x, %w
    %y = gelu %p
    %f = cast %y {dtype = f32}
    %s = reduce_sum %f {axes = [0, 1, 2, 3, 4, 5, 6]}
  }
}
)",
      R"(module @heads {
  symbol N in [1, 8]
  entry @main(%q: f16[2, 1, 2, 1, 2, N, 32], %k: f16[2, 1, 2, 1, 2, 8, 16], %first: i32[2, 1, 2, 1, 2, N], %last: i32[2, 1, 2, 1, 2, N]) -> (%y) {
    %one = reshape %k : f16[8, 8, 1, 16]
    %two = broadcast %one : f16[8, 8, 2, 16]
    %keys = reshape %two : f16[2, 1, 2, 1, 2, 8, 32]
    %y = attention %q, %keys, %keys, %first, %last {heads = 2, kv_heads = 2, scale = 0.25}
  }
}
)",
      R"(module @attention {
  symbol N in [1, 8]
  symbol B in [1, 8]
  entry @main(%q: f32[2, 2, 2, 2, 2, B, N, 16], %k: f32[2, 2, 2, 2, 2, B, N, 16]) -> (%y) {
    %s = einsum %q, %k {spec = "abcefhnd,abcefhtd->abcefhnt"}
    %p = softmax %s
    %y = einsum %p, %k {spec = "abcefhnt,abcefhtd->abcefhnd"}
  }
}
)"};
  for (const char* text : kModules) {
    PassOptions options;
    options.recipe.products = Recipe::Products::own;
    Module module = module_of(text);
    run_passes(module, {}, options);  // ends the program where a pass makes what is not valid
    CHECK(verify(module));
  }
}

TEST_CASE("many tokens read a quantized matrix as it is, in float32 or rounded") {
  const Module module = module_of(R"(module @m {
  symbol N in [9, 64]
  weight %w : i32[64, 36] = file {tensor = "w"}
  entry @main(%x: bf16[N, 32]) -> (%y) {
    %m = dequantize %w {size = 32, codes = "int4 g128 f16"} : f32[64, 32]
    %y = linear %x, %m : bf16[N, 64]
  }
}
)");
  for (const bool rounded : {false, true}) {
    Module chosen = module;
    PassOptions options;
    if (!rounded) {
      run_passes(chosen);
      CHECK(llvm::count_if(chosen.entries[0].graph.ops(),
                           [](const Op& op) { return order_of(op) == Order::tiled_codes; }) == 1);
      chosen = module;
      options.recipe.has_wgmma = false;
    }
    if (rounded) options.recipe.codes = Recipe::Codes::rounded;
    run_passes(chosen, {}, options);
    const Graph& graph = chosen.entries[0].graph;
    int products = 0;
    for (const Op& op : graph.ops()) {
      if (op.kind != OpKind::linear) continue;
      ++products;
      for (ValueId operand : op.operands)
        CHECK(graph[operand].type.dtype == (rounded ? DType::bf16 : DType::f32));
    }
    CHECK(products == 1);
  }
}

TEST_CASE("calls of all sizes, fused and unfused, beside the module") {
  const Module module = module_of(fmt::format(kBlock, 1, 64, 1));
  for (int64_t tokens : {1, 7, 8, 9, 33, 64}) {
    const std::string difference = compare_plans(module, {tokens, 64});
    CHECK_MESSAGE(difference.empty(), tokens << " tokens: " << difference);
  }
}

TEST_CASE("a kernel whose text does not depend on the range is one for all variants") {
  const Module frozen = value(freeze(module_of(R"(module @m {
  symbol N in [1, 64]
  weight %w : f16[32, 32] = file {tensor = "q"}
  entry @main(%x: f16[N, 32], %z: f16[N, 32]) -> (%y, %n) {
    %y = linear %x, %w : f16[N, 32]
    %n = exp %z : f16[N, 32]
  }
}
)"),
                                     {}));
  const Program program = *value(compile(frozen, {})).program;
  REQUIRE(program.entries.size() == 3);
  std::vector<std::optional<SymbolRange>> of_products, of_others;
  for (const Kernel& kernel : program.kernels)
    (kernel.name.starts_with("gemv") ? of_products : of_others).push_back(kernel.range);
  CHECK(of_products == std::vector<std::optional<SymbolRange>>{SymbolRange{SymbolId{0}, 1, 1},
                                                               SymbolRange{SymbolId{0}, 2, 8}});
  CHECK(of_others == std::vector<std::optional<SymbolRange>>{std::nullopt});
}

TEST_CASE("entries with other variants, and with none, share kernels too") {
  const std::string product = "    %y = linear %x, %w : f16[N, 32]\n    %n = exp %z : f16[N, 32]\n";
  const std::string inputs = "(%x: f16[N, 32], %z: f16[N, 32])";
  // The ranges end at 8 and at 4 tokens.
  const std::string varied = "  entry @varied" + inputs + " -> (%y, %n) {\n" + product + "  }\n";
  const std::string whole =
      "  entry @whole" + inputs + " -> (%y, %n) tokens invariant {\n" + product + "  }\n";
  const std::string pairs =
      "  entry @pairs(%q: f16[2, N, 32], %z: f16[N, 32], %first: i32[2, N], %last: i32[2, N]) -> "
      "(%a, %n) {\n"
      "    %a = attention %q, %q, %q, %first, %last {heads = 1, kv_heads = 1, scale = 1.0, "
      "any_range = "
      "1} : f16[2, N, 32]\n"
      "    %n = exp %z : f16[N, 32]\n  }\n";
  for (const std::string& entries : {varied + whole + pairs, pairs + varied + whole,
                                     whole + pairs + varied, varied + pairs, pairs + varied}) {
    const Module module = module_of(
        "module @m {\n  symbol N in [1, 64]\n"
        "  weight %w : f16[32, 32] = file {tensor = \"w\"}\n" +
        entries + "}\n");
    for (int64_t tokens : {1, 4, 5, 8, 9, 33}) {
      const std::string difference = compare_plans(module, {tokens});
      CHECK_MESSAGE(difference.empty(), tokens << " tokens: " << difference);
    }
    const Program program = *value(compile(value(freeze(module, {})), {})).program;
    size_t elementwise = 0;
    for (const Kernel& kernel : program.kernels) elementwise += kernel.name.starts_with("exp");
    CHECK(elementwise <= 2);  // of at most 4 tokens one can differ from the others'
  }
}

TEST_CASE("an entry in primitives has no variants") {
  CHECK(ranges(module_of(R"(module @m {
  symbol N in [1, 64]
  entry @f(%x: f32[N, 8]) -> (%y) {
    %y = exp %x : f32[N, 8]
  }
}
)")) == "f all; ");
}

TEST_CASE("a text with variants is read, printed and refused") {
  const std::string text = R"(module @m {
  symbol N in [1, 64]
  entry @f(%x: f32[N, 8]) -> (%y) where N in [1, 8] {
    %y = exp %x : f32[N, 8]
  }
  entry @f(%x: f32[N, 8]) -> (%y) where N in [9, 64] {
    %y = exp %x : f32[N, 8]
  }
}
)";
  CHECK(print_module(module_of(text)) == text);
  const auto refused = [&](std::string from, std::string to) {
    std::string changed = text;
    changed.replace(changed.rfind(from), from.size(), to);
    const auto module = parse_module(changed, "test");
    REQUIRE_FALSE(module.has_value());
    return module.error().what;
  };
  CHECK(refused("[9, 64]", "[10, 64]").starts_with("V18: "));
  CHECK(refused("[9, 64]", "[8, 64]").starts_with("V18: "));
  CHECK(refused("[9, 64]", "[9, 63]").starts_with("V18: "));
  CHECK(refused("[9, 64]", "[9, 65]").starts_with("V18: "));
  CHECK(refused(" where N in [9, 64]", "").starts_with("redefinition of @f"));
  CHECK(refused("@f", "@g").starts_with("V18: "));
}

}  // namespace
}  // namespace sinter::test::variants_test
