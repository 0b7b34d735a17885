// llama (Llama 1 to 3.2, TinyLlama, SmolLM ...): RMSNorm, SwiGLU, rotary, grouped queries.
#include <cmath>

#include "frontends/hf_config.h"

namespace sinter {

WeightMap llama_weight_map() {
  WeightMap map{.prefixes = {"model.", ""},
                .rules = {{"embed.weight", {.tensor = "{p}embed_tokens.weight"}},
                          {"final_norm.weight", {.tensor = "{p}norm.weight"}},
                          {"lm_head.weight", {.tensor = "lm_head.weight"}}},
                .ignorable = {".rotary_emb.inv_freq"}};
  const auto add = [&](const std::string& weight, const std::string& tensor) {
    for (const char* part : {".weight", ".bias"})
      map.rules["l{i}." + weight + part] = {.tensor = "{p}layers.{i}." + tensor + part};
  };
  add("norm1", "input_layernorm");
  add("norm2", "post_attention_layernorm");
  add("q", "self_attn.q_proj");
  add("k", "self_attn.k_proj");
  add("v", "self_attn.v_proj");
  add("attn_out", "self_attn.o_proj");
  add("mlp.gate", "mlp.gate_proj");
  add("mlp.up", "mlp.up_proj");
  add("mlp.down", "mlp.down_proj");
  return map;
}

Result<HfModel> read_hf_llama(HfConfig& config) {
  ModelSpec spec;
  SINTER_TRY(config.size(spec.vocabulary, "vocabulary", {"vocab_size"}));
  SINTER_TRY(config.size(spec.hidden, "hidden", {"hidden_size"}));
  SINTER_TRY(config.size(spec.layers, "layers", {"num_hidden_layers"}));
  SINTER_TRY(config.size(spec.heads, "heads", {"num_attention_heads"}));
  SINTER_TRY(config.size(spec.kv_heads, "kv_heads", {"num_key_value_heads"}, spec.heads));
  SINTER_TRY(config.size(spec.ffn, "ffn", {"intermediate_size"}));
  SINTER_TRY(config.size(spec.max_positions, "max_positions", {"max_position_embeddings"}));
  SINTER_TRY(config.head_dim(spec, {"head_dim"}));
  spec.norm = NormKind::rms_norm;
  SINTER_TRY(config.number(spec.norm_eps, "norm_eps", {"rms_norm_eps"}, 1e-6));
  SINTER_TRY(config.activation(spec.activation, {"hidden_act"}, "silu"));
  spec.gated = true;
  SINTER_TRY(config.rope(spec, {.theta = {"rope_theta"}, .partial = {"partial_rotary_factor"}}));
  SINTER_TRY(config.flag(spec.qkv_bias, "qkv_bias", {"attention_bias"}, false));
  spec.attention_out_bias = spec.qkv_bias;
  SINTER_TRY(config.flag(spec.mlp_bias, "mlp_bias", {"mlp_bias"}, false));
  SINTER_TRY(config.flag(spec.tied, "tied", {"tie_word_embeddings"}, false));
  spec.attention_scale = 1.0 / std::sqrt(static_cast<double>(spec.head_dim));
  return HfModel{spec, llama_weight_map()};
}

}  // namespace sinter
