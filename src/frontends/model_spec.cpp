#include "frontends/model_spec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace sinter {

namespace {

constexpr std::array kActivations = {OpKind::gelu, OpKind::gelu_tanh, OpKind::quick_gelu,
                                     OpKind::silu, OpKind::relu,      OpKind::sigmoid,
                                     OpKind::tanh};

constexpr int64_t kMostLayers = 4096;
constexpr int64_t kMostPositions = int64_t{1} << 26;

class Checker {
 public:
  Checker(const ModelSpec& spec, const FieldPlace& place) : spec_(spec), place_(place) {}

  Status run() const {
    SINTER_TRY(sizes());
    SINTER_TRY(heads());
    SINTER_TRY(positive("norm_eps", spec_.norm_eps, 1e6));
    SINTER_TRY(positive("attention_scale", spec_.attention_scale, 1e6));
    if (spec_.window) SINTER_TRY(size("window", *spec_.window, kLargestSize));
    if (spec_.rope) SINTER_TRY(rope(*spec_.rope));
    return {};
  }

 private:
  Status size(std::string_view field, int64_t value, int64_t most) const {
    if (value >= 1 && value <= most) return {};
    return fail(fmt::format("{} is {}, outside 1 .. {}", field, value, most), place_(field),
                "give the model's true size");
  }

  // Limits above are generous, but a number must also be normal in float32, where it is used.
  Status positive(std::string_view field, double value, double most) const {
    if (value >= 1e-30 && value <= most) return {};  // false for NaN
    return fail(fmt::format("{} is {}, not a number in 1e-30 .. {}", field, value, most),
                place_(field), "give a positive finite number");
  }

  Status sizes() const {
    SINTER_TRY(size("vocabulary", spec_.vocabulary, kLargestSize));
    SINTER_TRY(size("hidden", spec_.hidden, kLargestSize));
    SINTER_TRY(size("layers", spec_.layers, kMostLayers));
    SINTER_TRY(size("heads", spec_.heads, kLargestSize));
    SINTER_TRY(size("kv_heads", spec_.kv_heads, kLargestSize));
    SINTER_TRY(size("head_dim", spec_.head_dim, kLargestSize));
    SINTER_TRY(size("ffn", spec_.ffn, kLargestSize));
    return size("max_positions", spec_.max_positions, kMostPositions);
  }

  Status heads() const {
    if (spec_.kv_heads > spec_.heads || spec_.heads % spec_.kv_heads != 0)
      return fail(fmt::format("{} query heads cannot share {} key/value heads", spec_.heads,
                              spec_.kv_heads),
                  place_("kv_heads"),
                  fmt::format("give a divisor of the number of query heads ({})", place_("heads")));
    if (spec_.heads * spec_.head_dim > kLargestSize)
      return fail(fmt::format("{} heads of {} elements are more than {} in all", spec_.heads,
                              spec_.head_dim, kLargestSize),
                  place_("head_dim"), "give the model's true sizes");
    return {};
  }

  Status rope(const Rope& rope) const {
    SINTER_TRY(positive("rope.theta", rope.theta, 1e30));
    SINTER_TRY(positive("rope.attention_factor", rope.attention_factor, 1e6));
    if (rope.rotary < 2 || rope.rotary % 2 != 0 || rope.rotary > spec_.head_dim)
      return fail(
          fmt::format("{} of {} head elements rotate, which is not an even number in 2 .. {}",
                      rope.rotary, spec_.head_dim, spec_.head_dim),
          place_("rope.rotary"), "elements rotate in pairs: give an even rotary size");
    if (rope.pairing != "half" && rope.pairing != "interleaved")
      return fail(fmt::format("rope pairing '{}' is unknown", printable(rope.pairing)),
                  place_("rope.pairing"), "use half or interleaved");
    if (rope.scaling == RopeScaling::none) return {};
    SINTER_TRY(positive("rope.factor", rope.factor, 1e6));
    if (rope.scaling != RopeScaling::llama3) return {};
    SINTER_TRY(positive("rope.low_freq_factor", rope.low_freq_factor, 1e6));
    SINTER_TRY(positive("rope.high_freq_factor", rope.high_freq_factor, 1e6));
    if (rope.high_freq_factor <= rope.low_freq_factor)
      return fail(fmt::format("high_freq_factor {} is not above low_freq_factor {}",
                              rope.high_freq_factor, rope.low_freq_factor),
                  place_("rope.high_freq_factor"), "give a larger high_freq_factor");
    return size("rope.original_max_positions", rope.original_max_positions, kMostPositions);
  }

  const ModelSpec& spec_;
  const FieldPlace& place_;
};

}  // namespace

llvm::ArrayRef<OpKind> activation_kinds() { return kActivations; }

std::string activation_list() {
  std::string list;
  for (OpKind kind : kActivations)
    list += fmt::format("{}{}", list.empty() ? "" : ", ", op_info(kind).name);
  return list;
}

std::string_view to_string(NormKind kind) {
  return kind == NormKind::layer_norm ? "layer_norm" : "rms_norm";
}

std::string_view to_string(ResidualForm form) {
  return form == ResidualForm::sequential ? "sequential" : "parallel";
}

std::string_view to_string(RopeScaling scaling) {
  switch (scaling) {
    case RopeScaling::none:
      return "none";
    case RopeScaling::linear:
      return "linear";
    case RopeScaling::llama3:
      return "llama3";
  }
  return "";
}

Status check_spec(const ModelSpec& spec, const FieldPlace& place) {
  return Checker(spec, place).run();
}

std::vector<double> rope_frequencies(const Rope& rope) {
  std::vector<double> frequencies;
  for (int64_t i = 0; i < rope.rotary / 2; ++i) {
    const double base =
        std::pow(rope.theta, -2.0 * static_cast<double>(i) / static_cast<double>(rope.rotary));
    double scaled = base;
    if (rope.scaling == RopeScaling::linear) scaled = base / rope.factor;
    if (rope.scaling == RopeScaling::llama3) {
      const double context = static_cast<double>(rope.original_max_positions);
      const double wavelength = 2.0 * std::numbers::pi / base;
      // 1 where the wavelength is short enough to stay, 0 where it is stretched in full.
      const double blend = (context / wavelength - rope.low_freq_factor) /
                           (rope.high_freq_factor - rope.low_freq_factor);
      const double keep = std::min(1.0, std::max(0.0, blend));
      scaled = base * ((1.0 - keep) / rope.factor + keep);
    }
    frequencies.push_back(scaled);
  }
  return frequencies;
}

}  // namespace sinter
