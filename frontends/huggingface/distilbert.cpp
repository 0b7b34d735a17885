// distilbert: BERT without token types, with names of its own for everything.
#include <cmath>

#include "frontends/huggingface/config.h"

namespace sinter {

namespace {

WeightMap distilbert_weight_map() {
  WeightMap map{.prefixes = {"distilbert.", ""},
                .ignorable = {".position_ids"},
                .foreign = {"vocab_transform.", "vocab_layer_norm.", "vocab_projector."}};
  add_rules(map, "embed", "embeddings.word_embeddings");
  add_rules(map, "embed.pos", "embeddings.position_embeddings");
  add_rules(map, "embed.norm", "embeddings.LayerNorm");
  const auto add = [&](const std::string& weight, const std::string& tensor) {
    add_rules(map, "l{i}." + weight, "transformer.layer.{i}." + tensor);
  };
  add("q", "attention.q_lin");
  add("k", "attention.k_lin");
  add("v", "attention.v_lin");
  add("attn_out", "attention.out_lin");
  add("norm1", "sa_layer_norm");
  add("mlp.up", "ffn.lin1");
  add("mlp.down", "ffn.lin2");
  add("norm2", "output_layer_norm");
  return map;
}

}  // namespace

Result<HfModel> read_hf_distilbert(HfConfig& config) {
  ModelSpec spec;
  spec.encoder = true;
  SINTER_TRY(config.size(spec.vocabulary, "vocabulary", {"vocab_size"}));
  SINTER_TRY(config.size(spec.hidden, "hidden", {"dim", "hidden_size"}));
  SINTER_TRY(config.size(spec.layers, "layers", {"n_layers", "num_hidden_layers"}));
  SINTER_TRY(config.size(spec.heads, "heads", {"n_heads", "num_attention_heads"}));
  SINTER_TRY(config.size(spec.ffn, "ffn", {"hidden_dim"}));
  SINTER_TRY(config.size(spec.max_positions, "max_positions", {"max_position_embeddings"}));
  SINTER_TRY(config.head_dim(spec, {}));
  spec.kv_heads = spec.heads;
  spec.norm_eps = 1e-12;  // no key says it
  SINTER_TRY(config.activation(spec.activation, {"activation"}, "gelu"));
  // Positions are read from the checkpoint, however they were made.
  SINTER_TRY(config.find("positions", {"sinusoidal_pos_embds"}));
  for (const char* key : {"tie_word_embeddings", "tie_weights_"})  // of a head that is not read
    SINTER_TRY(config.find("tied", {key}));
  SINTER_TRY(refuse_decoder(config));
  spec.norm_place = NormPlace::after;
  spec.embed_norm = true;
  spec.final_norm = false;
  spec.qkv_bias = spec.attention_out_bias = spec.mlp_bias = true;
  spec.attention_scale = 1.0 / std::sqrt(static_cast<double>(spec.head_dim));
  return HfModel{std::move(spec), distilbert_weight_map()};
}

}  // namespace sinter
