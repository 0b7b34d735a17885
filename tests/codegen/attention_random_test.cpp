// Random attention problems: heads, widths, windows, caps, views, sequences, masks and neighbours
// of a tiled_attention, and calls of it with random lengths and ranges of keys. The kernel's text,
// run on the CPU, has the bits of the host evaluator, as products of warps and of warpgroups.
//
// SINTER_TRIES=N tries N kernels, each in ten calls (3); SINTER_SEED=S draws others (11).
#include <doctest/doctest.h>

#include <algorithm>

#include "codegen/attention_trials.h"
#include "kernels/tiled_attention/order.h"

namespace sinter::attention_random_test {
namespace {

constexpr int kCalls = 10;      // of a kernel
constexpr size_t kKernels = 8;  // compiled together

class RandomGroup {
 public:
  explicit RandomGroup(std::mt19937& random) : random_(random) {}

  /// Shape and attributes, with or without neighbours, as text.
  std::string text() {
    const int64_t kv_heads = between(1, 3), group = between(1, 3), heads = kv_heads * group;
    const int64_t width = any_width(), value_width = chance(70) ? width : any_width();
    const bool neighbours = chance(40), views = chance(20);
    const int64_t pad = views ? between(1, 9) : 0;
    leading_ = chance(65) ? "" : chance(70) ? "2, " : "1, 2, ";
    std::string parameters = fmt::format(
        "%x: DTYPE[{3}N, {0}], %c: DTYPE[{3}K, {1}], %d: DTYPE[{3}K, {2}], %first: i32[{3}N], "
        "%last: i32[{3}N]",
        heads * width + pad, kv_heads * width + pad, kv_heads * value_width + pad, leading_);
    std::string body = cut("q", "x", "N", heads * width, pad) +
                       cut("k", "c", "K", kv_heads * width, pad) +
                       cut("v", "d", "K", kv_heads * value_width, pad);
    const std::string q = neighbours ? ahead(parameters, body, heads, width) : "q";
    const bool masked = chance(40);
    if (masked)
      parameters +=
          mask(heads, attention_key_tile(static_cast<int>(width), static_cast<int>(value_width)));
    body += fmt::format(
        "  %a = attention %{}, %k, %v, %first, %last{} {{order = tiled_attention, heads = {}, "
        "kv_heads = {}, scale = "
        "{}{}{}{}{}{}{}}} : DTYPE[{}N, {}]\n",
        q, masked ? tiles_ ? ", %mask, %tiles" : ", %mask" : "", heads, kv_heads,
        chance(10) ? "-0.25" : fmt::format("{:.4f}", 0.02 + 0.01 * between(1, 90)),
        chance(25) ? fmt::format(", softcap = {}.0", between(1, 30)) : "",
        chance(30) ? fmt::format(", window = {}", between(1, 300)) : "",
        chance(25) ? fmt::format(", sink = {}", between(1, chance(70) ? 9 : 300)) : "",
        chance(20) ? ", any_range = 1" : "", chance(30) ? ", empty_zero = 1" : "",
        segments(attention_key_tile(static_cast<int>(width), static_cast<int>(value_width))),
        leading_, heads * value_width);
    std::string result = "a";
    if (neighbours && chance(60)) {
      const std::string type = fmt::format("DTYPE[{}N, {}]", leading_, heads * value_width);
      parameters += fmt::format(", %gate: {}", type);
      body += fmt::format("  %y = mul %a, %gate : {}\n", type);
      result = "y";
    }
    with_neighbours_ = neighbours;
    return fmt::format("graph({}) -> (%{}) {{\n{}}}", parameters, result, body);
  }
  bool with_neighbours() const { return with_neighbours_; }

 private:
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }
  int64_t any_width() {
    constexpr int64_t kUsual[] = {16, 32, 64, 80, 96, 128, 256};
    if (chance(60)) return kUsual[between(0, chance(80) ? 3 : 6)];
    return chance(80) ? 2 * between(1, 40) : between(1, 150);
  }
  /// Segments of one tile of keys or more, for the kernel of many tokens or of few.
  std::string segments(int64_t key_tile) {
    if (chance(40)) return "";
    const std::string segment = fmt::format(", segment = {}", key_tile * between(1, 3));
    return chance(60) ? segment + fmt::format(", splits = {}", between(1, 8)) : segment;
  }
  /// %name: the columns of %of after the first `pad`, or all of it.
  std::string cut(std::string_view name, std::string_view of, std::string_view rows, int64_t width,
                  int64_t pad) const {
    return fmt::format("  %{} = slice %{} {{axis = {}, begin = {}, size = {}}} : DTYPE[{}{}, {}]\n",
                       name, of, 1 + leading_.size() / 3, pad, width, leading_, rows, width);
  }
  /// The parameter of a mask, which repeats along some axes, and of a summary of its tiles.
  std::string mask(int64_t heads, int64_t key_tile) {
    constexpr std::string_view kTypes[] = {"i1", "f16", "bf16", "f32"};
    std::string dims = leading_;
    if (chance(40)) std::replace(dims.begin(), dims.end(), '2', '1');
    const auto extent = [&](std::string whole) { return chance(35) ? "1" : whole; };
    const std::string own_heads = extent(std::to_string(heads)), tokens = extent("N"),
                      keys = extent("K");
    tiles_ = chance(50);
    const std::string mask = fmt::format(", %mask: {}[{}{}, {}, {}]", kTypes[between(0, 3)], dims,
                                         own_heads, tokens, keys);
    if (!tiles_) return mask;
    const auto count = [](const std::string& axis, int64_t most, int64_t of_tile) {
      return axis == "1" ? 1 : most / of_tile;
    };
    return mask + fmt::format(", %tiles: i1[{}{}, {}, {}]", dims, own_heads,
                              count(tokens, group_symbols()[0].high, kAttentionTokenTile),
                              count(keys, group_symbols()[2].high, key_tile));
  }
  /// Adds rope or a bias on the queries; returns the name of the result.
  std::string ahead(std::string& parameters, std::string& body, int64_t heads, int64_t width) {
    const int64_t all = heads * width;
    if (width % 2 == 0 && leading_.empty() && chance(50)) {
      const int64_t rotary = 2 * between(1, width / 2);
      parameters += fmt::format(", %cos: DTYPE[N, {0}], %sin: DTYPE[N, {0}]", rotary / 2);
      body += fmt::format(
          "  %h = reshape %q {{dims = [N, {0}, {1}]}} : DTYPE[N, {0}, {1}]\n"
          "  %r = rope %h, %cos, %sin {{rotary = {2}, pairing = \"{3}\"}} : DTYPE[N, {0}, {1}]\n"
          "  %p = reshape %r {{dims = [N, {4}]}} : DTYPE[N, {4}]\n",
          heads, width, rotary, chance(50) ? "half" : "interleaved", all);
    } else {
      parameters += fmt::format(", %bias: DTYPE[{}]", all);
      body += fmt::format("  %p = add %q, %bias : DTYPE[{}N, {}]\n", leading_, all);
    }
    return "p";
  }

  std::mt19937& random_;
  std::string leading_;  // axes: "2, "
  bool with_neighbours_ = false, tiles_ = false;
};

}  // namespace

TEST_CASE("random attention problems") {
  const auto tries = static_cast<size_t>(number_from("SINTER_TRIES", 3));
  std::mt19937 random(static_cast<uint32_t>(number_from("SINTER_SEED", 11)));
  size_t neighbours = 0, problems = 0;
  for (size_t begin = 0; begin < tries; begin += kKernels) {
    Trials trials;
    const bool warpgroups = begin / kKernels % 2 == 1;
    if (warpgroups) trials.played = {.mma = true, .wgmma = true};
    trials.special_values = false;
    trials.every_order = false;
    for (size_t i = begin; i < std::min(begin + kKernels, tries); ++i) {
      RandomGroup group(random);
      const std::string text = group.text();
      neighbours += group.with_neighbours() ? kCalls : 0;
      problems += kCalls;
      DeviceDescription device = *find_device(warpgroups ? "sm_90a" : "sm_80");
      if (warpgroups) device.multiprocessors = 1 + static_cast<int64_t>(random() % 4);
      trials.add({"random", 0, text.c_str()}, kAttentionTypes[random() % 2], 0, device);
    }
    std::vector<std::vector<int64_t>> sizes;
    for (int call = 0; call < kCalls; ++call) {
      const auto tokens = static_cast<int64_t>(random() % (call % 3 == 0 ? 200 : 40));
      sizes.push_back({tokens, 0, tokens + 1 + static_cast<int64_t>(random() % 300), 0, 0});
    }
    VaryRanges vary{std::mt19937(static_cast<uint32_t>(begin))};
    run_trials(trials, sizes, std::ref(vary));
  }
  MESSAGE(problems << " problems, " << neighbours << " of them with neighbours");
}

}  // namespace sinter::attention_random_test
