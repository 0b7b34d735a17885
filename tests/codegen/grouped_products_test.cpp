// Kernels of grouped_linear and grouped_outer have the bits of each run's product alone: runs
// without rows, of one row and about a tile, rows behind the last run, ends that are out of order
// where the op is checked, and runs and matrices of NaN, none of which reaches a neighbour. The
// kernel's text runs on the CPU, with NaN behind every operand.
//
// SINTER_TRIES=N tries N kernels of each loop, each in five calls (3); SINTER_SEED=S draws others
// (7).
#include <doctest/doctest.h>

#include <random>

#include "codegen/kernel_trials.h"
#include "kernels/products/schedule.h"

namespace sinter::grouped_products_test {
namespace {

int64_t between(std::mt19937& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}
template <typename List>
auto pick(std::mt19937& random, const List& list) {
  return list[random() % std::size(list)];
}

/// One product, and ops that join its kernel. `tokens`: N, of which there are many, or F.
std::string text_of(std::mt19937& random, const char* tokens) {
  constexpr int64_t kRuns[] = {1, 2, 3, 8, 33, 64};
  const int64_t length = 8 * between(random, 1, 12);
  const bool gated = random() % 3 == 0;
  constexpr int64_t kHalves[] = {8, 16, 32, 64, 96, 128};  // pairs that boxes have whole runs of
  const int64_t half = pick(random, kHalves);
  const int64_t columns = gated ? 2 * half : between(random, 1, 150);
  std::string body = fmt::format("  %p = grouped_linear %x, %w, %e{} : DTYPE[{}, {}]\n",
                                 random() % 2 == 0 ? "" : " {checked = 1}", tokens, columns);
  std::string result = "p", more;
  if (gated) {
    body += fmt::format(
        "  %g = slice %p {{axis = 1, begin = 0, size = {1}}} : DTYPE[{0}, {1}]\n"
        "  %u = slice %p {{axis = 1, begin = {1}, size = {1}}} : DTYPE[{0}, {1}]\n"
        "  %s = silu %g : DTYPE[{0}, {1}]\n  %y = mul %s, %u : DTYPE[{0}, {1}]\n",
        tokens, half);
    result = "y";
  } else if (random() % 2 == 0) {
    more = fmt::format(", %r: DTYPE[{}, {}]", tokens, columns);
    body += fmt::format("  %y = add %p, %r : DTYPE[{}, {}]\n", tokens, columns);
    result = "y";
  }
  const int64_t runs = pick(random, kRuns);
  return fmt::format(
      "graph(%x: DTYPE[{0}, {1}], %w: DTYPE[{2}, {3}, {1}], %e: i32[{2}]{4}) -> (%{5}) {{\n{6}}}",
      tokens, length, runs, columns, more, result, body);
}

/// Sums over runs, and an op that joins their kernel.
std::string sums_text_of(std::mt19937& random, const char* tokens) {
  constexpr int64_t kRuns[] = {1, 2, 3, 7};
  const int64_t runs = pick(random, kRuns);
  const int64_t rows = 8 * between(random, 1, 20), columns = 8 * between(random, 1, 20);
  const std::string dims = fmt::format("{}, {}, {}", runs, rows, columns);
  const bool joins = random() % 2 == 0;
  return fmt::format(
      "graph(%x: DTYPE[{0}, {1}], %y: DTYPE[{0}, {2}], %e: i32[{3}]{4}) -> (%{5}) {{\n"
      "  %p = grouped_outer %x, %y, %e{6} : DTYPE[{7}]\n{8}}}",
      tokens, rows, columns, runs, joins ? fmt::format(", %r: DTYPE[{}]", dims) : "",
      joins ? "z" : "p", random() % 2 == 0 ? "" : " {checked = 1}", dims,
      joins ? fmt::format("  %z = add %p, %r : DTYPE[{}]\n", dims) : "");
}

/// One product by transposed views of its matrices, and an op that joins its kernel.
std::string transposed_text_of(std::mt19937& random, const char* tokens) {
  constexpr int64_t kRuns[] = {1, 2, 3, 8, 33};
  const int64_t runs = pick(random, kRuns), length = 8 * between(random, 1, 20);
  // With columns == runs * length, exchanged extents change no shape; other sizes would hide it.
  const bool equal = runs * length <= 200 && random() % 2 == 0;
  const int64_t columns = equal ? runs * length : 8 * between(random, 1, 20);
  return fmt::format(
      "graph(%x: DTYPE[{0}, {1}], %m: DTYPE[{2}, {1}, {3}], %e: i32[{2}], %r: DTYPE[{0}, {3}]) -> "
      "(%y) {{\n"
      "  %w = transpose %m {{axes = [0, 2, 1]}} : DTYPE[{2}, {3}, {1}]\n"
      "  %p = grouped_linear %x, %w, %e{4} : DTYPE[{0}, {3}]\n"
      "  %y = add %p, %r : DTYPE[{0}, {3}]\n}}",
      tokens, length, runs, columns, random() % 2 == 0 ? "" : " {checked = 1}");
}

/// Lengths about the tiles' and ends behind them; the rows of some runs are NaN, and some matrices.
void draw_runs(std::mt19937& random, const Op& op, std::vector<HostTensor>& inputs) {
  constexpr int64_t kLengths[] = {0, 0, 1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 130};
  HostTensor& ends = inputs[2];
  const int64_t rows = inputs[0].dims[0];
  const bool checked = op.attrs.is_set(AttrName::checked);
  int64_t end = 0;
  for (int64_t run = 0; run < ends.volume(); ++run) {
    const int64_t begin = end;
    end = std::min(rows, end + pick(random, kLengths));
    const bool last = run + 1 == ends.volume();
    if (last && random() % 2 == 0) end = rows;
    ends.data<int32_t>()[run] = static_cast<int32_t>(end);
    for (size_t i = 0; i < (op.kind == OpKind::grouped_outer ? 2 : 1); ++i)
      if (const int64_t length = inputs[i].dims[1]; random() % 4 == 0)
        std::fill_n(inputs[i].data<uint16_t>() + begin * length, (end - begin) * length,
                    uint16_t{0x7fff});
  }
  if (op.kind == OpKind::grouped_linear) {
    const int64_t elements = inputs[1].volume() / ends.volume();
    for (int64_t matrix = 0; matrix < ends.volume(); ++matrix)
      if (random() % 4 == 0)
        std::fill_n(inputs[1].data<uint16_t>() + matrix * elements, elements, uint16_t{0x7fff});
  }
  if (checked && random() % 2 == 0)
    ends.data<int32_t>()[random() % static_cast<uint64_t>(ends.volume())] = pick(
        random, std::vector<int32_t>{INT32_MIN, -1, 0, static_cast<int32_t>(rows) + 1, INT32_MAX});
}

/// Tries random products in calls with these values of N and F.
void try_products(std::string (*text_of)(std::mt19937& random, const char* tokens),
                  const char* tokens, const std::vector<std::vector<int64_t>>& symbol_values) {
  std::mt19937 random(static_cast<uint32_t>(number_from("SINTER_SEED", 7)));
  Trials trials;
  trials.played = {.mma = true, .wgmma = true};
  trials.special_values = false;
  trials.every_order = false;
  for (int i = 0; i < number_from("SINTER_TRIES", 3); ++i) {
    DeviceDescription device = *find_device("sm_90a");
    device.multiprocessors = between(random, 1, 5);
    const std::string text = text_of(random, tokens);
    CAPTURE(text);
    trials.add({"runs", 1, text.c_str()}, random() % 2 == 0 ? DType::f16 : DType::bf16, 0, device);
  }
  run_trials(trials, symbol_values,
             [&](const Kernel& kernel, llvm::ArrayRef<int64_t>, std::vector<HostTensor>& inputs) {
               const Op& op = *llvm::find_if(kernel.group.ops(), [](const Op& one) {
                 return one.kind == OpKind::grouped_linear || one.kind == OpKind::grouped_outer;
               });
               draw_runs(random, op, inputs);
             });
}

}  // namespace

TEST_CASE("runs of many tokens") {
  std::vector<std::vector<int64_t>> values;
  for (const int64_t tokens : {0, 1, 65, 333, 700}) values.push_back({tokens});
  try_products(text_of, "N", values);
}

TEST_CASE("runs of few tokens") {
  std::vector<std::vector<int64_t>> values;
  for (const int64_t tokens : {0, 1, 63, 65, 256}) values.push_back({0, 0, 0, 0, 0, tokens});
  try_products(text_of, "F", values);
}

TEST_CASE("runs by transposed matrices") {
  std::vector<std::vector<int64_t>> values;
  for (const int64_t tokens : {0, 1, 65, 333}) values.push_back({tokens});
  try_products(transposed_text_of, "N", values);
  values.clear();
  for (const int64_t tokens : {0, 1, 63, 256}) values.push_back({0, 0, 0, 0, 0, tokens});
  try_products(transposed_text_of, "F", values);
}

TEST_CASE("sums over runs") {
  std::vector<std::vector<int64_t>> values;
  for (const int64_t tokens : {0, 1, 63, 65, 200}) values.push_back({tokens});
  try_products(sums_text_of, "N", values);
}

}  // namespace sinter::grouped_products_test
