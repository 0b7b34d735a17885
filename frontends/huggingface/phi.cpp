// phi (Phi 1, 1.5, 2): parallel branches after one norm, partial rotary, biases everywhere.
#include <cmath>

#include "frontends/huggingface/config.h"

namespace sinter {

namespace {

WeightMap phi_weight_map() {
  WeightMap map = llama_weight_map();
  add_rules(map, "final_norm", "final_layernorm");
  map.rules["lm_head.bias"] = {.tensor = "lm_head.bias"};
  add_layer_rule(map, "attn_out", "self_attn.dense");
  add_layer_rule(map, "q_norm", "self_attn.q_layernorm");
  add_layer_rule(map, "k_norm", "self_attn.k_layernorm");
  add_layer_rule(map, "mlp.up", "mlp.fc1");
  add_layer_rule(map, "mlp.down", "mlp.fc2");
  return map;
}

}  // namespace

Result<HfModel> read_hf_phi(HfConfig& config) {
  ModelSpec spec;
  SINTER_TRY(config.size(spec.vocabulary, "vocabulary", {"vocab_size"}));
  SINTER_TRY(config.size(spec.hidden, "hidden", {"hidden_size"}));
  SINTER_TRY(config.size(spec.layers, "layers", {"num_hidden_layers"}));
  SINTER_TRY(config.size(spec.heads, "heads", {"num_attention_heads"}));
  SINTER_TRY(config.size(spec.kv_heads, "kv_heads", {"num_key_value_heads"}, spec.heads));
  SINTER_TRY(config.size(spec.ffn, "ffn", {"intermediate_size"}));
  SINTER_TRY(config.size(spec.max_positions, "max_positions", {"max_position_embeddings"}));
  SINTER_TRY(config.head_dim(spec, {}));
  SINTER_TRY(config.number(spec.norm_eps, "norm_eps", {"layer_norm_eps"}, 1e-5));
  SINTER_TRY(config.activation(spec.activation, {"hidden_act"}, "gelu_new"));
  SINTER_TRY(
      config.rope(spec, {.theta = {"rope_theta"}, .default_partial = 0.5, .turns_part = true}));
  bool normed = false;
  SINTER_TRY(config.flag(normed, "qk_norm", {"qk_layernorm"}, false));
  if (normed) spec.qk_norm = QkNorm::head;
  SINTER_TRY(config.flag(spec.tied, "tied", {"tie_word_embeddings"}, false));
  spec.residual = ResidualForm::parallel;
  spec.shared_norm = true;
  spec.qkv_bias = spec.attention_out_bias = spec.mlp_bias = spec.head_bias = true;
  spec.attention_scale = 1.0 / std::sqrt(static_cast<double>(spec.head_dim));
  return HfModel{std::move(spec), phi_weight_map()};
}

}  // namespace sinter
