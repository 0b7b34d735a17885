// bert (BERT, MiniLM, BGE, E5 ...): an encoder that norms after its branches, with token types.
#include <cmath>

#include "frontends/huggingface/config.h"

namespace sinter {

WeightMap bert_weight_map(const std::string& model) {
  WeightMap map{
      .prefixes = {model + ".", ""},
      .ignorable = {".position_ids"},
      .foreign = {"pooler.", model + ".pooler.", "cls."},
      .spellings = {{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}}};
  const auto add = [&](const std::string& weight, const std::string& tensor) {
    add_rules(map, weight, tensor);
  };
  add("embed", "embeddings.word_embeddings");
  add("embed.pos", "embeddings.position_embeddings");
  add("embed.type", "embeddings.token_type_embeddings");
  add("embed.norm", "embeddings.LayerNorm");
  add("l{i}.q", "encoder.layer.{i}.attention.self.query");
  add("l{i}.k", "encoder.layer.{i}.attention.self.key");
  add("l{i}.v", "encoder.layer.{i}.attention.self.value");
  add("l{i}.attn_out", "encoder.layer.{i}.attention.output.dense");
  add("l{i}.norm1", "encoder.layer.{i}.attention.output.LayerNorm");
  add("l{i}.mlp.up", "encoder.layer.{i}.intermediate.dense");
  add("l{i}.mlp.down", "encoder.layer.{i}.output.dense");
  add("l{i}.norm2", "encoder.layer.{i}.output.LayerNorm");
  return map;
}

Status refuse_decoder(HfConfig& config) {
  SINTER_LET(decoder, config.find("is_decoder", {"is_decoder"}));
  SINTER_LET(decodes, decoder.boolean_or(false));
  if (decodes) return decoder.mismatch("false", "decoders of this model_type are not supported");
  return {};
}

Result<ModelSpec> read_bert_fields(HfConfig& config) {
  ModelSpec spec;
  spec.encoder = true;
  SINTER_TRY(config.sizes(spec));
  SINTER_TRY(config.head_dim(spec, {}));
  spec.kv_heads = spec.heads;
  SINTER_TRY(config.number(spec.norm_eps, "norm_eps", {"layer_norm_eps"}, 1e-12));
  SINTER_TRY(config.activation(spec.activation, {"hidden_act"}, "gelu"));
  SINTER_LET(kind, config.find("position_embedding_type", {"position_embedding_type"}));
  SINTER_LET(positions, kind.string_or("absolute"));
  if (positions != "absolute")
    return kind.mismatch("\"absolute\"", "other positions are not supported");
  SINTER_TRY(refuse_decoder(config));
  SINTER_LET(tied, config.find("tied", {"tie_word_embeddings"}));  // of a head that is not read
  SINTER_TRY(tied.boolean_or(true));
  spec.norm_place = NormPlace::after;
  spec.embed_norm = true;
  spec.final_norm = false;
  spec.qkv_bias = spec.attention_out_bias = spec.mlp_bias = true;
  spec.attention_scale = 1.0 / std::sqrt(static_cast<double>(spec.head_dim));
  return spec;
}

Result<HfModel> read_hf_bert(HfConfig& config) {
  SINTER_LET(spec, read_bert_fields(config));
  SINTER_TRY(config.size(spec.token_types, "token_types", {"type_vocab_size"}, 2));
  return HfModel{std::move(spec), bert_weight_map("bert")};
}

}  // namespace sinter
