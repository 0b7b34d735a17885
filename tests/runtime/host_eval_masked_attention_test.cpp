// Attention of several sequences, with masks and ranges of any numbers, against a loop in float64:
// the three ops that compute it, and attention_softmax.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "runtime/eval_case.h"

namespace sinter::host_eval_masked_attention_test {
namespace {

constexpr int64_t kHeads = 4, kKvHeads = 2, kWidth = 8, kValueWidth = 6, kTokens = 3, kRows = 12;
constexpr double kScale = 0.5;

struct MaskedCase {
  std::vector<int64_t> batch;
  std::vector<int64_t> mask;  // its axes; empty: none
  DType mask_type = DType::i1;
  bool any_range = false, empty_zero = false;
  double softcap = 0;
  int64_t sink = 0;
};

/// The mask repeats along all leading axes or along none.
bool is_whole(const MaskedCase& c) {
  if (c.mask.empty()) return true;
  const llvm::ArrayRef<int64_t> leading = llvm::ArrayRef(c.mask).drop_back(3);
  return leading == llvm::ArrayRef(c.batch) ||
         llvm::all_of(leading, [](int64_t extent) { return extent == 1; });
}

int64_t product(llvm::ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t extent : dims) count *= extent;
  return count;
}

std::vector<int64_t> joined(std::vector<int64_t> a, std::initializer_list<int64_t> b) {
  a.insert(a.end(), b);
  return a;
}

std::string type_text(DType dtype, const std::vector<int64_t>& dims) {
  return fmt::format("{}[{}]", to_string(dtype), fmt::join(dims, ", "));
}

/// Every third key hidden; all keys of the second row; in the third all but one by the lowest
/// number.
HostTensor mask_of(const MaskedCase& c) {
  std::vector<double> values;
  const int64_t width = c.mask.back();
  for (int64_t i = 0; i < product(c.mask); ++i) {
    const int64_t row = i / width, key = i % width;
    const bool hidden = row % 4 == 1 || (row + key) % 3 == 0;
    const double lowest = c.mask_type == DType::f16 ? -65504 : -0x1.fep127;
    if (c.mask_type == DType::i1)
      values.push_back(hidden ? 0 : 1);
    else
      values.push_back(hidden ? -INFINITY : row % 4 == 2 && key != 4 ? lowest : 0.25 * (i % 7));
  }
  return tensor(c.mask_type, c.mask, values);
}

/// The place of a score in the mask, whose axes of extent 1 repeat.
int64_t mask_place(const MaskedCase& c, int64_t sequence, int64_t head, int64_t token,
                   int64_t key) {
  std::vector<int64_t> index = {head, token, key};
  for (size_t axis = c.batch.size(); axis-- > 0; sequence /= c.batch[axis])
    index.insert(index.begin(), sequence % c.batch[axis]);
  int64_t place = 0;
  for (size_t axis = 0; axis < c.mask.size(); ++axis)
    place = place * c.mask[axis] + (c.mask[axis] == 1 ? 0 : index[axis]);
  return place;
}

struct MaskedInputs {
  std::vector<HostTensor> tensors;
  std::vector<double> q, k, v, first, last, mask;

  MaskedInputs(const MaskedCase& c, DType dtype) {
    std::vector<double> firsts, lasts;
    const double low[] = {0, 2, 5, 0, 7, 3}, high[] = {11, 9, 5, 3, 6, 10};
    const double far_low[] = {-9, 2, INT32_MIN, 0, 12, 3},
                 far_high[] = {50, 9, INT32_MAX, -1, 30, 10};
    const int64_t tokens = product(c.batch) * kTokens;
    for (int64_t i = 0; i < tokens; ++i) {
      firsts.push_back(c.any_range ? far_low[i % 6] : low[i % 6]);
      lasts.push_back(c.any_range ? far_high[i % 6] : high[i % 6]);
    }
    tensors = {random_tensor(dtype, joined(c.batch, {kTokens, kHeads * kWidth}), -2, 2, 1),
               random_tensor(dtype, joined(c.batch, {kRows, kKvHeads * kWidth}), -2, 2, 2),
               random_tensor(dtype, joined(c.batch, {kRows, kKvHeads * kValueWidth}), -1, 1, 3),
               tensor(DType::i32, joined(c.batch, {kTokens}), firsts),
               tensor(DType::i32, joined(c.batch, {kTokens}), lasts)};
    if (!c.mask.empty()) tensors.push_back(mask_of(c));
    std::vector<double>* all[] = {&q, &k, &v, &first, &last, &mask};
    for (size_t i = 0; i < tensors.size(); ++i) *all[i] = values_of(tensors[i]);
  }
};

/// The scores of a token's head, -inf where a key is not seen.
std::vector<double> scores_of(const MaskedCase& c, const MaskedInputs& in, int64_t token,
                              int64_t head) {
  std::vector<double> scores;
  const int64_t sequence = token / kTokens, kv_head = head / (kHeads / kKvHeads);
  for (int64_t key = 0; key < kRows; ++key) {
    double score = 0;
    for (int64_t i = 0; i < kWidth; ++i)
      score += in.q[(token * kHeads + head) * kWidth + i] *
               in.k[((sequence * kRows + key) * kKvHeads + kv_head) * kWidth + i];
    score *= kScale;
    if (c.softcap > 0) score = c.softcap * std::tanh(score / c.softcap);
    if (!c.mask.empty()) {
      const double mask = in.mask[mask_place(c, sequence, head, token % kTokens, key)];
      score = c.mask_type != DType::i1 ? score + mask : mask != 0 ? score : -INFINITY;
    }
    const auto number = static_cast<double>(key);
    const bool seen = number <= in.last[token] && (in.first[token] <= number || key < c.sink);
    scores.push_back(seen ? score : -INFINITY);
  }
  return scores;
}

std::vector<double> weights_of(const MaskedCase& c, const MaskedInputs& in, int64_t token,
                               int64_t head) {
  std::vector<double> weights = scores_of(c, in, token, head);
  const double largest = *llvm::max_element(weights);
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  for (double& weight : weights) weight = c.empty_zero && largest == -INFINITY ? 0 : weight / sum;
  return weights;
}

std::vector<double> attended(const MaskedCase& c, const MaskedInputs& in) {
  std::vector<double> result;
  for (int64_t token = 0; token < product(c.batch) * kTokens; ++token)
    for (int64_t head = 0; head < kHeads; ++head) {
      const std::vector<double> weights = weights_of(c, in, token, head);
      const int64_t kv_head = head / (kHeads / kKvHeads), row0 = token / kTokens * kRows;
      for (int64_t i = 0; i < kValueWidth; ++i) {
        double sum = 0;
        for (int64_t key = 0; key < kRows; ++key)
          sum += weights[key] * in.v[((row0 + key) * kKvHeads + kv_head) * kValueWidth + i];
        result.push_back(sum);
      }
    }
  return result;
}

std::string attributes(const MaskedCase& c) {
  std::string text = fmt::format("scale = {:a}", kScale);
  if (c.softcap > 0) text += fmt::format(", softcap = {:a}", c.softcap);
  if (c.sink > 0) text += fmt::format(", sink = {}", c.sink);
  if (c.any_range) text += ", any_range = 1";
  if (c.empty_zero) text += ", empty_zero = 1";
  return text;
}

Module module_with(const MaskedCase& c, std::string_view algorithm, std::string_view more,
                   DType dtype) {
  const std::vector<int64_t> rows = joined(c.batch, {kTokens});
  std::string parameters = fmt::format(
      "%q: {}, %k: {}, %v: {}, %f: {}, %l: {}", type_text(dtype, joined(rows, {kHeads * kWidth})),
      type_text(dtype, joined(c.batch, {kRows, kKvHeads * kWidth})),
      type_text(dtype, joined(c.batch, {kRows, kKvHeads * kValueWidth})),
      type_text(DType::i32, rows), type_text(DType::i32, rows));
  if (!c.mask.empty()) parameters += fmt::format(", %m: {}", type_text(c.mask_type, c.mask));
  return module_of(
      parameters,
      fmt::format("%y = attention %q, %k, %v, %f, %l{} {{{}heads = {}, kv_heads = {}, {}{}}} : {}",
                  c.mask.empty() ? "" : ", %m", order_text(algorithm), kHeads, kKvHeads,
                  attributes(c), more, type_text(dtype, joined(rows, {kHeads * kValueWidth}))));
}

/// The elements that are farther apart than that; NaN is at NaN.
int64_t far_apart(const std::vector<double>& got, const std::vector<double>& wanted, double bound) {
  REQUIRE(got.size() == wanted.size());
  int64_t count = 0;
  for (size_t i = 0; i < got.size(); ++i)
    count += std::isnan(wanted[i]) ? !std::isnan(got[i]) : !(std::abs(got[i] - wanted[i]) <= bound);
  return count;
}

/// Scores of at most 60, or near the lowest number of f16 where nothing else is seen, are rounded
/// to float32; a weight has the errors of two.
double error_of_weights(const MaskedCase& c) {
  return (c.mask_type == DType::f16 ? 65504 : 60) * 4 * 0x1p-24;
}

const MaskedCase kCases[] = {
    {{2}, {}},
    {{2, 3}, {}, DType::i1, true},
    {{2}, {}, DType::i1, true, true, 3},
    {{}, {4, 3, 12}, DType::i1, false, true},
    {{2}, {2, 4, 3, 12}, DType::i1},
    {{2}, {1, 1, 3, 12}, DType::f16, false, true},
    {{2}, {2, 1, 1, 12}, DType::bf16, true},
    {{2, 3}, {2, 1, 4, 1, 12}, DType::f32, true, true, 2},
    {{2, 3}, {1, 3, 1, 3, 12}, DType::f32},
    {{3}, {3, 4, 3, 1}, DType::f32, false, true},
    {{2, 2}, {1, 1, 1, 1, 1}, DType::f16},
    {{2}, {}, DType::i1, false, false, 0, 2},
    {{2, 3}, {}, DType::i1, true, true, 0, 4},
    {{2}, {2, 4, 3, 12}, DType::i1, true, true, 3, 1},
    {{2}, {1, 1, 3, 12}, DType::f16, true, true, 0, 3},
    {{2}, {}, DType::i1, true, true, 0, 50},
};

}  // namespace

TEST_CASE("attention of several sequences with masks is a sum over what is seen") {
  constexpr std::pair<std::string_view, std::string_view> kOps[] = {
      {"attention", ""}, {"decode_attention", ", splits = 3"}, {"tiled_attention", ""}};
  for (const MaskedCase& c : kCases)
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
      for (const auto& [op, more] : kOps) {
        if (dtype == DType::f32 && op == "tiled_attention") continue;
        if (op != "attention" && !is_whole(c)) continue;  // kernels take no other masks
        const MaskedInputs in(c, dtype);
        const std::vector<double> wanted = attended(c, in);
        const Module module = module_with(c, op, more, dtype);
        CAPTURE(module.entries[0].graph.ops().back().name);
        CAPTURE(std::string(op));
        CAPTURE(to_string(dtype));
        CAPTURE(attributes(c));
        CAPTURE(type_text(c.mask_type, c.mask));
        CHECK(far_apart(values_of(evaluated(module, in.tensors, {0, 0}, {.precise = true})), wanted,
                        0x1p-23) == 0);
        // Probabilities and the result are rounded to the element type.
        CHECK(far_apart(values_of(evaluated(module, in.tensors)), wanted,
                        2 * ulp(dtype, 0.9) + error_of_weights(c)) == 0);
      }
}

TEST_CASE("attention_softmax of several sequences with masks has their weights") {
  for (const MaskedCase& c : kCases) {
    const MaskedInputs in(c, DType::f32);
    std::vector<double> scores, wanted;
    const int64_t sequences = product(c.batch);
    for (int64_t sequence = 0; sequence < sequences; ++sequence)
      for (int64_t head = 0; head < kHeads; ++head)
        for (int64_t token = sequence * kTokens; token < (sequence + 1) * kTokens; ++token) {
          MaskedCase plain{c.batch, {}};
          MaskedInputs all = in;
          all.first[token] = 0, all.last[token] = kRows - 1;
          for (double score : scores_of(plain, all, token, head)) scores.push_back(score / kScale);
          for (double weight : weights_of(c, in, token, head)) wanted.push_back(weight);
        }
    const std::vector<int64_t> dims = joined(c.batch, {kHeads, kTokens, kRows});
    const std::vector<int64_t> rows = joined(c.batch, {1, kTokens});
    std::vector<HostTensor> inputs = {tensor(DType::f32, dims, scores), in.tensors[3],
                                      in.tensors[4]};
    inputs[1].dims = inputs[2].dims = rows;
    std::string parameters = fmt::format("%s: {}, %f: {}, %l: {}", type_text(DType::f32, dims),
                                         type_text(DType::i32, rows), type_text(DType::i32, rows));
    if (!c.mask.empty()) {
      parameters += fmt::format(", %m: {}", type_text(c.mask_type, c.mask));
      inputs.push_back(in.tensors[5]);
    }
    const Module module = module_of(
        parameters,
        fmt::format("%y = attention_softmax %s, %f, %l{} {{dtype = f32, {}}} : {}",
                    c.mask.empty() ? "" : ", %m", attributes(c), type_text(DType::f32, dims)));
    CAPTURE(attributes(c));
    CAPTURE(type_text(c.mask_type, c.mask));
    CHECK(far_apart(values_of(evaluated(module, inputs)), wanted, error_of_weights(c)) == 0);
  }
}

TEST_CASE("any_range is what lets a token see rows that are not there") {
  MaskedCase c{{2}, {}, DType::i1, true};
  const MaskedInputs in(c, DType::f16);
  c.any_range = false;
  for (std::string_view op : {"attention", "tiled_attention"}) {
    const std::string error = eval_error(module_with(c, op, "", DType::f16), in.tensors);
    CHECK(error.find("token 0 sees rows -9 .. 50 of 0 .. 11") != std::string::npos);
  }
}

TEST_CASE("a summary of the mask changes no bit of an attention") {
  constexpr int64_t tokens = 150, rows = 300, width = 8;
  for (const auto& [mask_type, mask_dims, key_tile, value_width] :
       {std::tuple{DType::i1, std::vector<int64_t>{2, 2, tokens, rows}, 128, 8},
        {DType::f32, {1, 1, tokens, rows}, 128, 8},
        {DType::bf16, {2, 1, 1, rows}, 64, 136},
        {DType::i1, {1, 2, 1, rows}, 64, 136}}) {
    std::vector<double> mask;
    for (int64_t i = 0; i < product(mask_dims); ++i) {
      const int64_t key = i % rows, row = i / rows;
      const bool hidden = (key / 64 + row / 100) % 3 != 0 || key % 7 == 2 || row % 11 == 5;
      mask.push_back(mask_type == DType::i1 ? !hidden : hidden ? -INFINITY : 0.125 * (i % 9));
    }
    std::vector<double> last;
    for (int64_t i = 0; i < 2 * tokens; ++i) last.push_back((i * 37 % 150) + i % tokens);
    const std::vector<HostTensor> inputs = {
        random_tensor(DType::f16, {2, tokens, 2 * width}, -2, 2, 1),
        random_tensor(DType::f16, {2, rows, width}, -2, 2, 2),
        random_tensor(DType::f16, {2, rows, value_width}, -1, 1, 3),
        tensor(DType::i32, {2, tokens}, std::vector<double>(2 * tokens)),
        tensor(DType::i32, {2, tokens}, last),
        tensor(mask_type, mask_dims, mask)};
    const auto with = [&](bool tiles) {
      const std::vector<int64_t> dims = {mask_dims[0], mask_dims[1], mask_dims[2] == 1 ? 1 : 2,
                                         (rows + key_tile - 1) / key_tile};
      return module_of(
          fmt::format("%q: f16[2, {0}, 16], %k: f16[2, {1}, 8], %v: f16[2, {1}, {2}], %f: i32[2, "
                      "{0}], %l: i32[2, {0}], %m: {3}",
                      tokens, rows, value_width, type_text(mask_type, mask_dims)),
          fmt::format("%t = mask_tiles %m {{tile_tokens = 128, tile_keys = {}}} : {}\n"
                      "%y = attention %q, %k, %v, %f, %l, %m{} {{order = tiled_attention, heads = "
                      "2, kv_heads = 1, "
                      "scale = 0x1p-2, empty_zero = 1}} : f16[2, {}, {}]",
                      key_tile, type_text(DType::i1, dims), tiles ? ", %t" : "", tokens,
                      2 * value_width),
          tiles ? "%y, %t" : "%y");
    };
    const Module module = with(true);
    const auto results = try_evaluate(module, inputs);
    REQUIRE_MESSAGE(results.has_value(), (results ? "" : results.error().message()));
    const auto plain = evaluated(with(false), inputs);
    CHECK((*results)[0].bytes == plain.bytes);
    const std::vector<double> shown = values_of((*results)[1]);
    CHECK(llvm::count(shown, 0) > 0);
    CHECK(llvm::count(shown, 1) > 0);
  }
}

TEST_CASE("what a hidden tile holds reaches no token") {
  const auto attend = [](std::string_view tiles) {
    std::vector<double> keys(2 * 130, 1), values(2 * 130, 1), mask(130, 1);
    for (size_t i = 256; i < 260; ++i) keys[i] = INFINITY, values[i] = NAN;
    mask[128] = mask[129] = 0;
    const Module module = module_of(
        "%q: f16[1, 2], %k: f16[130, 2], %v: f16[130, 2], %f: i32[1], %l: i32[1], %m: i1[1, 1, "
        "130]",
        fmt::format("%t = mask_tiles %m {{tile_tokens = 128, tile_keys = 128}} : i1[1, 1, 2]\n"
                    "%y = attention %q, %k, %v, %f, %l, %m{} {{order = tiled_attention, heads = 1, "
                    "kv_heads = 1, "
                    "scale = 0x1p+0}} : f16[1, 2]",
                    tiles));
    return values_of(
        evaluated(module, {tensor(DType::f16, {1, 2}, {1, 1}), tensor(DType::f16, {130, 2}, keys),
                           tensor(DType::f16, {130, 2}, values), tensor(DType::i32, {1}, {0}),
                           tensor(DType::i32, {1}, {129}), tensor(DType::i1, {1, 1, 130}, mask)}));
  };
  CHECK(attend(", %t") == std::vector<double>{1, 1});
  CHECK(std::isnan(attend("")[0]));
}

TEST_CASE("a key that a mask of truth values hides may be NaN, its value must not") {
  const Module module = module_of(
      "%q: f16[1, 2], %k: f16[3, 2], %v: f16[3, 2], %f: i32[1], %l: i32[1], %m: i1[1, 1, 3]",
      "%y = attention %q, %k, %v, %f, %l, %m {order = tiled_attention, heads = 1, kv_heads = 1, "
      "scale = 0x1p+0} : "
      "f16[1, 2]");
  const auto attend = [&](double hidden_value) {
    return values_of(evaluated(module, {tensor(DType::f16, {1, 2}, {1, 1}),
                                        tensor(DType::f16, {3, 2}, {NAN, 1, 1, 1, INFINITY, 1}),
                                        tensor(DType::f16, {3, 2}, {hidden_value, 1, 5, 6, 7, 8}),
                                        tensor(DType::i32, {1}, {0}), tensor(DType::i32, {1}, {2}),
                                        tensor(DType::i1, {1, 1, 3}, {0, 1, 0})}));
  };
  CHECK(attend(3) == std::vector<double>{5, 6});
  CHECK(std::isnan(attend(NAN)[0]));
  CHECK(attend(NAN)[1] == 6);
}

}  // namespace sinter::host_eval_masked_attention_test
