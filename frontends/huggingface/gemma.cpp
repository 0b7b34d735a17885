// gemma: Llama with norms of 1 + weight and scaled embeddings. gemma2, gemma3: norms with 1 +
// weight before and after each branch, scaled embeddings, windows on most layers. gemma2 caps
// scores and logits; gemma3 norms q and k and has two sets of positions.
#include <cmath>

#include "frontends/huggingface/config.h"

namespace sinter {

namespace {

/// Reads the fields that both generations share. `caps`: default caps of scores and of logits.
Result<ModelSpec> read_gemma_fields(HfConfig& config, LlamaDefaults defaults,
                                    std::pair<std::optional<double>, std::optional<double>> caps) {
  defaults.head_dim = 256;
  defaults.activation = {"hidden_activation"};
  defaults.default_activation = "gelu_pytorch_tanh";
  defaults.tied = true;
  SINTER_LET(spec, read_llama_fields(config, defaults));
  SINTER_TRY(
      config.find("hidden_act", {"hidden_act"}));  // of the first generation; says nothing here
  spec.norm = NormKind::rms_norm_plus_one;
  spec.norm_place = NormPlace::both;
  spec.embed_scale = std::sqrt(static_cast<double>(spec.hidden));
  double scalar = 256.0;
  SINTER_TRY(config.number(scalar, "attention_scale", {"query_pre_attn_scalar"}, 256.0));
  spec.attention_scale = 1.0 / std::sqrt(scalar);
  SINTER_TRY(config.flag(spec.qkv_bias, "qkv_bias", {"attention_bias"}, false));
  spec.attention_out_bias = spec.qkv_bias;
  SINTER_TRY(config.optional_number(spec.attention_softcap, "attention_softcap",
                                    {"attn_logit_softcapping"}, caps.first));
  SINTER_TRY(config.optional_number(spec.logit_softcap, "logit_softcap",
                                    {"final_logit_softcapping"}, caps.second));
  return spec;
}

WeightMap gemma_weight_map() {
  WeightMap map = llama_weight_map();
  map.prefixes = {"model.", "", "language_model.model.", "model.language_model."};
  map.foreign = {"vision_tower.", "multi_modal_projector.", "model.vision_tower.",
                 "model.multi_modal_projector."};
  map.spellings = {{"lm_head.weight", "language_model.lm_head.weight"}};
  add_layer_rule(map, "post_norm1", "post_attention_layernorm");
  add_layer_rule(map, "norm2", "pre_feedforward_layernorm");
  add_layer_rule(map, "post_norm2", "post_feedforward_layernorm");
  add_layer_rule(map, "q_norm", "self_attn.q_norm");
  add_layer_rule(map, "k_norm", "self_attn.k_norm");
  return map;
}

}  // namespace

Result<HfModel> read_hf_gemma(HfConfig& config) {
  SINTER_LET(activation, config.find("activation", {"hidden_activation"}));
  SINTER_LET(first, config.find("activation", {"hidden_act"}));
  // The first files say gelu and mean its approximation, as transformers 4 took it.
  SINTER_LET(name, first.string_or("gelu"));
  LlamaDefaults defaults{.head_dim = 256, .default_activation = "gelu_pytorch_tanh", .tied = true};
  defaults.activation = {activation.present() || name == "gelu" ? "hidden_activation"
                                                                : "hidden_act"};
  SINTER_LET(spec, read_llama_fields(config, defaults));
  SINTER_TRY(config.rope(spec, {.theta = {"rope_theta"}}));
  SINTER_TRY(config.flag(spec.qkv_bias, "qkv_bias", {"attention_bias"}, false));
  spec.attention_out_bias = spec.qkv_bias;
  spec.norm = NormKind::rms_norm_plus_one;
  spec.embed_scale = std::sqrt(static_cast<double>(spec.hidden));
  return HfModel{std::move(spec), llama_weight_map()};
}

Result<HfModel> read_hf_gemma2(HfConfig& config) {
  SINTER_LET(spec, read_gemma_fields(config, {.kv_heads = 4}, {50.0, 30.0}));
  std::optional<int64_t> window;
  SINTER_TRY(config.optional_size(window, "window", {"sliding_window"}, 4096));
  SINTER_LET(copy, config.find("window.copy", {"sliding_window_size"}));  // no class reads it
  SINTER_LET(size, copy.integer_or(window.value_or(0)));
  if (copy.present() && size != window.value_or(0))
    return copy.mismatch(window ? std::to_string(*window) : "null", "say it as sliding_window");
  SINTER_TRY(config.windows(spec, window, true, [](int64_t layer) { return layer % 2 == 0; }));
  SINTER_TRY(config.rope(spec, {.theta = {"rope_theta"}}));
  return HfModel{std::move(spec), gemma_weight_map()};
}

Result<HfModel> read_hf_gemma3(HfConfig& config) {
  // A text model inside a larger one names only what differs from these.
  SINTER_LET(spec, read_gemma_fields(config,
                                     {.vocabulary = 262208,
                                      .hidden = 2304,
                                      .layers = 26,
                                      .heads = 8,
                                      .ffn = 9216,
                                      .max_positions = 131072,
                                      .kv_heads = 4},
                                     {}));
  spec.qk_norm = QkNorm::head;
  if (spec.attention_softcap)  // read by the class, used by nothing
    return fail(fmt::format("a cap of attention's scores of {}", *spec.attention_softcap),
                config.places()("attention_softcap"), "this model_type has none; remove the key");
  std::optional<int64_t> window;
  SINTER_TRY(config.optional_size(window, "window", {"sliding_window"}, 4096));
  SINTER_LET(pattern, config.find("windowed", {"sliding_window_pattern"}));
  SINTER_LET(period, pattern.integer_or(6, 1));
  SINTER_LET(types, config.find("windowed", {"layer_types"}));
  SINTER_LET(copy, config.find("windowed.copy", {"_sliding_window_pattern"}));  // no class reads it
  SINTER_LET(copied, copy.integer_or(period, 1));
  if (copied != period && !types.present())
    return copy.mismatch(std::to_string(period), "say it as sliding_window_pattern");
  SINTER_TRY(
      config.windows(spec, window, true, [&](int64_t layer) { return (layer + 1) % period != 0; }));
  SINTER_TRY(config.layered_rope(spec, {.theta = {"rope_theta"}, .default_theta = 1e6},
                                 {.theta = {"rope_local_base_freq"}}));
  return HfModel{std::move(spec), gemma_weight_map()};
}

}  // namespace sinter
