// olmo2: norms on what the branches give, and on all of q and of k before the heads part.
#include "frontends/huggingface/config.h"

namespace sinter {

Result<HfModel> read_hf_olmo2(HfConfig& config) {
  SINTER_LET(spec, read_llama_fields(config, {.own_head_dim = false, .norm_eps = 1e-5}));
  SINTER_TRY(config.rope(spec, {.theta = {"rope_theta"}}));
  SINTER_TRY(config.flag(spec.qkv_bias, "qkv_bias", {"attention_bias"}, false));
  spec.attention_out_bias = spec.qkv_bias;
  spec.norm = NormKind::rms_norm_wide;
  spec.norm_place = NormPlace::branch;
  spec.qk_norm = QkNorm::projection;
  WeightMap map = llama_weight_map();
  add_layer_rule(map, "post_norm1", "post_attention_layernorm");
  add_layer_rule(map, "post_norm2", "post_feedforward_layernorm");
  add_layer_rule(map, "q_norm", "self_attn.q_norm");
  add_layer_rule(map, "k_norm", "self_attn.k_norm");
  return HfModel{std::move(spec), std::move(map)};
}

}  // namespace sinter
