// Kernels of tiled_linear have the bits of the host evaluator: random sizes with tails, views,
// biases, neighbours and results of both types. The kernel's text runs on the CPU, with NaN behind
// every operand.
//
// SINTER_TRIES=N tries N kernels, each in two calls (6); SINTER_SEED=S draws others (7).
#include <doctest/doctest.h>

#include <random>
#include <set>
#include <tuple>

#include "codegen/kernel_trials.h"
#include "ir/builder.h"
#include "kernels/products/schedule.h"
#include "runtime/cuda/compared_orders.h"
#include "runtime/random_inputs.h"
#include "shim/kernel_shim.h"
#include "support/result.h"

namespace sinter::product_kernels_test {
namespace {

constexpr size_t kKernels = 12;  // compiled together

class RandomProduct {
 public:
  /// tokens: of the product; "N": any number of them.
  RandomProduct(std::mt19937& random, std::string tokens)
      : random_(random), tokens_(std::move(tokens)) {}

  std::string text() {
    const int64_t columns = extent(), length = 8 * between(1, 24);
    const int64_t before = 8 * between(0, 2), after = 8 * between(0, 2);
    if (chance(30)) type_ = "f32";
    const bool view = chance(40), bias = chance(50), three = !view && chance(20);
    // Kernels of many tokens alone read the matrix's columns, which begin at multiples of 16 bytes.
    const bool transposed = (tokens_ == "N" || tokens_ == "300") && columns % 8 == 0 && chance(40);
    parameters_ = view ? fmt::format("%x: DTYPE[{}, {}]", tokens_, before + length + after)
                       : fmt::format("%x: DTYPE[{}{}, {}]", three ? "3, " : "", tokens_, length);
    parameters_ += transposed ? fmt::format(", %m: DTYPE[{}, {}]", length, columns)
                              : fmt::format(", %w: DTYPE[{}, {}]", columns, length);
    if (transposed)
      body_ =
          fmt::format("  %w = transpose %m {{axes = [1, 0]}} : DTYPE[{}, {}]\n", columns, length);
    rows_ = (three ? "3, " : "") + tokens_;
    if (bias) parameters_ += fmt::format(", %b: DTYPE[{}]", columns);
    if (view)
      body_ += fmt::format("  %s = slice %x {{axis = 1, begin = {}, size = {}}} : DTYPE[{}, {}]\n",
                           before, length, tokens_, length);
    line(fmt::format("linear {}, %w{} {{order = tiled_linear{}}}", view ? "%s" : "%x",
                     bias ? ", %b" : "", type_ == "f32" ? ", dtype = f32" : ""),
         columns);
    while (chance(55)) neighbour(columns);
    return fmt::format("graph({}) -> (%v{}) {{\n{}}}", parameters_, values_, body_);
  }

 private:
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }
  int64_t extent() { return chance(50) ? 8 * between(1, 40) : between(1, 270); }

  void line(std::string_view op, int64_t columns) {
    body_ += fmt::format("  %v{} = {} : {}[{}, {}]\n", ++values_, op, type_, rows_, columns);
  }
  /// An activation of the last value, or a sum with an operand of one of three shapes.
  void neighbour(int64_t columns) {
    const std::string last = fmt::format("%v{}", values_);
    if (chance(50)) {
      constexpr const char* kActivations[] = {"silu", "gelu", "relu", "sqrt", "tanh"};
      return line(fmt::format("{} {}", kActivations[between(0, 4)], last), columns);
    }
    const std::string shapes[] = {fmt::format("{}, {}", rows_, columns), fmt::format("{}", columns),
                                  fmt::format("{}, 1", rows_)};
    parameters_ += fmt::format(", %p{}: {}[{}]", values_, type_, shapes[between(0, 2)]);
    line(fmt::format("{} {}, %p{}", chance(50) ? "add" : "mul", last, values_), columns);
  }

  std::mt19937& random_;
  std::string tokens_;
  std::string parameters_, body_, rows_, type_ = "DTYPE";  // of the results
  int values_ = 0;
};

/// A product whose epilogue needs pairs of rows, or writes sections of them.
class SectionedProduct {
 public:
  SectionedProduct(std::mt19937& random, std::string tokens)
      : random_(random), tokens_(std::move(tokens)), length_(8 * (1 + pick(24))) {}

  std::string text() { return pick(2) == 0 ? gated() : rotated(); }

 private:
  int64_t pick(int64_t count) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(count));
  }
  std::string inputs(int64_t rows, bool bias) const {
    return fmt::format("%x: DTYPE[{0}, {1}], %w: DTYPE[{2}, {1}]{3}", tokens_, length_, rows,
                       bias ? fmt::format(", %b: DTYPE[{}]", rows) : "");
  }
  std::string product(int64_t rows, bool bias) const {
    return fmt::format("  %p = linear %x, %w{} {{order = tiled_linear}} : DTYPE[{}, {}]\n",
                       bias ? ", %b" : "", tokens_, rows);
  }
  std::string slice(std::string_view name, int64_t begin, int64_t size) const {
    return fmt::format("  %{} = slice %p {{axis = 1, begin = {}, size = {}}} : DTYPE[{}, {}]\n",
                       name, begin, size, tokens_, size);
  }

  std::string gated() {
    constexpr int64_t kWidths[] = {8, 16, 32, 64, 96, 160, 2048};
    const int64_t width = kWidths[pick(7)];
    const bool bias = pick(2) == 0, stored = pick(3) == 0;
    return fmt::format(
        "graph({0}, %r: DTYPE[{1}, {2}]) -> (%y{3}) {{\n{4}{5}{6}"
        "  %s = silu %g : DTYPE[{1}, {2}]\n  %m = mul %s, %u : DTYPE[{1}, {2}]\n"
        "  %y = add %m, %r : DTYPE[{1}, {2}]\n}}",
        inputs(2 * width, bias), tokens_, width, stored ? ", %p" : "", product(2 * width, bias),
        slice("g", 0, width), slice("u", width, width));
  }

  std::string rotated() {
    constexpr int64_t kHalves[] = {8, 16, 32, 64};
    const int64_t half = kHalves[pick(4)], heads = 2 + pick(3), head = 2 * half;
    const int64_t queries = heads * head, keys = 2 * head, values = head;
    const int64_t rows = queries + keys + values;
    const bool bias = pick(2) == 0;
    const auto rotate = [&](std::string_view name, std::string_view of, int64_t count) {
      return fmt::format(
          "  %{0}h = reshape %{1} {{dims = [{2}, {3}, {4}]}} : DTYPE[{2}, {3}, {4}]\n"
          "  %{0} = rope %{0}h, %cos, %sin {{rotary = {4}, pairing = \"half\"}} : "
          "DTYPE[{2}, {3}, {4}]\n",
          name, of, tokens_, count, head);
    };
    return fmt::format(
               "graph({}, %cos: DTYPE[{}, {}], %sin: DTYPE[{}, {}], %kc: DTYPE[300, {}], "
               "%vc: DTYPE[300, {}], %slot: i32[{}]) -> (%y, %ka, %va) {{\n",
               inputs(rows, bias), tokens_, half, tokens_, half, keys, values, tokens_) +
           product(rows, bias) + slice("q", 0, queries) + rotate("y", "q", heads) +
           slice("k", queries, keys) + rotate("z", "k", 2) +
           fmt::format(
               "  %kr = reshape %z {{dims = [{0}, {1}]}} : DTYPE[{0}, {1}]\n"
               "  %ka = kv_append %kc, %kr, %slot : DTYPE[300, {1}]\n",
               tokens_, keys) +
           slice("v", queries + keys, values) +
           fmt::format("  %va = kv_append %vc, %v, %slot : DTYPE[300, {}]\n}}", values);
  }

  std::mt19937& random_;
  std::string tokens_;
  int64_t length_;
};

/// Tries random products, of `tokens` in their turns, in calls with these values of N.
template <typename Product>
void try_products(std::mt19937& random, size_t tries, llvm::ArrayRef<std::string> tokens,
                  const std::function<std::vector<std::vector<int64_t>>()>& symbol_values) {
  for (size_t begin = 0; begin < tries; begin += kKernels) {
    Trials trials;
    trials.played = {.mma = true, .wgmma = true};
    trials.special_values = false;
    for (size_t i = begin; i < std::min(begin + kKernels, tries); ++i) {
      DeviceDescription device = *find_device("sm_90a");
      device.multiprocessors = 1 + static_cast<int64_t>(random() % 5);
      const std::string text = Product(random, tokens[i % tokens.size()]).text();
      CAPTURE(text);
      trials.add({"product", 1, text.c_str()}, random() % 2 == 0 ? DType::f16 : DType::bf16, 0,
                 device);
    }
    run_trials(trials, symbol_values());
  }
}

}  // namespace

TEST_CASE("random products on tensor cores with neighbours") {
  std::mt19937 random(static_cast<uint32_t>(number_from("SINTER_SEED", 7)));
  // The tiles depend on the tokens, where their number is known.
  const std::string any[] = {"N", "N", "300", "N", "N", "257"};
  try_products<
      RandomProduct>(random, static_cast<size_t>(number_from("SINTER_TRIES", 6)), any, [&] {
    const auto few = static_cast<int64_t>(1 + random() % 130);
    return std::vector<std::vector<int64_t>>{{few}, {few + static_cast<int64_t>(random() % 200)}};
  });
}

// The first small product for which the schedule chooses each of its tiles; K has more steps than
// the pipeline has stages. Both forms of the epilogue of warpgroups that take turns.
TEST_CASE("every tile of many tokens") {
  constexpr int64_t kLength = 456;
  DeviceDescription device = *find_device("sm_90a");
  Trials trials;
  trials.played = {.mma = true, .wgmma = true};
  trials.special_values = false;
  trials.every_order = false;
  std::set<std::tuple<int64_t, int64_t, bool>> tiles;
  const auto add = [&](int64_t tokens, int64_t columns) {
    const auto config = product_config({.tokens = {.count = SymExpr(tokens), .most = tokens},
                                        .matrix = {.rows = columns, .length = kLength}},
                                       device);
    REQUIRE(config.has_value());
    const ProductTile& tile = config->tile();
    if (!tiles.insert({tile.tokens, tile.matrix_rows, config->in_turns}).second) return;
    const auto add_trial = [&](std::string_view activation) {
      const std::string text = fmt::format(
          "graph(%x: DTYPE[{0}, {2}], %w: DTYPE[{1}, {2}], %b: DTYPE[{1}], "
          "%r: DTYPE[{0}, {1}]) -> (%y) {{\n"
          "  %p = linear %x, %w, %b {{order = tiled_linear}} : DTYPE[{0}, {1}]\n"
          "  %s = add %p, %r : DTYPE[{0}, {1}]\n"
          "  %y = {3} %s : DTYPE[{0}, {1}]\n}}",
          tokens, columns, kLength, activation);
      trials.add({"product", 1, text.c_str()}, tiles.size() % 2 == 0 ? DType::f16 : DType::bf16, 0,
                 device);
    };
    add_trial("relu");
    if (config->in_turns) add_trial("gelu");  // whose epilogue is a loop
  };
  for (device.multiprocessors = 1; device.multiprocessors <= 3; ++device.multiprocessors)
    for (int64_t tokens = 260; tokens <= 440; tokens += 60)
      for (int64_t columns = 60; columns <= 580; columns += 20) add(tokens, columns);
  CHECK(tiles.size() == 9);
  run_trials(trials, {{}});
}

// Sums of 64 rows of a value of the epilogue, which is stored too or not, or of the product itself;
// with more tiles than blocks, and tiles beyond the rows and the columns.
TEST_CASE("products whose epilogue's rows are summed") {
  DeviceDescription device = *find_device("sm_90a");
  device.multiprocessors = 2;
  Trials trials;
  trials.played = {.mma = true, .wgmma = true};
  trials.special_values = false;
  const auto add = [&](DType dtype, std::string_view outputs, std::string_view epilogue) {
    const std::string text = fmt::format(
        "graph(%x: DTYPE[320, 136], %m: DTYPE[136, 200], %b: DTYPE[200], %r: DTYPE[320, 200]) -> "
        "({}) {{\n"
        "  %w = transpose %m {{axes = [1, 0]}} : DTYPE[200, 136]\n"
        "  %p = linear %x, %w, %b {{order = tiled_linear}} : DTYPE[320, 200]\n{}"
        "  %blocks = reshape %y {{dims = [5, 64, 200]}} : DTYPE[5, 64, 200]\n"
        "  %wide = cast %blocks {{dtype = f32}} : f32[5, 64, 200]\n"
        "  %s = reduce_sum %wide {{axes = [1]}} : f32[5, 1, 200]\n}}",
        outputs, epilogue);
    trials.add({"product", 1, text.c_str()}, dtype, 0, device);
  };
  const std::string_view formula =
      "  %t = tanh %r : DTYPE[320, 200]\n  %y = mul %p, %t : DTYPE[320, 200]\n";
  add(DType::bf16, "%y, %s", formula);
  add(DType::f16, "%s", formula);
  add(DType::bf16, "%s, %y", "  %y = relu %p : DTYPE[320, 200]\n");
  add(DType::f16, "%p, %s", "  %y = reshape %p {dims = [320, 200]} : DTYPE[320, 200]\n");
  // The tiles of rows fill the groups of tiles that run at about the same time: none is left over.
  const char* whole_groups =
      "graph(%x: DTYPE[2048, 16], %w: DTYPE[8, 16], %r: DTYPE[2048, 8]) -> (%y) {\n"
      "  %p = linear %x, %w {order = tiled_linear} : DTYPE[2048, 8]\n"
      "  %t = gelu %r : DTYPE[2048, 8]\n  %y = mul %p, %t : DTYPE[2048, 8]\n}";
  trials.add({"product", 1, whole_groups}, DType::bf16, 0, device);
  run_trials(trials, {{}});
}

TEST_CASE("products of few tokens") {
  std::mt19937 random(static_cast<uint32_t>(number_from("SINTER_SEED", 7)));
  const std::string tokens[] = {"9", "16", "17", "64", "100", "128", "255", "256", "1"};
  try_products<RandomProduct>(random, static_cast<size_t>(number_from("SINTER_TRIES", 9)), tokens,
                              [] { return std::vector<std::vector<int64_t>>{{}}; });
}

TEST_CASE("products whose epilogue needs pairs of rows") {
  std::mt19937 random(static_cast<uint32_t>(number_from("SINTER_SEED", 7)));
  const std::string tokens[] = {"9", "64", "100", "17", "256", "257", "300"};
  try_products<SectionedProduct>(random, static_cast<size_t>(number_from("SINTER_TRIES", 7)),
                                 tokens, [] { return std::vector<std::vector<int64_t>>{{}}; });
}

TEST_CASE("a part is appended to a cache that has as many elements as the product") {
  Trials trials;
  trials.played = {.mma = true, .wgmma = true};
  trials.special_values = false;
  for (const char* outputs : {"%p, %a", "%a"}) {
    const std::string text = fmt::format(
        "graph(%x: DTYPE[16, 24], %w: DTYPE[32, 24], %c: DTYPE[32, 16], %slot: i32[16]) -> ({}) "
        "{{\n"
        "  %p = linear %x, %w {{order = tiled_linear}} : DTYPE[16, 32]\n"
        "  %k = slice %p {{axis = 1, begin = 16, size = 16}} : DTYPE[16, 16]\n"
        "  %a = kv_append %c, %k, %slot : DTYPE[32, 16]\n}}",
        outputs);
    trials.add({"product", 1, text.c_str()}, DType::bf16, 0, *find_device("sm_90a"));
  }
  run_trials(trials, {{}});
}

// A kernel for a range has a form for each of several numbers of tokens.
TEST_CASE("products of up to 256 tokens") {
  std::mt19937 random(static_cast<uint32_t>(number_from("SINTER_SEED", 7)));
  const std::string up_to[] = {"F"};
  try_products<RandomProduct>(random, static_cast<size_t>(number_from("SINTER_TRIES", 3)), up_to,
                              [] {
                                std::vector<std::vector<int64_t>> values;
                                for (const int64_t tokens : {0, 1, 31, 33, 64, 65, 129, 256})
                                  values.push_back({0, 0, 0, 0, 0, tokens});
                                return values;
                              });
}

// The check of an invariant plan's kernels: a branch whose steps are in another order is found at
// the numbers of tokens that take it, and at no other.
TEST_CASE("an order of steps that depends on the number of tokens is found") {
  DeviceDescription device = *find_device("sm_90a");
  device.multiprocessors = 3;
  Trials trials;
  trials.add({"product", 1,
              "graph(%x: DTYPE[F, 200], %w: DTYPE[72, 200]) -> (%y) {\n"
              "  %y = linear %x, %w {order = tiled_linear, dtype = f32} : f32[F, 72]\n}"},
             DType::bf16, 0, device);
  Kernel& kernel = trials.kernels.front();
  const std::string function = "extern \"C\"", call = "multiply_few_tokens<Config, Form1";
  const size_t begin = kernel.source.find(function), called = kernel.source.find(call);
  REQUIRE(begin != std::string::npos);
  REQUIRE(called != std::string::npos);
  kernel.source.replace(called, call.size(), "multiply_few_tokens<OtherConfig, Form1");
  kernel.source.insert(
      begin,
      "struct DescendingSteps {\n"
      "  static SINTER_DEVICE constexpr int at(int i, int n) { return n - 1 - i; }\n"
      "};\n"
      "struct OtherConfig : Config {\n  using Steps = DescendingSteps;\n};\n");
  const auto shim = KernelShim::compile({&kernel},
                                        "#define SINTER_HAS_MMA 1\n"
                                        "#define SINTER_HAS_WGMMA 1\n");
  REQUIRE_MESSAGE(shim.has_value(), (shim ? "" : shim.error().what));
  for (const auto& [tokens, is_found] : {std::pair<int64_t, bool>{32, false}, {33, true}}) {
    std::vector<int64_t> values = {0, 0, 0, 0, 0, tokens};
    values.resize(group_symbols().size());
    const auto inputs = value(random_inputs(kernel.group, group_symbols(), values, 3));
    const Status status = check_kernel(*shim, kernel, group_symbols(), values,
                                       {&inputs[0], &inputs[1]}, kThreadOrders[0]);
    CHECK(status.has_value() != is_found);
    if (is_found) CHECK(status.error().message().find("differ") != std::string::npos);
  }
}

// The comparison that a device makes before it runs an invariant plan; and with mma's steps in
// another order.
TEST_CASE("chains of mma and wgmma have the same sums, and others are counted") {
  Kernel kernel;
  kernel.name = compared_orders_kernel().name;
  kernel.source = compared_orders_kernel().text;
  const TensorType count{DType::i32, {Dim(1)}};
  kernel.group.outputs.push_back(
      Builder(kernel.group, {})
          .op(OpKind::iota, {},
              Attributes().set(AttrName::axis, int64_t{0}).set(AttrName::dims, count.dims),
              "count"));
  kernel.launch.rows = SymExpr(1);
  kernel.launch.threads = 128;
  const auto differing = [&] {
    const auto shim = KernelShim::compile({&kernel},
                                          "#define SINTER_HAS_MMA 1\n"
                                          "#define SINTER_HAS_WGMMA 1\n");
    REQUIRE_MESSAGE(shim.has_value(), (shim ? "" : shim.error().what));
    int32_t sums = 0;
    void* outputs[] = {&sums};
    const Status launched = shim->launch(kernel, {}, {}, outputs);
    REQUIRE_MESSAGE(launched.has_value(), (launched ? "" : launched.error().message()));
    return sums;
  };
  CHECK(differing() == 0);
  const std::string ascending = "ComparedOrders<f16>",
                    descending = "ComparedOrders<f16, Descending>";
  kernel.name = "compare_other_orders";
  kernel.source.replace(kernel.source.find(ascending), ascending.size(), descending);
  kernel.source.replace(kernel.source.find("compare_orders"), 14, kernel.name);
  kernel.source.insert(
      kernel.source.find("extern"),
      "struct Descending {\n"
      "  static SINTER_DEVICE constexpr int at(int i, int n) { return n - 1 - i; }\n"
      "};\n");
  const int32_t sums = differing();
  CHECK(sums > 2048);
  CHECK(sums <= 4096);
}

// Equal shares of the matrix's rows: the last tile of a share has fewer rows, and the last share
// fewer than others.
TEST_CASE("blocks with equal shares of the matrix's rows") {
  DeviceDescription device = *find_device("sm_90a");
  device.multiprocessors = 2;
  Trials trials;
  trials.played = {.mma = true, .wgmma = true};
  trials.special_values = false;
  const auto add = [&](int64_t rows, int64_t length, const char* epilogue) {
    const auto config = product_config(
        {.tokens = {.count = SymExpr(16), .most = 16}, .matrix = {.rows = rows, .length = length}},
        device);
    REQUIRE(config.has_value());
    CHECK(config->forms[0].shares);
    const std::string text = fmt::format(
        "graph(%x: DTYPE[16, {1}], %w: DTYPE[{0}, {1}]) -> (%y) {{\n"
        "  %p = linear %x, %w {{order = tiled_linear}} : DTYPE[16, {0}]\n{2}}}",
        rows, length, epilogue);
    trials.add({"product", 1, text.c_str()}, DType::bf16, 0, device);
  };
  const char* exp = "  %y = exp %p : DTYPE[16, 200]\n";
  add(200, 136, exp);
  add(200, 128, exp);
  add(192, 128,
      "  %g = slice %p {axis = 1, begin = 0, size = 96} : DTYPE[16, 96]\n"
      "  %u = slice %p {axis = 1, begin = 96, size = 96} : DTYPE[16, 96]\n"
      "  %s = silu %g : DTYPE[16, 96]\n  %y = mul %s, %u : DTYPE[16, 96]\n");
  run_trials(trials, {{}});
}

}  // namespace sinter::product_kernels_test
