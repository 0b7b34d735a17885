// granite: Llama with a factor each for embeddings, branches, scores and logits.
#include "frontends/huggingface/config.h"

namespace sinter {

Result<HfModel> read_hf_granite(HfConfig& config) {
  SINTER_LET(spec, read_llama_fields(config));
  SINTER_TRY(config.rope(spec, {.theta = {"rope_theta"}}));
  SINTER_TRY(config.flag(spec.qkv_bias, "qkv_bias", {"attention_bias"}, false));
  spec.attention_out_bias = spec.qkv_bias;
  SINTER_TRY(config.flag(spec.mlp_bias, "mlp_bias", {"mlp_bias"}, false));
  SINTER_TRY(config.number(spec.embed_scale, "embed_scale", {"embedding_multiplier"}, 1.0));
  SINTER_TRY(config.number(spec.residual_scale, "residual_scale", {"residual_multiplier"}, 1.0));
  SINTER_TRY(config.number(spec.attention_scale, "attention_scale", {"attention_multiplier"}, 1.0));
  SINTER_TRY(config.number(spec.logit_divisor, "logit_divisor", {"logits_scaling"}, 1.0));
  return HfModel{std::move(spec), llama_weight_map()};
}

}  // namespace sinter
