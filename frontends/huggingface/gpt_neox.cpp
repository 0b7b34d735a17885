// gpt_neox (GPT-NeoX, Pythia): parallel residual, partial rotary, q, k and v interleaved per head.
#include <cmath>

#include "frontends/huggingface/config.h"

namespace sinter {

namespace {

WeightMap gpt_neox_weight_map(const ModelSpec& spec) {
  WeightMap map{.prefixes = {"gpt_neox.", ""},
                .rules = {{"embed.weight", {.tensor = "{p}embed_in.weight"}},
                          {"lm_head.weight", {.tensor = "embed_out.weight"}}},
                .ignorable = {".attention.bias", ".attention.masked_bias", ".rotary_emb.inv_freq"}};
  add_layer_rule(map, "norm1", "input_layernorm");
  add_layer_rule(map, "norm2", "post_attention_layernorm");
  add_rules(map, "final_norm", "final_layer_norm");
  add_layer_rule(map, "attn_out", "attention.dense");
  add_layer_rule(map, "mlp.up", "mlp.dense_h_to_4h");
  add_layer_rule(map, "mlp.down", "mlp.dense_4h_to_h");
  // query_key_value: for each head head_dim rows of q, then of k, then of v.
  int64_t begin = 0;
  for (const char* which : {"q", "k", "v"}) {
    add_layer_rule(map, which, "attention.query_key_value",
                   {.groups = spec.heads, .group_rows = 3 * spec.head_dim, .begin = begin});
    begin += spec.head_dim;
  }
  return map;
}

/// transformers reads `own` alone: a copy under a newer key may repeat it, not replace it.
Status refuse_lone_copy(HfConfig& config, std::string_view own, std::string_view copy,
                        double usual) {
  SINTER_LET(view, config.find(own, {own}));
  SINTER_LET(other, config.find(copy, {copy}));
  SINTER_LET(said, other.number_or(usual));
  if (view.present() || said == usual) return {};
  return other.mismatch(fmt::format("{}, which counts where there is no {}", usual, own),
                        fmt::format("say it as {}", own));
}

}  // namespace

Result<HfModel> read_hf_gpt_neox(HfConfig& config) {
  ModelSpec spec;
  SINTER_TRY(config.sizes(spec));
  SINTER_TRY(config.head_dim(spec, {}));
  spec.kv_heads = spec.heads;
  SINTER_TRY(config.number(spec.norm_eps, "norm_eps", {"layer_norm_eps"}, 1e-5));
  SINTER_TRY(config.activation(spec.activation, {"hidden_act"}, "gelu"));
  SINTER_TRY(refuse_lone_copy(config, "rotary_emb_base", "rope_theta", 10000.0));
  SINTER_TRY(refuse_lone_copy(config, "rotary_pct", "partial_rotary_factor", 0.25));
  SINTER_TRY(config.rope(spec, {.theta = {"rotary_emb_base", "rope_theta"},
                                .partial = {"rotary_pct", "partial_rotary_factor"},
                                .default_partial = 0.25,
                                .turns_part = true}));
  bool parallel = true;
  SINTER_TRY(config.flag(parallel, "residual", {"use_parallel_residual"}, true));
  spec.residual = parallel ? ResidualForm::parallel : ResidualForm::sequential;
  SINTER_TRY(config.flag(spec.qkv_bias, "qkv_bias", {"attention_bias"}, true));
  spec.attention_out_bias = spec.qkv_bias;
  spec.mlp_bias = true;
  SINTER_TRY(config.flag(spec.tied, "tied", {"tie_word_embeddings"}, false));
  spec.attention_scale = 1.0 / std::sqrt(static_cast<double>(spec.head_dim));
  return HfModel{spec, gpt_neox_weight_map(spec)};
}

}  // namespace sinter
