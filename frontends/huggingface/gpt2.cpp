// gpt2: learned positions, LayerNorm, fused qkv; the four projections are stored [in, out].
#include <cmath>

#include "frontends/huggingface/config.h"

namespace sinter {

namespace {

WeightMap gpt2_weight_map(const ModelSpec& spec) {
  WeightMap map{.prefixes = {"transformer.", ""},
                .rules = {{"embed.weight", {.tensor = "{p}wte.weight"}},
                          {"embed.pos.weight", {.tensor = "{p}wpe.weight"}},
                          {"lm_head.weight", {.tensor = "lm_head.weight"}}},
                .ignorable = {".attn.bias", ".attn.masked_bias"}};
  const TensorRule transposed{.transposed = true};
  add_rules(map, "l{i}.norm1", "h.{i}.ln_1");
  add_rules(map, "l{i}.norm2", "h.{i}.ln_2");
  add_rules(map, "final_norm", "ln_f");
  add_rules(map, "l{i}.attn_out", "h.{i}.attn.c_proj", transposed);
  add_rules(map, "l{i}.mlp.up", "h.{i}.mlp.c_fc", transposed);
  add_rules(map, "l{i}.mlp.down", "h.{i}.mlp.c_proj", transposed);
  // c_attn: columns q | k | v.
  int64_t begin = 0;
  for (const std::string which : {"q", "k", "v"}) {
    add_rules(map, "l{i}." + which, "h.{i}.attn.c_attn",
              {.transposed = true, .group_rows = 3 * spec.hidden, .begin = begin});
    begin += spec.hidden;
  }
  return map;
}

}  // namespace

Result<HfModel> read_hf_gpt2(HfConfig& config) {
  ModelSpec spec;
  SINTER_TRY(config.size(spec.vocabulary, "vocabulary", {"vocab_size"}));
  SINTER_TRY(config.size(spec.hidden, "hidden", {"n_embd", "hidden_size"}));
  SINTER_TRY(config.size(spec.layers, "layers", {"n_layer", "num_hidden_layers"}));
  SINTER_TRY(config.size(spec.heads, "heads", {"n_head", "num_attention_heads"}));
  SINTER_TRY(
      config.size(spec.max_positions, "max_positions", {"n_positions", "max_position_embeddings"}));
  SINTER_TRY(config.size(spec.ffn, "ffn", {"n_inner"}, 4 * spec.hidden));
  SINTER_TRY(config.head_dim(spec, {}));
  spec.kv_heads = spec.heads;
  SINTER_TRY(config.number(spec.norm_eps, "norm_eps", {"layer_norm_epsilon"}, 1e-5));
  SINTER_TRY(config.activation(spec.activation, {"activation_function"}, "gelu_new"));
  SINTER_TRY(config.flag(spec.tied, "tied", {"tie_word_embeddings"}, true));
  SINTER_TRY(config.flag(spec.scale_by_inverse_layer, "scale_by_inverse_layer",
                         {"scale_attn_by_inverse_layer_idx"}, false));
  bool scaled = true;
  SINTER_TRY(config.flag(scaled, "attention_scale", {"scale_attn_weights"}, true));
  spec.attention_scale = scaled ? 1.0 / std::sqrt(static_cast<double>(spec.head_dim)) : 1.0;
  spec.qkv_bias = spec.attention_out_bias = spec.mlp_bias = true;
  return HfModel{spec, gpt2_weight_map(spec)};
}

}  // namespace sinter
