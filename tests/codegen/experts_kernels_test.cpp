// Kernels of top_k, expert_linear and of sorted rows compute what the host evaluator computes, bit
// for bit: random numbers of experts, of chosen ones and of elements, equal logits, numbers that
// name no expert. The kernels' text runs on the CPU.
//
// SINTER_TRIES=N tries N kernels of each op (8); SINTER_SEED=S draws others (7).
#include <random>

#include "codegen/kernel_trials.h"
#include "kernels/library.h"
#include "runtime/random_inputs.h"
#include "support/nvrtc.h"
#include "support/packed_weights.h"

namespace sinter::experts_kernels_test {
namespace {

class Draws {
 public:
  Draws() : random_(static_cast<uint32_t>(number_from("SINTER_SEED", 7))) {}

  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }

  std::string top_k() {
    const int64_t columns = chance(20) ? between(1, 1024) : between(1, 128);
    const int64_t count = between(1, std::min<int64_t>(columns, chance(20) ? 64 : 8));
    return fmt::format(
        "graph(%x: DTYPE[N, {0}]) -> (%y) {{\n  %s = slice %x {{axis = 1, begin = {1}, size = "
        "{2}}} : DTYPE[N, {2}]\n  %y = top_k %s {{count = {3}}} : i32[N, {3}]\n}}",
        columns + 8, between(0, 8), columns, count);
  }

  std::string expert_linear() { return product(nullptr); }
  /// Takes the formats in turn.
  std::string expert_linear_of_codes() {
    const std::vector<CodeFormat> formats = test::code_formats();
    return product(&formats[turn_++ % formats.size()]);
  }

  std::string sort() {
    // Another number of warps counts more than 256 runs.
    constexpr int64_t kCounts[] = {256, 257, 1024, 1, 128};
    const size_t turn = turn_++;
    const int64_t chosen = between(1, 8);
    const int64_t count = turn < std::size(kCounts) ? kCounts[turn] : between(1, 128);
    constexpr std::string_view kResults[] = {"sorted_positions", "sorted_places", "run_ends"};
    // All results of one kernel, or two, or one.
    const int64_t left_out = between(0, 3), alone = chance(30) ? between(0, 2) : 3;
    std::string names, text;
    for (int64_t i = 0; i < 3; ++i) {
      if (alone != 3 ? alone != i : left_out == i) continue;
      names += fmt::format("{}%y{}", names.empty() ? "" : ", ", i);
      text += fmt::format("  %y{} = {} %e {{count = {}}} : i32[{}]\n", i, kResults[i], count,
                          i == 2 ? fmt::to_string(count) : fmt::format("N, {}", chosen));
    }
    return fmt::format("graph(%e: i32[N, {}]) -> ({}) {{\n{}}}", chosen, names, text);
  }

  std::string embedding() {
    const bool repeats = chance(50);
    const int64_t chosen = between(1, 8),
                  length = chance(50) ? 8 * between(1, 200) : between(1, 70);
    return fmt::format(
        "graph(%x: DTYPE[N, {0}, {1}], %e: i32[N, {2}]) -> (%y) {{\n{3}"
        "  %y = embedding %{4}, %e {{checked = 1}} : DTYPE[N, {2}, {1}]\n}}",
        repeats ? 1 : chosen, length, chosen,
        repeats ? fmt::format("  %b = broadcast %x {{dims = [N, {0}, {1}]}} : DTYPE[N, {0}, {1}]\n",
                              chosen, length)
                : "",
        repeats ? "b" : "x");
  }

 private:
  std::string product(const CodeFormat* format) {
    const int64_t experts = between(1, 9), chosen = between(1, 8);
    const int64_t rows = chance(10) ? chosen : between(1, 150);
    const int64_t length = chance(70) ? 8 * between(1, 80) : between(1, 300);
    const bool shared = chance(50), checked = chance(50);
    const bool summed = chance(40), gated = rows % 2 == 0 && chance(60);
    std::vector<std::string> attrs;
    if (checked) attrs.push_back("checked = 1");
    if (format)
      attrs.push_back(fmt::format("size = {}, codes = \"{}\"", length, to_string(*format)));
    const std::string beside = summed ? fmt::format("%s: {}[N, {}], %r: DTYPE[N, {}]",
                                                    chance(50) ? "f32" : "DTYPE", chosen, rows)
                                      : fmt::format("%r: DTYPE[N, {}, {}]", chosen, rows);
    const bool alone_too = summed && chance(30);
    std::string text = fmt::format(
        "graph(%x: DTYPE[N, {0}{1}], %w: {6}[{2}, {3}, {7}], %e: i32[N, {4}], {8}) -> ({9}%y) {{\n"
        "  %p = expert_linear %x, %w, %e {{{5}}} : DTYPE[N, {4}, {3}]\n",
        shared ? "" : fmt::format("{}, ", chosen), length, experts, rows, chosen,
        fmt::join(attrs, ", "), format ? "i32" : "DTYPE",
        format ? row_words(*format, length) : length, beside, alone_too ? "%q, " : "");
    if (alone_too) text += fmt::format("  %q = neg %p : DTYPE[N, {}, {}]\n", chosen, rows);
    // The sums of all experts of a token together.
    if (summed)
      return text + fmt::format(
                        "  %t = expert_sum %p, %s : DTYPE[N, {0}]\n  %y = add %t, %r : DTYPE[N, "
                        "{0}]\n}}",
                        rows);
    if (!gated) return text + fmt::format("  %y = add %p, %r : DTYPE[N, {}, {}]\n}}", chosen, rows);
    // Both halves of the rows, and of the operand.
    const auto halves = [&](std::string_view of, std::string_view first, std::string_view second) {
      std::string lines;
      for (int half = 0; half < 2; ++half)
        lines += fmt::format(
            "  %{0} = slice %{1} {{axis = 2, begin = {2}, size = {3}}} : DTYPE[N, {4}, {3}]\n",
            half == 0 ? first : second, of, half * rows / 2, rows / 2, chosen);
      return lines;
    };
    return text + halves("p", "g", "u") + halves("r", "r0", "r1") +
           fmt::format(
               "  %s = silu %g : DTYPE[N, {0}, {1}]\n  %m = mul %s, %u : DTYPE[N, {0}, {1}]\n"
               "  %y = add %m, %r1 : DTYPE[N, {0}, {1}]\n}}",
               chosen, rows / 2);
  }

  std::mt19937 random_;
  size_t turn_ = 0;
};

Trials trials_of(std::string (Draws::*text)(), int usual = 8) {
  constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};
  Trials trials;
  Draws draws;
  for (int i = 0; i < number_from("SINTER_TRIES", usual); ++i) {
    const std::string group = (draws.*text)();
    CAPTURE(group);
    trials.add({"experts", 1, group.c_str()}, kTypes[i % 3], 0, *find_device("sm_90a"));
  }
  return trials;
}

/// In a checked op every third number names no expert.
void name_no_expert(const Kernel& kernel, llvm::ArrayRef<int64_t>,
                    std::vector<HostTensor>& inputs) {
  const bool checked = llvm::any_of(kernel.group.ops(),
                                    [](const Op& op) { return op.attrs.has(AttrName::checked); });
  if (!checked) return;
  constexpr int32_t kOutside[] = {-1, 9, INT32_MIN, INT32_MAX};
  for (int64_t i = 0; i < inputs[2].volume(); i += 3)
    inputs[2].data<int32_t>()[i] = kOutside[i % 4];
}

/// The same, and matrices of codes.
void fill_matrices(const Kernel& kernel, llvm::ArrayRef<int64_t> symbols,
                   std::vector<HostTensor>& inputs) {
  name_no_expert(kernel, symbols, inputs);
  for (const Op& op : kernel.group.ops()) {
    if (!op.attrs.has(AttrName::codes)) continue;
    const std::vector<int64_t> dims = inputs[1].dims;
    inputs[1] = test::random_codes(code_format(op.attrs), dims[0] * dims[1],
                                   op.attrs.get<Dim>(AttrName::size).constant(), 5)
                    .packed();
    inputs[1].dims = dims;
  }
}

}  // namespace

TEST_CASE("the largest elements, equal ones by position") {
  run_trials(
      trials_of(&Draws::top_k), {{37}, {1}, {0}, {130}},
      [calls = 0](const Kernel&, llvm::ArrayRef<int64_t>, std::vector<HostTensor>& inputs) mutable {
        // Every second call repeats the first five elements, so that many are equal.
        if (calls++ % 2 == 0) return;
        HostTensor& x = inputs[0];
        const auto bytes = static_cast<size_t>(whole_bytes(x.dtype));
        for (size_t i = 5 * bytes; i < x.bytes.size(); ++i) x.bytes[i] = x.bytes[i % (5 * bytes)];
      });
}

TEST_CASE("products with the matrices of experts, and an epilogue") {
  Trials trials = trials_of(&Draws::expert_linear);
  trials.every_order = false;
  run_trials(trials, {{3}, {1}, {0}, {17}}, name_no_expert);
}

/// Numbers of a few experts, and some that are none's, or of no row.
void repeat_numbers(const Kernel&, llvm::ArrayRef<int64_t>, std::vector<HostTensor>& inputs) {
  constexpr int32_t kNumbers[] = {3, 0, 5, 3, 3, -1, 0, 1024, 1, INT32_MAX, INT32_MIN, 2, 17};
  HostTensor& numbers = inputs.back();
  for (int64_t i = 0; i < numbers.volume(); ++i)
    numbers.data<int32_t>()[i] = kNumbers[i * i % 37 % std::size(kNumbers)];
}

TEST_CASE("rows in the order of their numbers, equal ones by position") {
  run_trials(trials_of(&Draws::sort), {{37}, {1}, {0}, {600}}, repeat_numbers);
  run_trials(trials_of(&Draws::embedding), {{37}, {1}, {0}}, repeat_numbers);
}

TEST_CASE("products with the codes of experts, of every format") {
  Trials trials = trials_of(&Draws::expert_linear_of_codes, 13);
  trials.every_order = false;
  trials.played.fp8_conversion = true;
  run_trials(trials, {{3}, {1}, {0}, {17}}, fill_matrices);
}

TEST_CASE("kernels of experts compile" * doctest::test_suite("nvrtc")) {
  const NvrtcFile* nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  std::vector<KernelSource> sources;
  std::deque<Trials> trials;
  for (const auto draw : {&Draws::top_k, &Draws::expert_linear, &Draws::sort, &Draws::embedding})
    trials.push_back(trials_of(draw));
  trials.push_back(trials_of(&Draws::expert_linear_of_codes, 13));
  for (const Trials& some : trials)
    for (const Kernel& kernel : some.kernels) sources.push_back({kernel.name, kernel.source});
  const Status compiled = compile_or_find(*nvrtc, sources, "sm_90a");
  CHECK_MESSAGE(compiled.has_value(), (compiled ? "" : compiled.error().what));
}

}  // namespace sinter::experts_kernels_test
