#include "frontends/model/model_spec.h"

namespace sinter {

namespace {

constexpr int64_t kMaxPositions = int64_t{1} << 26;
constexpr int64_t kMaxBiasDistance = int64_t{1} << 20;

class Checker {
 public:
  Checker(const ModelSpec& spec, const FieldPlace& place) : spec_(spec), place_(place) {}

  Status run() const {
    SINTER_TRY(sizes());
    SINTER_TRY(heads());
    SINTER_TRY(positive("norm_eps", spec_.norm_eps, 1e6));
    SINTER_TRY(positive("attention_scale", spec_.attention_scale, 1e6));
    SINTER_TRY(positive("embed_scale", spec_.embed_scale, 1e6));
    SINTER_TRY(positive("residual_scale", spec_.residual_scale, 1e6));
    SINTER_TRY(positive("logit_divisor", spec_.logit_divisor, 1e6));
    SINTER_TRY(optional("attention_softcap", spec_.attention_softcap));
    SINTER_TRY(optional("logit_softcap", spec_.logit_softcap));
    SINTER_TRY(windows());
    SINTER_TRY(forms());
    if (spec_.experts) SINTER_TRY(experts(*spec_.experts));
    SINTER_TRY(spec_.encoder ? encoder() : decoder());
    if (spec_.rope) SINTER_TRY(rope("rope.", *spec_.rope));
    if (spec_.local_rope) SINTER_TRY(rope("local_rope.", *spec_.local_rope));
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

  Status optional(std::string_view field, std::optional<double> value) const {
    return value ? positive(field, *value, 1e6) : Status();
  }

  Status sizes() const {
    SINTER_TRY(size("vocabulary", spec_.vocabulary, spec_.encoder ? kLargestSize : kMaxChosenFrom));
    SINTER_TRY(size("hidden", spec_.hidden, kLargestSize));
    SINTER_TRY(size("layers", spec_.layers, kMaxLayers));
    SINTER_TRY(size("heads", spec_.heads, kLargestSize));
    SINTER_TRY(size("kv_heads", spec_.kv_heads, kLargestSize));
    SINTER_TRY(size("head_dim", spec_.head_dim, kLargestSize));
    SINTER_TRY(size("ffn", spec_.ffn, kLargestSize));
    if (spec_.embed_width) SINTER_TRY(size("embed_width", *spec_.embed_width, kLargestSize));
    if (spec_.token_types != 0) SINTER_TRY(size("token_types", spec_.token_types, kLargestSize));
    if (spec_.bias_distance != 0)
      SINTER_TRY(size("bias_distance", spec_.bias_distance, kMaxBiasDistance));
    return size("max_positions", spec_.max_positions, kMaxPositions);
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

  Status windows() const {
    if (spec_.window) SINTER_TRY(size("window", *spec_.window, kLargestSize));
    if (spec_.windowed.empty()) return {};
    if (static_cast<int64_t>(spec_.windowed.size()) != spec_.layers)
      return fail(fmt::format("{} layers are told whether they have a window, the model has {}",
                              spec_.windowed.size(), spec_.layers),
                  place_("windowed"), "give one value a layer");
    if (!spec_.window)
      return fail("layers have a window, but its size is not given", place_("windowed"),
                  "give the size of the window");
    return {};
  }

  Status forms() const {
    if (spec_.residual == ResidualForm::parallel && spec_.norm_place != NormPlace::before)
      return fail(
          fmt::format("norms {} the branches of a parallel residual", to_string(spec_.norm_place)),
          place_("norm_place"), "parallel branches have their norms before them");
    if (spec_.shared_norm && spec_.residual != ResidualForm::parallel)
      return fail("branches that follow one another share a norm", place_("shared_norm"),
                  "only parallel branches can share a norm");
    if (spec_.local_rope && (!spec_.rope || !spec_.window))
      return fail(
          "rotary positions of layers with a window, but the model lacks the window or other "
          "rotary positions",
          place_("local_rope"), "give both, or neither");
    if (!spec_.first_norm &&
        (spec_.norm_place != NormPlace::before || spec_.residual == ResidualForm::parallel))
      return fail("layer 0 lacks a norm that does not stand before its attention alone",
                  place_("first_norm"),
                  "only sequential branches with norms before them can lack the first one");
    if (spec_.residual_scale != 1.0 && spec_.residual == ResidualForm::parallel)
      return fail(fmt::format("parallel branches are multiplied by {}", spec_.residual_scale),
                  place_("residual_scale"), "only sequential branches can be");
    return rotated();
  }

  Status rotated() const {
    if (spec_.rotated.empty()) return {};
    if (!spec_.rope)
      return fail("layers rotate, but the model has no rotary positions", place_("rotated"),
                  "give rotary positions, or leave it out");
    if (static_cast<int64_t>(spec_.rotated.size()) != spec_.layers)
      return fail(fmt::format("`rotated` has {} entries, the model has {} layers",
                              spec_.rotated.size(), spec_.layers),
                  place_("rotated"), "give one value a layer");
    return {};
  }

  Status experts(const Experts& experts) const {
    SINTER_TRY(size("experts.count", experts.count, kMaxExperts));
    SINTER_TRY(size("experts.chosen", experts.chosen, kMaxChosenExperts));
    if (experts.chosen > experts.count)
      return fail(fmt::format("a token has {} of {} experts", experts.chosen, experts.count),
                  place_("experts.chosen"),
                  fmt::format("give at most as many as there are ({})", place_("experts.count")));
    // The rows of all experts' matrices are one axis of a tensor.
    SINTER_TRY(size("experts.ffn", experts.ffn, kLargestSize / 2 / experts.count));
    SINTER_TRY(size("hidden", spec_.hidden, kLargestSize / experts.count));
    if (experts.shared_ffn != 0)
      SINTER_TRY(size("experts.shared_ffn", experts.shared_ffn, kLargestSize));
    if (!spec_.gated)
      return fail("experts without a gate", place_("gated"), "only gated experts are supported");
    if (spec_.mlp_bias)
      return fail("experts with biases", place_("mlp_bias"), "this is not supported");
    if (experts.normalized && experts.routing == Routing::choice_first)
      return fail("a softmax over the chosen experts alone has the sum 1 already",
                  place_("experts.normalized"), "give false");
    if (experts.shared_gate && experts.shared_ffn == 0)
      return fail("a gate of a shared expert, but there is none", place_("experts.shared_gate"),
                  fmt::format("give its width ({})", place_("experts.shared_ffn")));
    if (!experts.sparse.empty() && static_cast<int64_t>(experts.sparse.size()) != spec_.layers)
      return fail(fmt::format("`sparse` has {} entries, the model has {} layers",
                              experts.sparse.size(), spec_.layers),
                  place_("experts.sparse"), "give one value a layer");
    return {};
  }

  Status encoder() const {
    if (spec_.embed_width)
      return fail("an encoder with another embedding width", place_("encoder"),
                  "this is not supported");
    if (spec_.window && *spec_.window % 2 == 0)
      return fail(fmt::format("an encoder's window is {}, an even number", *spec_.window),
                  place_("window"), "a token sees as many keys on each side of it");
    if (spec_.bias_distance != 0 && spec_.kv_heads != spec_.heads)
      return fail(fmt::format("a bias of scores with {} heads and {} key/value heads", spec_.heads,
                              spec_.kv_heads),
                  place_("bias_distance"), "this is not supported");
    return {};
  }

  Status decoder() const {
    if (spec_.token_types != 0 || spec_.embed_norm)
      return fail("a decoder with token types or a norm of its embeddings", place_("token_types"),
                  "this is not supported");
    if (spec_.bias_distance != 0)
      return fail("a decoder with a bias of scores", place_("bias_distance"),
                  "this is not supported");
    return {};
  }

  Status rope(const std::string& prefix, const Rope& rope) const {
    SINTER_TRY(positive(prefix + "theta", rope.theta, 1e30));
    SINTER_TRY(positive(prefix + "attention_factor", rope.attention_factor, 1e6));
    if (rope.rotary < 2 || rope.rotary % 2 != 0 || rope.rotary > spec_.head_dim)
      return fail(
          fmt::format("{} of {} head elements rotate, which is not an even number in 2 .. {}",
                      rope.rotary, spec_.head_dim, spec_.head_dim),
          place_(prefix + "rotary"), "elements rotate in pairs: give an even rotary size");
    if (rope.pairing != "half" && rope.pairing != "interleaved")
      return fail(fmt::format("rope pairing '{}' is unknown", printable(rope.pairing)),
                  place_(prefix + "pairing"), "use half or interleaved");
    if (rope.scaling == RopeScaling::none) return {};
    if (rope.scaling == RopeScaling::longrope) return long_rope(prefix, rope);
    SINTER_TRY(positive(prefix + "factor", rope.factor, 1e6));
    if (rope.scaling == RopeScaling::linear) return {};
    if (rope.scaling == RopeScaling::llama3)
      SINTER_TRY(ascending(prefix, "low_freq_factor", rope.low_freq_factor, "high_freq_factor",
                           rope.high_freq_factor));
    else
      SINTER_TRY(ascending(prefix, "beta_slow", rope.beta_slow, "beta_fast", rope.beta_fast));
    return size(prefix + "original_max_positions", rope.original_max_positions, kMaxPositions);
  }

  Status ascending(const std::string& prefix, std::string_view low_name, double low,
                   std::string_view high_name, double high) const {
    const std::string low_field = prefix + std::string(low_name);
    const std::string high_field = prefix + std::string(high_name);
    SINTER_TRY(positive(low_field, low, 1e6));
    SINTER_TRY(positive(high_field, high, 1e6));
    if (high > low) return {};
    return fail(fmt::format("{} {} is not above {} {}", high_name, high, low_name, low),
                place_(high_field), fmt::format("give a larger {}", high_name));
  }

  Status long_rope(const std::string& prefix, const Rope& rope) const {
    SINTER_TRY(size(prefix + "original_max_positions", rope.original_max_positions, kMaxPositions));
    const auto pairs = static_cast<size_t>(rope.rotary / 2);
    for (const auto& [name, factors] : {std::pair("short_factors", &rope.short_factors),
                                        std::pair("long_factors", &rope.long_factors)}) {
      const std::string field = prefix + name;
      if (factors->size() != pairs)
        return fail(
            fmt::format("{} factors for {} pairs of elements that rotate", factors->size(), pairs),
            place_(field), "give one factor a pair");
      for (double factor : *factors) SINTER_TRY(positive(field, factor, 1e6));
    }
    return {};
  }

  const ModelSpec& spec_;
  const FieldPlace& place_;
};

}  // namespace

Status check_spec(const ModelSpec& spec, const FieldPlace& place) {
  return Checker(spec, place).run();
}

}  // namespace sinter
