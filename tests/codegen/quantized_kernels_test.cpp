// Kernels of packed matrices compute what the host evaluator computes, bit for bit, for any number
// of tokens: products with and without neighbours, and dequantize.
#include <doctest/doctest.h>

#include <deque>

#include "codegen/kernel_trials.h"
#include "codegen/small_integers.h"
#include "support/nvrtc.h"
#include "support/packed_weights.h"

namespace sinter::quantized_kernels_test {
namespace {

const std::vector<std::vector<int64_t>> kTokens = {
    {0, 0, 0, 0, 1}, {0, 0, 0, 0, 2}, {0, 0, 0, 0, 5}, {0, 0, 0, 0, 8}, {0, 0, 0, 0, 0}};

/// MATRIX: a packed one of WIDTH codes a row; ROWS: its rows.
constexpr const char* kProducts[] = {
    R"(
graph(%x: DTYPE[B, WIDTH], %w: MATRIX) -> (%y) {
  %y = quantized_linear %x, %w {splits = 1, CODES} : DTYPE[B, ROWS]
})",
    R"(
graph(%x: DTYPE[B, WIDTH], %n: DTYPE[WIDTH], %w: MATRIX, %b: DTYPE[ROWS], %r: DTYPE[B, ROWS]) -> (%y) {
  %h = rms_norm %x, %n {eps = 1e-5} : DTYPE[B, WIDTH]
  %p = quantized_linear %h, %w, %b {splits = 2, CODES} : DTYPE[B, ROWS]
  %y = add %p, %r : DTYPE[B, ROWS]
})",
    R"(
graph(%x: DTYPE[B, WIDTH], %w: MATRIX) -> (%y) {
  %p = quantized_linear %x, %w {splits = 4, CODES} : DTYPE[B, ROWS]
  %g = slice %p {axis = 1, begin = 0, size = HALFROWS} : DTYPE[B, HALFROWS]
  %u = slice %p {axis = 1, begin = HALFROWS, size = HALFROWS} : DTYPE[B, HALFROWS]
  %a = silu %g : DTYPE[B, HALFROWS]
  %y = mul %a, %u : DTYPE[B, HALFROWS]
})"};
/// Products of any number of tokens; the last one needs pairs of rows.
constexpr const char* kManyTokens[] = {
    R"(
graph(%x: DTYPE[N, WIDTH], %w: MATRIX) -> (%y) {
  %y = quantized_linear %x, %w {CODES, order = tiled_codes} : DTYPE[N, ROWS]
})",
    R"(
graph(%x: DTYPE[160, WIDTH], %w: MATRIX, %b: DTYPE[ROWS], %r: DTYPE[160, ROWS]) -> (%y) {
  %p = quantized_linear %x, %w, %b {CODES, order = tiled_codes} : DTYPE[160, ROWS]
  %y = add %p, %r : DTYPE[160, ROWS]
})",
    R"(
graph(%x: DTYPE[N, WIDTH], %w: MATRIX) -> (%y) {
  %p = quantized_linear %x, %w {CODES, order = tiled_codes} : DTYPE[N, ROWS]
  %g = slice %p {axis = 1, begin = 0, size = HALFROWS} : DTYPE[N, HALFROWS]
  %u = slice %p {axis = 1, begin = HALFROWS, size = HALFROWS} : DTYPE[N, HALFROWS]
  %a = silu %g : DTYPE[N, HALFROWS]
  %y = mul %a, %u : DTYPE[N, HALFROWS]
})"};
const std::vector<std::vector<int64_t>> kManyCalls = {{9}, {150}};

constexpr const char* kMatrix = R"(
graph(%w: MATRIX) -> (%y) {
  %y = dequantize %w {CODES} : f32[ROWS, WIDTH]
})";

constexpr const char* kMatrixWithReaders = R"(
graph(%w: MATRIX, %b: f32[WIDTH]) -> (%y, %z) {
  %d = dequantize %w {CODES} : f32[ROWS, WIDTH]
  %y = cast %d : bf16[ROWS, WIDTH]
  %z = add %d, %b : f32[ROWS, WIDTH]
})";

DeviceDescription device_of(const char* arch, int64_t multiprocessors) {
  DeviceDescription device = *find_device(arch);
  device.multiprocessors = multiprocessors;
  return device;
}

std::string replaced(std::string text, std::string_view marker, const std::string& with) {
  for (size_t at = text.find(marker); at != std::string::npos;
       at = text.find(marker, at + with.size()))
    text.replace(at, marker.size(), with);
  return text;
}

class QuantizedTrials {
 public:
  Trials trials;

  void add(const char* text, const CodeFormat& format, int64_t rows, int64_t width, DType dtype,
           const DeviceDescription& device) {
    std::string& filled = texts_.emplace_back(text);
    filled = replaced(filled, "MATRIX", fmt::format("i32[{}, {}]", rows, row_words(format, width)));
    filled = replaced(filled, "CODES",
                      fmt::format("size = {}, codes = \"{}\"", width, to_string(format)));
    filled = replaced(filled, "HALFROWS", std::to_string(rows / 2));
    filled = replaced(filled, "ROWS", std::to_string(rows));
    std::string& name = texts_.emplace_back(to_string(format));
    trials.add({name.c_str(), 1, filled.c_str()}, dtype, width, device);
  }
  /// The matrix of each kernel holds codes and scales. few_digits: other inputs are -2 .. 2.
  void run(llvm::ArrayRef<std::vector<int64_t>> tokens,
           test::Numbers numbers = test::Numbers::many_digits) {
    run_trials(
        trials, tokens,
        [numbers](const Kernel& kernel, llvm::ArrayRef<int64_t>, std::vector<HostTensor>& inputs) {
          if (numbers == test::Numbers::few_digits)
            for (HostTensor& tensor : inputs) make_small_integers(tensor);
          for (const Op& op : kernel.group.ops()) {
            if (op.kind != OpKind::quantized_linear && op.kind != OpKind::dequantize) continue;
            const size_t operand = op.kind == OpKind::dequantize ? 0 : 1;
            HostTensor& matrix = inputs[*input_of(kernel.group, op.operands[operand])];
            matrix = test::random_codes(code_format(op.attrs), matrix.dims[0],
                                        op.attrs.get<Dim>(AttrName::size).constant(),
                                        static_cast<uint64_t>(matrix.dims[1]), numbers)
                         .packed();
          }
        });
  }

 private:
  std::deque<std::string> texts_;
};

}  // namespace

TEST_CASE("products of packed rows, of every format") {
  QuantizedTrials all;
  all.trials.every_order = false;
  constexpr int64_t kWidths[] = {264, 2056, 1024};
  size_t turn = 0;
  SUBCASE("through pipelines") {
    all.trials.played = {.fp8_conversion = true, .bulk_copy = true};
    for (const CodeFormat& format : test::code_formats())
      for (int kernel = 0; kernel < 2; ++kernel, ++turn)
        all.add(kProducts[turn % 3], format, 22, kWidths[turn / 2 % 3],
                kFloats[(turn + turn / 3) % 3], device_of("sm_90a", 3));
  }
  SUBCASE("from memory") {
    for (const CodeFormat& format : test::code_formats()) {
      all.add(kProducts[turn % 3], format, 22, kWidths[(turn / 3) % 3], kFloats[turn / 2 % 3],
              device_of("sm_80", 3));
      ++turn;
    }
  }
  all.run({kTokens[0], kTokens[2], kTokens[4]});
}

TEST_CASE("rows of one chunk and of many steps") {
  QuantizedTrials all;
  all.trials.played = {.bulk_copy = true};
  all.trials.every_order = false;
  size_t turn = 0;
  for (const CodeFormat& format : test::code_formats()) {
    all.add(kProducts[turn % 3], format, 6, turn % 2 == 0 ? 5000 : 8, kFloats[turn % 2 + 1],
            device_of("sm_90a", 2));
    ++turn;
  }
  all.run({kTokens[0], kTokens[2]});
}

// Sums of small integers are exact in every order: what tensor cores add must be what the evaluator
// adds.
TEST_CASE("tiles of several tokens have every product once") {
  QuantizedTrials all;
  all.trials.played = {.mma = true, .fp8_conversion = true, .bulk_copy = true};
  all.trials.every_order = all.trials.special_values = false;
  size_t turn = 0;
  for (const CodeFormat& format : test::code_formats()) {
    const DType dtype = kFloats[turn % 2 + 1];
    const DeviceDescription device = device_of("sm_90a", 1 + static_cast<int64_t>(turn / 2 % 2));
    const char* product = kProducts[turn / 2 % 2 * 2];
    all.add(product, format, turn % 3 == 0 ? 22 : 70, turn % 3 == 1 ? 2056 : 5000, dtype, device);
    if (turn % 3 == 0) all.add(product, format, 70, 8, dtype, device);
    ++turn;
  }
  all.run({kTokens[1], kTokens[3]}, test::Numbers::few_digits);
}

// Tiles of every size: the device's multiprocessors and the tokens decide them.
TEST_CASE("products of many tokens") {
  QuantizedTrials all;
  all.trials.played = {.mma = true, .fp8_conversion = true, .bulk_copy = true, .wgmma = true};
  all.trials.every_order = all.trials.special_values = false;
  size_t turn = 0;
  for (const CodeFormat& format : test::code_formats()) {
    // Rows of whole steps, and of some formats rows that end inside of their first step; one block,
    // and several.
    constexpr int64_t kShort[] = {8, 264, 72}, kLong[] = {2056, 1096, 1024};
    constexpr int64_t kRows[] = {70, 22, 32};
    const DType dtype = kFloats[turn % 2 + 1];
    const size_t third = turn / 3 % 3;
    const DeviceDescription device = device_of("sm_90a", 1 + static_cast<int64_t>(turn / 2 % 3));
    all.add(kManyTokens[turn % 3], format, 192, kLong[third], dtype, device);
    if (turn % 3 == 0)
      all.add(kManyTokens[third], format, kRows[third], kShort[third], dtype, device);
    ++turn;
  }
  all.run({kManyCalls[0], kManyCalls[1]});
}

TEST_CASE("packed matrices are dequantized") {
  QuantizedTrials all;
  size_t turn = 0;
  for (const CodeFormat& format : test::code_formats())
    for (int64_t width : {turn % 2 == 0 ? 1 : 1024, turn % 3 == 0 ? 7 : 264, 1290}) {
      all.add(turn % 2 == 0 ? kMatrix : kMatrixWithReaders, format, 5, width, DType::f32,
              device_of("sm_90a", 3));
      ++turn;
    }
  all.run({kTokens[0]});
}

TEST_CASE("kernels of packed matrices compile" * doctest::test_suite("nvrtc")) {
  const NvrtcFile* nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  for (const char* arch : {"sm_80", "sm_90a"}) {
    QuantizedTrials all;
    size_t turn = 0;
    for (const CodeFormat& format : test::code_formats()) {
      all.add(kProducts[turn % 3], format, 22, 2056, kFloats[turn % 3], *find_device(arch));
      all.add(kMatrixWithReaders, format, 5, 264, DType::f32, *find_device(arch));
      if (arch == std::string_view("sm_90a") && turn % 3 == 0)
        all.add(kManyTokens[turn / 3 % 3], format, 4096, 2056, kFloats[turn % 2 + 1],
                *find_device(arch));
      ++turn;
    }
    std::vector<KernelSource> sources;
    for (const Kernel& kernel : all.trials.kernels) sources.push_back({kernel.name, kernel.source});
    const Status compiled = compile_or_find(*nvrtc, sources, arch);
    CHECK_MESSAGE(compiled.has_value(), (compiled ? "" : compiled.error().what));
  }
}

}  // namespace sinter::quantized_kernels_test
