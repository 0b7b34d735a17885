// Kernels of packed matrices compute what the host evaluator computes, bit for bit, for any number
// of tokens: products with and without neighbours, and dequantize.
#include <doctest/doctest.h>

#include <deque>

#include "codegen/kernel_trials.h"
#include "support/nvrtc.h"
#include "support/packed_weights.h"

namespace sinter {
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
  /// The matrix of each kernel holds codes and scales.
  void run(llvm::ArrayRef<std::vector<int64_t>> tokens) {
    run_trials(trials, tokens,
               [](const Kernel& kernel, llvm::ArrayRef<int64_t>, std::vector<HostTensor>& inputs) {
                 for (const Op& op : kernel.group.ops()) {
                   if (op.kind != OpKind::quantized_linear && op.kind != OpKind::dequantize)
                     continue;
                   const size_t operand = op.kind == OpKind::dequantize ? 0 : 1;
                   HostTensor& matrix = inputs[*input_of(kernel.group, op.operands[operand])];
                   matrix = test::random_codes(code_format(op.attrs), matrix.dims[0],
                                               op.attrs.get<Dim>(AttrName::size).constant(),
                                               static_cast<uint64_t>(matrix.dims[1]))
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
  const char* arch = "sm_90a";
  SUBCASE("through pipelines") { all.trials.played = {.bulk_copy = true}; }
  SUBCASE("from memory") { arch = "sm_80"; }
  all.trials.every_order = false;
  size_t turn = 0;
  for (const CodeFormat& format : test::code_formats())
    for (const char* text : kProducts)
      for (int64_t width : {264, 2056}) {
        all.add(text, format, 22, turn % 4 == 0 ? 1024 : width, kFloats[turn % 3],
                device_of(arch, 3));
        ++turn;
      }
  all.run(kTokens);
}

TEST_CASE("rows of one chunk and of many steps") {
  QuantizedTrials all;
  all.trials.played = {.bulk_copy = true};
  all.trials.every_order = false;
  size_t turn = 0;
  for (const CodeFormat& format : test::code_formats())
    for (int64_t width : {8, 5000}) {
      all.add(kProducts[turn % 3], format, 6, width, kFloats[turn % 2 + 1], device_of("sm_90a", 2));
      ++turn;
    }
  all.run({kTokens[0], kTokens[2]});
}

TEST_CASE("packed matrices are dequantized") {
  QuantizedTrials all;
  for (const CodeFormat& format : test::code_formats())
    for (int64_t width : {1, 7, 100, 264, 1024, 1290})
      for (const char* text : {kMatrix, kMatrixWithReaders})
        all.add(text, format, 5, width, DType::f32, device_of("sm_90a", 3));
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
      ++turn;
    }
    std::vector<KernelSource> sources;
    for (const Kernel& kernel : all.trials.kernels) sources.push_back({kernel.name, kernel.source});
    const Status compiled = compile_or_find(*nvrtc, sources, arch);
    CHECK_MESSAGE(compiled.has_value(), (compiled ? "" : compiled.error().what));
  }
}

}  // namespace sinter
