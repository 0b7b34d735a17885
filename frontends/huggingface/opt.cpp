// opt: learned positions whose table begins with two unused rows; the 350m model norms after its
// branches and has an embedding table of another width.
#include <cmath>

#include "frontends/huggingface/config.h"

namespace sinter {

namespace {

WeightMap opt_weight_map(const ModelSpec& spec) {
  // Row p + 2 belongs to position p.
  constexpr int64_t kFirstPosition = 2;
  WeightMap map{.prefixes = {"model.decoder.", "decoder.", ""},
                .rules = {{"embed.weight", {.tensor = "{p}embed_tokens.weight"}},
                          {"embed.in.weight", {.tensor = "{p}project_in.weight"}},
                          {"embed.out.weight", {.tensor = "{p}project_out.weight"}},
                          {"embed.pos.weight",
                           {.tensor = "{p}embed_positions.weight",
                            .group_rows = spec.max_positions + kFirstPosition,
                            .begin = kFirstPosition}},
                          {"final_norm.weight", {.tensor = "{p}final_layer_norm.weight"}},
                          {"final_norm.bias", {.tensor = "{p}final_layer_norm.bias"}},
                          {"lm_head.weight", {.tensor = "lm_head.weight"}}}};
  add_layer_rule(map, "norm1", "self_attn_layer_norm");
  add_layer_rule(map, "norm2", "final_layer_norm");
  add_layer_rule(map, "q", "self_attn.q_proj");
  add_layer_rule(map, "k", "self_attn.k_proj");
  add_layer_rule(map, "v", "self_attn.v_proj");
  add_layer_rule(map, "attn_out", "self_attn.out_proj");
  add_layer_rule(map, "mlp.up", "fc1");
  add_layer_rule(map, "mlp.down", "fc2");
  return map;
}

}  // namespace

Result<HfModel> read_hf_opt(HfConfig& config) {
  ModelSpec spec;
  SINTER_TRY(config.size(spec.vocabulary, "vocabulary", {"vocab_size"}));
  SINTER_TRY(config.size(spec.hidden, "hidden", {"hidden_size", "d_model"}));
  SINTER_TRY(config.size(spec.layers, "layers", {"num_hidden_layers"}));
  SINTER_TRY(config.size(spec.heads, "heads", {"num_attention_heads"}));
  SINTER_TRY(config.size(spec.ffn, "ffn", {"ffn_dim"}));
  SINTER_TRY(config.size(spec.max_positions, "max_positions", {"max_position_embeddings"}));
  SINTER_TRY(config.head_dim(spec, {}));
  spec.kv_heads = spec.heads;
  int64_t width = 0;
  SINTER_TRY(config.size(width, "embed_width", {"word_embed_proj_dim"}, spec.hidden));
  if (width != spec.hidden) spec.embed_width = width;
  SINTER_TRY(config.activation(spec.activation, {"activation_function"}, "relu"));
  bool before = true, without_final = false, affine = true;
  SINTER_TRY(config.flag(before, "norm_place", {"do_layer_norm_before"}, true));
  SINTER_TRY(config.flag(without_final, "final_norm", {"_remove_final_layer_norm"}, false));
  SINTER_TRY(config.flag(affine, "norm", {"layer_norm_elementwise_affine"}, true));
  if (!affine)
    return fail("norms without weights are not supported", config.places()("norm"),
                "give a model whose norms have weights");
  spec.norm_place = before ? NormPlace::before : NormPlace::after;
  spec.final_norm = before && !without_final;
  SINTER_TRY(config.flag(spec.mlp_bias, "mlp_bias", {"enable_bias"}, true));
  spec.qkv_bias = spec.attention_out_bias = spec.mlp_bias;
  SINTER_TRY(config.flag(spec.tied, "tied", {"tie_word_embeddings"}, true));
  spec.attention_scale = 1.0 / std::sqrt(static_cast<double>(spec.head_dim));
  return HfModel{spec, opt_weight_map(spec)};
}

}  // namespace sinter
