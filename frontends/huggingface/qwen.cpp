// qwen2 (Qwen 2, 2.5): Llama whose q, k and v have biases. qwen3: none, but norms of q and k. Both
// can have a window on their later layers.
#include "frontends/huggingface/config.h"

namespace sinter {

Result<std::optional<int64_t>> read_qwen_window(HfConfig& config) {
  bool slides = false;
  std::optional<int64_t> window;
  SINTER_TRY(config.flag(slides, "window", {"use_sliding_window"}, false));
  if (slides)
    SINTER_TRY(config.optional_size(window, "window", {"sliding_window"}, 4096));
  else
    SINTER_TRY(config.find("window", {"sliding_window"}));
  return window;
}

namespace {

Status read_positions(HfConfig& config, ModelSpec& spec) {
  SINTER_LET(window, read_qwen_window(config));
  SINTER_LET(view, config.find("windowed", {"max_window_layers"}));
  SINTER_LET(full_layers, view.integer_or(28, 0));
  SINTER_TRY(
      config.windows(spec, window, true, [&](int64_t layer) { return layer >= full_layers; }));
  return config.rope(spec, {.theta = {"rope_theta"}});
}

}  // namespace

Result<HfModel> read_hf_qwen2(HfConfig& config) {
  SINTER_LET(spec, read_llama_fields(config, {.own_head_dim = false}));
  SINTER_TRY(read_positions(config, spec));
  spec.qkv_bias = true;
  return HfModel{std::move(spec), llama_weight_map()};
}

Result<HfModel> read_hf_qwen3(HfConfig& config) {
  SINTER_LET(spec, read_llama_fields(config, {.head_dim = 128}));
  SINTER_TRY(read_positions(config, spec));
  SINTER_TRY(config.flag(spec.qkv_bias, "qkv_bias", {"attention_bias"}, false));
  spec.attention_out_bias = spec.qkv_bias;
  spec.qk_norm = QkNorm::head;
  WeightMap map = llama_weight_map();
  add_layer_rule(map, "q_norm", "self_attn.q_norm");
  add_layer_rule(map, "k_norm", "self_attn.k_norm");
  return HfModel{std::move(spec), std::move(map)};
}

}  // namespace sinter
