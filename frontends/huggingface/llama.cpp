// llama (Llama 1 to 3.2, TinyLlama, SmolLM ...): RMSNorm, SwiGLU, rotary, grouped queries. Most
// later families are this one with other norms, windows or biases.
#include <cmath>

#include "frontends/huggingface/config.h"

namespace sinter {

WeightMap llama_weight_map() {
  WeightMap map{.prefixes = {"model.", ""},
                .rules = {{"embed.weight", {.tensor = "{p}embed_tokens.weight"}},
                          {"final_norm.weight", {.tensor = "{p}norm.weight"}},
                          {"lm_head.weight", {.tensor = "lm_head.weight"}}},
                .ignorable = {".rotary_emb.inv_freq"}};
  add_layer_rule(map, "norm1", "input_layernorm");
  add_layer_rule(map, "norm2", "post_attention_layernorm");
  add_layer_rule(map, "q", "self_attn.q_proj");
  add_layer_rule(map, "k", "self_attn.k_proj");
  add_layer_rule(map, "v", "self_attn.v_proj");
  add_layer_rule(map, "attn_out", "self_attn.o_proj");
  add_layer_rule(map, "mlp.gate", "mlp.gate_proj");
  add_layer_rule(map, "mlp.up", "mlp.up_proj");
  add_layer_rule(map, "mlp.down", "mlp.down_proj");
  return map;
}

Result<ModelSpec> read_llama_fields(HfConfig& config, const LlamaDefaults& defaults) {
  ModelSpec spec;
  SINTER_TRY(config.size(spec.vocabulary, "vocabulary", {"vocab_size"}, defaults.vocabulary));
  SINTER_TRY(config.size(spec.hidden, "hidden", {"hidden_size"}, defaults.hidden));
  SINTER_TRY(config.size(spec.layers, "layers", {"num_hidden_layers"}, defaults.layers));
  SINTER_TRY(config.size(spec.heads, "heads", {"num_attention_heads"}, defaults.heads));
  std::optional<int64_t> kv_heads;
  SINTER_TRY(
      config.optional_size(kv_heads, "kv_heads", {"num_key_value_heads"}, defaults.kv_heads));
  spec.kv_heads = kv_heads.value_or(spec.heads);
  SINTER_TRY(config.size(spec.ffn, "ffn", {"intermediate_size"}, defaults.ffn));
  SINTER_TRY(config.size(spec.max_positions, "max_positions", {"max_position_embeddings"},
                         defaults.max_positions));
  SINTER_TRY(config.head_dim(spec,
                             defaults.own_head_dim ? HfConfig::Keys{"head_dim"} : HfConfig::Keys{},
                             defaults.head_dim));
  spec.norm = NormKind::rms_norm;
  SINTER_TRY(config.number(spec.norm_eps, "norm_eps", {"rms_norm_eps"}, defaults.norm_eps));
  SINTER_TRY(config.activation(spec.activation, defaults.activation, defaults.default_activation));
  spec.gated = true;
  SINTER_TRY(config.flag(spec.tied, "tied", {"tie_word_embeddings"}, defaults.tied));
  spec.attention_scale = 1.0 / std::sqrt(static_cast<double>(spec.head_dim));
  return spec;
}

Result<HfModel> read_hf_llama(HfConfig& config) {
  SINTER_LET(spec, read_llama_fields(config));
  SINTER_TRY(config.rope(spec, {.theta = {"rope_theta"}}));
  SINTER_TRY(config.flag(spec.qkv_bias, "qkv_bias", {"attention_bias"}, false));
  spec.attention_out_bias = spec.qkv_bias;
  SINTER_TRY(config.flag(spec.mlp_bias, "mlp_bias", {"mlp_bias"}, false));
  return HfModel{std::move(spec), llama_weight_map()};
}

}  // namespace sinter
