// modernbert: an encoder with norms before its branches, rotary positions, a gated MLP, and windows
// on two layers of three, which have other rotary positions.
#include <cmath>

#include "frontends/huggingface/config.h"

namespace sinter {

namespace {

WeightMap modernbert_weight_map(const ModelSpec& spec) {
  WeightMap map{.prefixes = {"model.", ""},
                .ignorable = {".rotary_emb.inv_freq"},
                .foreign = {"head.", "decoder."}};
  add_rules(map, "embed", "embeddings.tok_embeddings");
  add_rules(map, "embed.norm", "embeddings.norm");
  add_rules(map, "final_norm", "final_norm");
  add_layer_rule(map, "norm1", "attn_norm");
  add_layer_rule(map, "attn_out", "attn.Wo");
  add_layer_rule(map, "norm2", "mlp_norm");
  add_layer_rule(map, "mlp.down", "mlp.Wo");
  int64_t begin = 0;
  for (const std::string which : {"q", "k", "v"}) {
    add_layer_rule(map, which, "attn.Wqkv", {.group_rows = 3 * spec.hidden, .begin = begin});
    begin += spec.hidden;
  }
  begin = 0;
  for (const std::string which : {"mlp.gate", "mlp.up"}) {
    add_layer_rule(map, which, "mlp.Wi", {.group_rows = 2 * spec.ffn, .begin = begin});
    begin += spec.ffn;
  }
  return map;
}

/// Windows and the two sets of rotary positions.
Status read_windows(HfConfig& config, ModelSpec& spec) {
  int64_t window = 0, period = 0;
  SINTER_TRY(config.size(window, "window", {"local_attention"}, 128));
  SINTER_TRY(config.size(period, "windowed", {"global_attn_every_n_layers"}, 3));
  // Half of it on each side, and the token itself.
  SINTER_TRY(config.windows(spec, window / 2 * 2 + 1, true,
                            [&](int64_t layer) { return layer % period != 0; }));
  return config.layered_rope(spec, {.theta = {"global_rope_theta"}, .default_theta = 160000.0},
                             {.theta = {"local_rope_theta"}});
}

}  // namespace

Result<HfModel> read_hf_modernbert(HfConfig& config) {
  ModelSpec spec;
  spec.encoder = true;
  SINTER_TRY(config.sizes(spec));
  SINTER_TRY(config.head_dim(spec, {}));
  spec.kv_heads = spec.heads;
  SINTER_TRY(config.number(spec.norm_eps, "norm_eps", {"norm_eps"}, 1e-5));
  SINTER_TRY(config.flag(spec.norm_bias, "norm_bias", {"norm_bias"}, false));
  SINTER_TRY(config.activation(spec.activation, {"hidden_activation"}, "gelu"));
  SINTER_TRY(config.flag(spec.qkv_bias, "qkv_bias", {"attention_bias"}, false));
  spec.attention_out_bias = spec.qkv_bias;
  SINTER_TRY(config.flag(spec.mlp_bias, "mlp_bias", {"mlp_bias"}, false));
  SINTER_TRY(read_windows(config, spec));
  // The first files say these beside the keys that count; no class reads them.
  SINTER_TRY(config.find("positions", {"position_embedding_type"}));
  SINTER_TRY(config.find("norm_eps.copy", {"layer_norm_eps"}));
  SINTER_TRY(config.find("tied", {"tie_word_embeddings"}));  // of a head that is not read
  SINTER_TRY(refuse_decoder(config));
  spec.gated = true;
  spec.embed_norm = true;
  spec.first_norm = false;  // the embeddings are normed
  spec.attention_scale = 1.0 / std::sqrt(static_cast<double>(spec.head_dim));
  return HfModel{spec, modernbert_weight_map(spec)};
}

}  // namespace sinter
