// Quantized weights of files in one form: each layout is packed here field by field, as its
// definition in scheme.h says it, and read back.
#include "frontends/quantized/code_tensors.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "frontends/files/shards.h"
#include "frontends/small_files.h"
#include "ir/packed_codes.h"
#include "ir/sym_expr.h"

namespace sinter::code_tensors_test {
namespace {

using Values = std::vector<int32_t>;

/// Fields of `bits` in words of 32: a matrix that is packed along one of its axes.
class Packed {
 public:
  Packed(int64_t rows, int64_t columns, int bits, bool along_rows)
      : bits_(bits), along_rows_(along_rows) {
    const int64_t length = along_rows ? rows : columns;
    const int64_t words = (length * bits + 31) / 32;
    dims = along_rows ? std::vector<int64_t>{words, columns} : std::vector<int64_t>{rows, words};
    this->words.resize(static_cast<size_t>(dims[0] * dims[1]));
  }
  void put(int64_t row, int64_t column, int32_t field) {
    const int64_t bit = (along_rows_ ? row : column) * bits_;
    const int64_t at = along_rows_ ? bit / 32 * dims[1] + column : row * dims[1] + bit / 32;
    words[static_cast<size_t>(at)] |= static_cast<uint32_t>(field) << bit % 32;
  }
  std::vector<int64_t> dims;
  std::vector<uint32_t> words;

 private:
  int bits_;
  bool along_rows_;
};

/// A weight that is drawn, and the tensors of its layout.
struct Drawn {
  WeightScheme scheme;
  int64_t out = 0, in = 0;
  std::vector<int32_t> group_of;  // of each input
  Values codes;                   // [out, in], of the layout's own sign
  Values zeros;                   // [out, groups]
  std::vector<float> scales;      // [out, groups]
  int64_t groups = 0;

  int32_t code(int64_t o, int64_t i) const { return codes[static_cast<size_t>(o * in + i)]; }
  int32_t zero(int64_t o, int64_t g) const { return zeros[static_cast<size_t>(o * groups + g)]; }
};

Drawn draw(const WeightScheme& scheme, int64_t out, int64_t in, bool shuffled, unsigned seed) {
  std::mt19937 random(seed);
  Drawn drawn{scheme, out, in, {}, {}, {}, {}, 0};
  const int64_t size = scheme.strategy == ScaleStrategy::group   ? scheme.group
                       : scheme.strategy == ScaleStrategy::block ? kScaleBlock
                                                                 : in;
  drawn.groups = (in + size - 1) / size;
  for (int64_t i = 0; i < in; ++i) drawn.group_of.push_back(static_cast<int32_t>(i / size));
  if (shuffled) std::shuffle(drawn.group_of.begin(), drawn.group_of.end(), random);
  const int32_t half = 1 << (scheme.bits - 1);
  const bool has_sign = scheme.layout != WeightLayout::gptq && scheme.layout != WeightLayout::awq;
  const int32_t least = has_sign ? -half : 0;
  for (int64_t i = 0; i < out * in; ++i)
    drawn.codes.push_back(least +
                          static_cast<int32_t>(random() % (2u * static_cast<unsigned>(half))));
  for (int64_t o = 0; o < out; ++o)
    for (int64_t g = 0; g < drawn.groups; ++g) {
      const bool first = o == 0 || scheme.strategy == ScaleStrategy::channel ||
                         scheme.strategy == ScaleStrategy::group ||
                         (scheme.strategy == ScaleStrategy::block && o % kScaleBlock == 0);
      const auto above = static_cast<size_t>((o - 1) * drawn.groups + g);
      drawn.scales.push_back(first ? 0.25f * static_cast<float>(1 + random() % 1000)
                                   : drawn.scales[above]);
      int32_t zero = least + static_cast<int32_t>(random() % (2u * static_cast<unsigned>(half)));
      if (scheme.symmetric) zero = has_sign ? 0 : half;
      if (scheme.layout == WeightLayout::gptq && scheme.zeros_less_one && !scheme.symmetric) ++zero;
      drawn.zeros.push_back(first ? zero : drawn.zeros[above]);
    }
  return drawn;
}

/// Writes the tensors of module "p".
class Files {
 public:
  template <typename T>
  void add(const std::string& name, FileDType dtype, std::vector<int64_t> dims,
           const std::vector<T>& values) {
    bytes_.emplace_back(values.size() * sizeof(T));
    if (!values.empty()) std::memcpy(bytes_.back().data(), values.data(), bytes_.back().size());
    tensors_.push_back({"p." + name, dtype, std::move(dims), {}});
  }
  void add(const std::string& name, const Packed& packed) {
    add(name, FileDType::I32, packed.dims, packed.words);
  }
  std::shared_ptr<const FileTensors> open() {
    for (size_t i = 0; i < tensors_.size(); ++i) tensors_[i].bytes = bytes_[i];
    REQUIRE(write_safetensors(folder_.path("model.safetensors"), tensors_));
    auto files = open_weights(folder_.path());
    REQUIRE(files);
    return std::move(*files);
  }

 private:
  ScratchFolder folder_;
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<NamedTensor> tensors_;
};

/// zeros_stored: of GPTQ, what is subtracted from a zero point when it is stored.
void add_tensors(Files& files, const Drawn& w, int32_t zeros_stored) {
  const WeightScheme& scheme = w.scheme;
  const bool input_major =
      scheme.layout == WeightLayout::gptq || scheme.layout == WeightLayout::awq;
  constexpr int64_t kAwq[] = {0, 4, 1, 5, 2, 6, 3, 7};  // the field of a column
  const auto awq = [&](int64_t o) {
    return scheme.layout == WeightLayout::awq ? o / 8 * 8 + kAwq[o % 8] : o;
  };
  std::vector<float> scales;
  if (scheme.strategy == ScaleStrategy::tensor) scales = {w.scales[0]};
  if (scheme.strategy == ScaleStrategy::block)
    for (int64_t o = 0; o < w.out; o += kScaleBlock)
      scales.insert(scales.end(), w.scales.begin() + o * w.groups,
                    w.scales.begin() + (o + 1) * w.groups);
  if (scales.empty() && !input_major) scales = w.scales;
  if (input_major)
    for (int64_t g = 0; g < w.groups; ++g)
      for (int64_t o = 0; o < w.out; ++o)
        scales.push_back(w.scales[static_cast<size_t>(o * w.groups + g)]);
  const auto scale_count = static_cast<int64_t>(scales.size());
  std::vector<int64_t> scale_dims =
      input_major                                ? std::vector{w.groups, w.out}
      : scheme.strategy == ScaleStrategy::tensor ? std::vector{int64_t{1}}
      : scheme.strategy == ScaleStrategy::block  ? std::vector{scale_count / w.groups, w.groups}
                                                 : std::vector{w.out, w.groups};
  if (input_major) {
    Packed codes(w.in, w.out, scheme.bits, scheme.layout == WeightLayout::gptq);
    Packed zeros(w.groups, w.out, scheme.bits, false);
    for (int64_t o = 0; o < w.out; ++o) {
      for (int64_t i = 0; i < w.in; ++i) codes.put(i, awq(o), w.code(o, i));
      for (int64_t g = 0; g < w.groups; ++g) zeros.put(g, awq(o), w.zero(o, g) - zeros_stored);
    }
    files.add("qweight", codes);
    files.add("qzeros", zeros);
    files.add("scales", FileDType::F32, scale_dims, scales);
    if (scheme.layout == WeightLayout::gptq) files.add("g_idx", FileDType::I32, {w.in}, w.group_of);
  } else if (scheme.layout == WeightLayout::packed) {
    const int32_t half = 1 << (scheme.bits - 1);
    Packed codes(w.out, w.in, scheme.bits, false);
    Packed zeros(w.out, w.groups, scheme.bits, true);
    for (int64_t o = 0; o < w.out; ++o) {
      for (int64_t i = 0; i < w.in; ++i) codes.put(o, i, w.code(o, i) + half);
      for (int64_t g = 0; g < w.groups; ++g) zeros.put(o, g, w.zero(o, g) + half);
    }
    files.add("weight_packed", codes);
    files.add("weight_shape", FileDType::I64, {2}, std::vector<int64_t>{w.out, w.in});
    files.add("weight_scale", FileDType::F32, scale_dims, scales);
    if (!scheme.symmetric) files.add("weight_zero_point", zeros);
    if (scheme.act_order) files.add("weight_g_idx", FileDType::I32, {w.in}, w.group_of);
  } else {
    files.add("weight", scheme.is_float ? FileDType::F8_E4M3 : FileDType::I8, {w.out, w.in},
              std::vector<int8_t>(w.codes.begin(), w.codes.end()));
    files.add(scheme.layout == WeightLayout::inverse ? "weight_scale_inv" : "weight_scale",
              FileDType::F32, scale_dims, scales);
    if (!scheme.symmetric)
      files.add("weight_zero_point", FileDType::I8, scale_dims,
                std::vector<int8_t>(w.zeros.begin(), w.zeros.begin() + scale_count));
  }
}

Quantization quantization_of(const WeightScheme& scheme) {
  Quantization quantization;
  quantization.groups.push_back({scheme, ModuleNames::linears()});
  return quantization;
}

template <typename T>
std::vector<T> read_values(const TensorSource& source, const std::string& name) {
  const auto type = source.find(name);
  REQUIRE_MESSAGE(type, name);
  std::vector<T> values(static_cast<size_t>(storage_bytes(*type).upper_bound({})) / sizeof(T));
  const Status read = source.read(name, std::as_writable_bytes(std::span(values)));
  REQUIRE_MESSAGE(read, (read ? "" : read.error().message()));
  return values;
}

/// The weights are the drawn weights: scale * (code - zero) is the same in the layout and the form.
void check_read(const Drawn& w, const CodeTensors& tensors) {
  const CodedTensor& weight = tensors.weights().at("p.weight");
  std::vector<std::string> names{"p.weight.codes", "p.weight.scales"};
  if (!weight.order.empty()) names.insert(names.begin() + 1, "p.weight.order");
  if (weight.has_zeros()) names.emplace_back("p.weight.zeros");
  CHECK(tensors.names() == names);
  CHECK(weight.out == w.out);
  CHECK(weight.in == w.in);
  const auto codes = read_values<uint32_t>(tensors, "p.weight.codes");
  const auto scales = read_values<float>(tensors, "p.weight.scales");
  Values zeros(scales.size()), order;
  if (weight.has_zeros()) zeros = read_values<int32_t>(tensors, "p.weight.zeros");
  if (!weight.order.empty()) order = read_values<int32_t>(tensors, weight.order);
  const int bits = weight.scheme.bits;
  const int64_t size = weight.group() == 0 ? w.in : weight.group();
  int64_t wrong = 0;
  for (int64_t o = 0; o < w.out; ++o)
    for (int64_t i = 0; i < w.in; ++i) {
      const auto field = static_cast<int32_t>(
          codes[static_cast<size_t>(o * weight.words() + i * bits / 32)] >> i * bits % 32 &
          ((1u << bits) - 1));
      // The codes of ir/code_format.h: int8 and int4 where there are no zero points.
      int32_t code = weight.unsigned_codes() ? field
                     : bits == 8             ? static_cast<int8_t>(field)
                                             : field - 8;
      const auto at = static_cast<size_t>(o * weight.groups() + i / size);
      const int64_t input = order.empty() ? i : order[static_cast<size_t>(i)];
      const int32_t group = w.group_of[static_cast<size_t>(input)];
      wrong += code - zeros[at] !=
               (w.scheme.is_float ? w.code(o, input) : w.code(o, input) - w.zero(o, group));
      wrong += scales[at] != w.scales[static_cast<size_t>(o * w.groups + group)];
    }
  CHECK(wrong == 0);
}

void check_round_trip(const WeightScheme& scheme, int64_t out, int64_t in, bool shuffled = false) {
  CAPTURE(to_string(scheme));
  CAPTURE(out);
  CAPTURE(in);
  for (int32_t less = 0; less < (scheme.layout == WeightLayout::gptq ? 2 : 1); ++less) {
    WeightScheme stored = scheme;
    stored.zeros_less_one = less != 0;
    // The zero points of symmetric weights say what they are, whatever the config says.
    for (const bool lie : {false, true}) {
      if (lie && !(scheme.symmetric && scheme.layout == WeightLayout::gptq)) continue;
      const Drawn drawn = draw(stored, out, in, shuffled, static_cast<unsigned>(out + 2 * in));
      Files files;
      add_tensors(files, drawn, less);
      stored.zeros_less_one = (less != 0) != lie;
      const auto tensors = CodeTensors::open(files.open(), quantization_of(stored));
      REQUIRE_MESSAGE(tensors, (tensors ? "" : tensors.error().message()));
      check_read(drawn, **tensors);
    }
  }
}

constexpr auto kGroup = ScaleStrategy::group;
constexpr auto kChannel = ScaleStrategy::channel;

TEST_CASE("GPTQ") {
  for (const int bits : {4, 8})
    for (const bool symmetric : {true, false}) {
      WeightScheme scheme{.layout = WeightLayout::gptq,
                          .bits = bits,
                          .strategy = kGroup,
                          .group = 32,
                          .symmetric = symmetric};
      check_round_trip(scheme, 24, 40);
      check_round_trip(scheme, 8, 200);
      check_round_trip(scheme, 24, 40, true);
      scheme.group = 256;
      check_round_trip(scheme, 8, 600);
      scheme.strategy = kChannel;
      check_round_trip(scheme, 16, 72);
    }
}

TEST_CASE("AWQ") {
  WeightScheme scheme{
      .layout = WeightLayout::awq, .bits = 4, .strategy = kGroup, .group = 32, .symmetric = false};
  check_round_trip(scheme, 24, 40);
  check_round_trip(scheme, 8, 37);
  scheme.strategy = kChannel;
  check_round_trip(scheme, 16, 64);
}

TEST_CASE("compressed-tensors: packed") {
  for (const int bits : {4, 8})
    for (const bool symmetric : {true, false}) {
      WeightScheme scheme{.layout = WeightLayout::packed,
                          .bits = bits,
                          .strategy = kGroup,
                          .group = 16,
                          .symmetric = symmetric};
      check_round_trip(scheme, 7, 37);
      check_round_trip(scheme, 33, 64);
      scheme.act_order = true;
      check_round_trip(scheme, 7, 37, true);
      scheme.strategy = kChannel;
      scheme.act_order = false;
      check_round_trip(scheme, 5, 11);
    }
}

TEST_CASE("compressed-tensors and fp8: plain bytes") {
  for (const bool symmetric : {true, false})
    for (const ScaleStrategy strategy : {kChannel, ScaleStrategy::tensor})
      check_round_trip({.strategy = strategy, .symmetric = symmetric}, 7, 37);
  for (const WeightLayout layout : {WeightLayout::plain, WeightLayout::inverse})
    check_round_trip({.layout = layout, .is_float = true, .strategy = ScaleStrategy::block}, 130,
                     300);
  check_round_trip({.is_float = true, .strategy = ScaleStrategy::tensor}, 3, 5);
}

constexpr WeightScheme kNvfp4{
    .layout = WeightLayout::pairs, .bits = 4, .is_float = true, .strategy = kGroup, .group = 16};
constexpr WeightScheme kMxfp4{.layout = WeightLayout::pairs,
                              .bits = 4,
                              .is_float = true,
                              .strategy = kGroup,
                              .group = 32,
                              .exponents = true};

TEST_CASE("FP4: codes in pairs, scales of a byte and their factor") {
  WeightScheme modelopt = kNvfp4;
  modelopt.layout = WeightLayout::modelopt;
  std::vector<uint8_t> codes(3 * 20), bytes(3 * 3);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(37 * i + 11);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(0x30 + 5 * i);
  for (const WeightScheme& scheme : {kNvfp4, modelopt}) {
    const bool divides = scheme.layout == WeightLayout::pairs;
    Files files;
    files.add(divides ? "weight_packed" : "weight", FileDType::U8, {3, 20}, codes);
    files.add("weight_scale", FileDType::F8_E4M3, {3, 3}, bytes);
    files.add(divides ? "weight_global_scale" : "weight_scale_2", FileDType::F32,
              divides ? std::vector<int64_t>{1} : std::vector<int64_t>{}, std::vector<float>{0.3f});
    files.add("input_scale", FileDType::F32, {1}, std::vector<float>{1});
    const auto tensors = CodeTensors::open(files.open(), quantization_of(scheme));
    REQUIRE_MESSAGE(tensors, (tensors ? "" : tensors.error().message()));
    CHECK((*tensors)->names() == std::vector<std::string>{"p.weight.codes", "p.weight.scales"});
    const CodedTensor& weight = (*tensors)->weights().at("p.weight");
    CHECK(weight.in == 40);
    CHECK(weight.format() == "e2m1 g16 f32");
    const auto words = read_values<uint32_t>(**tensors, "p.weight.codes");
    REQUIRE(words.size() == 3 * 5);
    for (size_t o = 0; o < 3; ++o)
      for (size_t i = 0; i < 40; ++i)
        CHECK((words[5 * o + i / 8] >> i % 8 * 4 & 15) ==
              (codes[20 * o + i / 2] >> i % 2 * 4 & 15u));
    const auto scales = read_values<float>(**tensors, "p.weight.scales");
    for (size_t i = 0; i < bytes.size(); ++i) {
      const float part = codes::e4m3::value(bytes[i], 0);
      CHECK(scales[i] == (divides ? part / 0.3f : part * 0.3f));
    }
  }
}

TEST_CASE("MXFP4: scales are powers of two, all of which a bf16 has") {
  std::vector<uint8_t> bytes(256);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
  for (FileDType dtype : {FileDType::U8, FileDType::F8_E8M0}) {
    Files files;
    files.add("weight_packed", FileDType::U8, {128, 32}, std::vector<uint8_t>(128 * 32));
    files.add("weight_scale", dtype, {128, 2}, bytes);
    const auto tensors = CodeTensors::open(files.open(), quantization_of(kMxfp4));
    REQUIRE_MESSAGE(tensors, (tensors ? "" : tensors.error().message()));
    CHECK((*tensors)->weights().at("p.weight").format() == "e2m1 g32 bf16");
    const auto scales = read_values<uint16_t>(**tensors, "p.weight.scales");
    REQUIRE(scales.size() == 256);
    for (int i = 0; i < 255; ++i)
      CHECK(math::bf16_to_float(scales[static_cast<size_t>(i)]) == std::ldexp(1.0f, i - 127));
    CHECK(std::isnan(math::bf16_to_float(scales[255])));
  }
}

TEST_CASE("formats of ops") {
  CodedTensor weight{4,
                     300,
                     {.layout = WeightLayout::awq,
                      .bits = 4,
                      .strategy = kGroup,
                      .group = 256,
                      .symmetric = false}};
  CHECK(weight.format() == "uint4 g128 f16 zeros");
  CHECK(weight.groups() == 3);
  weight.scheme = {.is_float = true, .strategy = ScaleStrategy::block};
  weight.scale = DType::f32;
  CHECK(weight.format() == "e4m3 g128 f32");
  weight.scheme = {.symmetric = false};
  CHECK(weight.format() == "int8 row f32 zeros");
  weight.scheme = {.layout = WeightLayout::packed, .strategy = kGroup, .group = 32};
  CHECK(weight.format() == "int8 g32 f32");
}

TEST_CASE("weights with the same order of inputs share it") {
  const WeightScheme scheme{
      .layout = WeightLayout::gptq, .bits = 4, .strategy = kGroup, .group = 16};
  const Drawn drawn = draw(scheme, 8, 40, true, 3);
  Files files;
  add_tensors(files, drawn, 0);
  Packed codes(40, 8, 4, true), zeros(3, 8, 4, false);
  for (int64_t o = 0; o < 8; ++o)
    for (int64_t g = 0; g < 3; ++g) zeros.put(g, o, 8);
  files.add("k.qweight", codes);
  files.add("k.qzeros", zeros);
  files.add("k.scales", FileDType::F32, {3, 8}, std::vector<float>(24, 1.0f));
  files.add("k.g_idx", FileDType::I32, {40}, drawn.group_of);
  const auto tensors = CodeTensors::open(files.open(), quantization_of(scheme));
  REQUIRE(tensors);
  CHECK((*tensors)->weights().at("p.weight").order == "p.k.weight.order");
  CHECK((*tensors)->weights().at("p.k.weight").order == "p.k.weight.order");
  CHECK((*tensors)->find("p.weight.order") == std::nullopt);
  CHECK((*tensors)->find("p.qweight") == std::nullopt);
}

void refuses(Files& files, const WeightScheme& scheme,
             std::initializer_list<std::string_view> parts) {
  check_error(CodeTensors::open(files.open(), quantization_of(scheme)), parts);
}

TEST_CASE("files that do not fit their config are refused") {
  const WeightScheme gptq{.layout = WeightLayout::gptq, .bits = 4, .strategy = kGroup, .group = 32};
  const WeightScheme packed{
      .layout = WeightLayout::packed, .bits = 4, .strategy = kGroup, .group = 32};
  const Drawn of_gptq = draw(gptq, 8, 64, false, 1), of_packed = draw(packed, 8, 64, false, 1);
  const auto files_of = [](Files& files, const Drawn& drawn) -> Files& {
    add_tensors(files, drawn, 0);
    return files;
  };
  SUBCASE("a group of another size") {
    Files files;
    WeightScheme other = gptq;
    other.group = 16;
    refuses(files_of(files, of_gptq), other,
            {"model.safetensors", "p.scales", "F32[2, 8]", "F32[4, 8]", "groups of 16"});
  }
  SUBCASE("a layout of another method") {
    Files files;
    refuses(files_of(files, of_packed), gptq, {"p.weight_packed", "p.qweight"});
  }
  SUBCASE("codes of 8 bits") {
    Files files;
    WeightScheme other = packed;
    other.bits = 8;
    refuses(files_of(files, of_packed), other, {"p.weight_packed", "I32[8, 8]", "I32[8, 16]"});
  }
  SUBCASE("no zero points") {
    Files files;
    WeightScheme other = packed;
    other.symmetric = false;
    refuses(files_of(files, of_packed), other, {"no tensor named", "p.weight_zero_point"});
  }
  SUBCASE("no scales") {
    Files files;
    files.add("weight", FileDType::I8, {2, 2}, std::vector<int8_t>(4));
    refuses(files, {}, {"no tensor named", "p.weight_scale"});
  }
  SUBCASE("codes of another type") {
    Files files;
    files.add("weight", FileDType::I8, {2, 2}, std::vector<int8_t>(4));
    refuses(files, {.is_float = true}, {"p.weight", "I8[2, 2]", "F8_E4M3"});
  }
  SUBCASE("a shape that lies") {
    Files files;
    files.add("weight_packed", FileDType::I32, {2, 1}, std::vector<int32_t>(2));
    files.add("weight_scale", FileDType::F32, {2, 1}, std::vector<float>(2));
    files.add("weight_shape", FileDType::I64, {2}, std::vector<int64_t>{2, int64_t{1} << 62});
    refuses(files, packed, {"p.weight_shape", "4611686018427387904"});
  }
  SUBCASE("a factor of scales that is missing, and one that is no positive number") {
    for (const float factor :
         {-1.0f, 0.0f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
      Files files;
      files.add("weight_packed", FileDType::U8, {1, 8}, std::vector<uint8_t>(8));
      files.add("weight_scale", FileDType::F8_E4M3, {1, 1}, std::vector<uint8_t>(1));
      if (factor != -1) {
        files.add("weight_global_scale", FileDType::F32, {1}, std::vector<float>{factor});
        refuses(files, kNvfp4, {"p.weight_global_scale", "a positive number"});
      } else {
        refuses(files, kNvfp4, {"no tensor named", "p.weight_global_scale"});
      }
    }
  }
  SUBCASE("scales of another type than the format's") {
    Files files;
    files.add("weight_packed", FileDType::U8, {1, 16}, std::vector<uint8_t>(16));
    files.add("weight_scale", FileDType::F8_E4M3, {1, 1}, std::vector<uint8_t>(1));
    refuses(files, kMxfp4, {"p.weight_scale", "F8_E4M3[1, 1]", "U8 or F8_E8M0"});
  }
  SUBCASE("codes without axes") {
    Files files;
    files.add("weight", FileDType::I8, {}, std::vector<int8_t>(1));
    files.add("weight_scale", FileDType::F32, {1}, std::vector<float>(1));
    refuses(files, {}, {"p.weight", "two axes"});
  }
  SUBCASE("matrices of experts with scales of one matrix, a shape of one, zero points") {
    const WeightScheme scheme{.layout = WeightLayout::packed, .bits = 8};
    Files scales, shape, zeros;
    for (Files* files : {&scales, &shape, &zeros}) {
      files->add("weight_packed", FileDType::I32, {2, 3, 1}, std::vector<int32_t>(6));
      files->add("weight_scale", FileDType::F32, {6, 1}, std::vector<float>(6));
    }
    scales.add("weight_shape", FileDType::I64, {3}, std::vector<int64_t>{2, 3, 4});
    refuses(scales, scheme, {"p.weight_scale", "F32[6, 1]", "F32[2, 3, 1]"});
    shape.add("weight_shape", FileDType::I64, {2}, std::vector<int64_t>{6, 4});
    refuses(shape, scheme, {"p.weight_shape", "I64[2]", "I64[3]"});
    WeightScheme other = scheme;
    other.symmetric = false;
    refuses(zeros, other, {"p.weight_packed", "two axes"});
  }
  SUBCASE("groups of inputs of unequal sizes") {
    Drawn drawn = of_gptq;
    drawn.group_of[0] = 1;
    Files files;
    refuses(files_of(files, drawn), gptq, {"p.g_idx", "32 inputs in each group"});
  }
  SUBCASE("groups of inputs are missing") {
    Files files;
    WeightScheme other = packed;
    other.act_order = true;
    refuses(files_of(files, of_packed), other, {"no tensor named", "p.weight_g_idx"});
  }
  SUBCASE("codes that no group of the config has") {
    Files files;
    files_of(files, of_packed);
    Quantization none = quantization_of(packed);
    none.ignored.add_name("p");
    check_error(CodeTensors::open(files.open(), none),
                {"p.weight_packed", "the config does not quantize p"});
  }
}

TEST_CASE("symmetric GPTQ weights with uneven zero points are refused when they are read") {
  WeightScheme scheme{
      .layout = WeightLayout::gptq, .bits = 4, .strategy = kGroup, .group = 32, .symmetric = false};
  const Drawn drawn = draw(scheme, 8, 64, false, 1);
  Files files;
  add_tensors(files, drawn, 0);
  scheme.symmetric = true;
  const auto tensors = CodeTensors::open(files.open(), quantization_of(scheme));
  REQUIRE(tensors);
  std::vector<std::byte> codes(8 * 8 * 4);
  const Status read = (*tensors)->read("p.weight.codes", codes);
  REQUIRE_FALSE(read);
  check_message(read.error(), {"zero points of p are ", "all are 7 or all 8", "sym: false"});
}

}  // namespace
}  // namespace sinter::code_tensors_test
