#include "frontends/model/spec_json.h"

namespace sinter {

namespace {

std::string rope_json(const Rope& rope) {
  std::string value =
      fmt::format("{{\"theta\": {}, \"rotary\": {}, \"pairing\": \"{}\", \"scaling\": \"{}\"",
                  rope.theta, rope.rotary, rope.pairing, to_string(rope.scaling));
  const bool has_factor =
      rope.scaling != RopeScaling::none && rope.scaling != RopeScaling::longrope;
  if (has_factor) value += fmt::format(", \"factor\": {}", rope.factor);
  if (rope.scaling == RopeScaling::llama3)
    value += fmt::format(", \"low_freq_factor\": {}, \"high_freq_factor\": {}",
                         rope.low_freq_factor, rope.high_freq_factor);
  if (rope.scaling == RopeScaling::yarn)
    value += fmt::format(", \"beta_fast\": {}, \"beta_slow\": {}, \"truncate\": {}", rope.beta_fast,
                         rope.beta_slow, rope.truncate);
  if (rope.scaling == RopeScaling::longrope)
    value += fmt::format(", \"short_factors\": [{}], \"long_factors\": [{}]",
                         fmt::join(rope.short_factors, ", "), fmt::join(rope.long_factors, ", "));
  if (rope.scaling != RopeScaling::none && rope.scaling != RopeScaling::linear)
    value += fmt::format(", \"original_max_positions\": {}", rope.original_max_positions);
  return value + fmt::format(", \"attention_factor\": {}}}", rope.attention_factor);
}

std::string experts_json(const Experts& experts) {
  std::string value = fmt::format(
      "{{\"count\": {}, \"chosen\": {}, \"ffn\": {}, \"routing\": \"{}\", \"normalized\": {}, "
      "\"wide_weights\": {}, \"shared_ffn\": {}, \"shared_gate\": {}",
      experts.count, experts.chosen, experts.ffn, to_string(experts.routing), experts.normalized,
      experts.wide_weights, experts.shared_ffn, experts.shared_gate);
  if (!experts.sparse.empty())
    value += fmt::format(", \"sparse\": [{}]", fmt::join(experts.sparse, ", "));
  return value + "}";
}

class Printer {
 public:
  void put(std::string_view key, const std::string& value) {
    out_ += fmt::format(",\n  \"{}\": {}", key, value);
  }
  void text(std::string_view key, std::string_view value) { put(key, json_quoted(value)); }
  template <typename T>
  void number(std::string_view key, T value) {
    put(key, fmt::format("{}", value));
  }
  /// Nothing for the value that a missing key has: older readers know no such key.
  template <typename T>
  void unusual(std::string_view key, T value, T usual) {
    if (value != usual) number(key, value);
  }
  template <typename T>
  void optional(std::string_view key, const std::optional<T>& value) {
    put(key, value ? fmt::format("{}", *value) : "null");
  }
  void rope(std::string_view key, const std::optional<Rope>& rope) {
    put(key, rope ? rope_json(*rope) : "null");
  }
  std::string str() const { return out_ + "\n}\n"; }

 private:
  std::string out_ = "{\n  \"sinter_spec\": 1";
};

}  // namespace

std::string print_spec(const ModelSpec& spec) {
  Printer p;
  p.text("name", spec.name);
  p.text("dtype", to_string(spec.dtype));
  p.number("encoder", spec.encoder);
  p.number("vocabulary", spec.vocabulary);
  p.number("hidden", spec.hidden);
  p.number("layers", spec.layers);
  p.number("heads", spec.heads);
  p.number("kv_heads", spec.kv_heads);
  p.number("head_dim", spec.head_dim);
  p.number("ffn", spec.ffn);
  p.number("max_positions", spec.max_positions);
  p.optional("embed_width", spec.embed_width);
  p.number("embed_scale", spec.embed_scale);
  p.number("token_types", spec.token_types);
  p.number("embed_norm", spec.embed_norm);
  p.number("final_norm", spec.final_norm);
  p.number("tied", spec.tied);
  p.number("head_bias", spec.head_bias);
  p.unusual("logit_divisor", spec.logit_divisor, 1.0);
  p.optional("logit_softcap", spec.logit_softcap);
  p.text("norm", to_string(spec.norm));
  p.unusual("norm_bias", spec.norm_bias, true);
  p.number("norm_eps", spec.norm_eps);
  p.text("norm_place", to_string(spec.norm_place));
  p.unusual("first_norm", spec.first_norm, true);
  p.text("residual", to_string(spec.residual));
  p.unusual("residual_scale", spec.residual_scale, 1.0);
  p.number("shared_norm", spec.shared_norm);
  p.text("qk_norm", to_string(spec.qk_norm));
  p.rope("rope", spec.rope);
  p.rope("local_rope", spec.local_rope);
  if (!spec.rotated.empty()) p.put("rotated", fmt::format("[{}]", fmt::join(spec.rotated, ", ")));
  p.number("qkv_bias", spec.qkv_bias);
  p.number("attention_out_bias", spec.attention_out_bias);
  p.number("attention_scale", spec.attention_scale);
  p.number("scale_by_inverse_layer", spec.scale_by_inverse_layer);
  p.optional("attention_softcap", spec.attention_softcap);
  p.optional("window", spec.window);
  if (!spec.windowed.empty())
    p.put("windowed", fmt::format("[{}]", fmt::join(spec.windowed, ", ")));
  p.unusual("bias_distance", spec.bias_distance, int64_t{0});
  p.text("activation", op_info(spec.activation).name);
  p.number("gated", spec.gated);
  p.number("mlp_bias", spec.mlp_bias);
  if (spec.experts) p.put("experts", experts_json(*spec.experts));
  p.put("eos", fmt::format("[{}]", fmt::join(spec.eos, ", ")));
  return p.str();
}

}  // namespace sinter
