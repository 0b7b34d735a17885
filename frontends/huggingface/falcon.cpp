// falcon (and its first name, RefinedWeb): parallel branches after one or two norms, or sequential
// ones; q, k and v in one tensor in three layouts.
#include <cmath>

#include "frontends/huggingface/config.h"

namespace sinter {

namespace {

WeightMap falcon_weight_map(const ModelSpec& spec, bool two_norms) {
  WeightMap map{.prefixes = {"transformer.", ""},
                .rules = {{"embed.weight", {.tensor = "{p}word_embeddings.weight"}},
                          {"final_norm.weight", {.tensor = "{p}ln_f.weight"}},
                          {"final_norm.bias", {.tensor = "{p}ln_f.bias"}},
                          {"lm_head.weight", {.tensor = "lm_head.weight"}}},
                .ignorable = {".inv_freq"}};
  const auto add = [&](const std::string& weight, const std::string& tensor,
                       const TensorRule& cut = {}) {
    add_rules(map, "l{i}." + weight, "h.{i}." + tensor, cut);
  };
  add("norm1", two_norms ? "ln_attn" : "input_layernorm");
  add("norm2", two_norms ? "ln_mlp" : "post_attention_layernorm");
  add("attn_out", "self_attention.dense");
  add("mlp.up", "mlp.dense_h_to_4h");
  add("mlp.down", "mlp.dense_4h_to_h");
  // query_key_value: for each key/value head its query heads, then k, then v. One key/value head
  // (multi_query) and one for every query head are cases of the same layout.
  const int64_t group = spec.heads / spec.kv_heads;
  int64_t begin = 0;
  for (const auto& [which, heads] :
       {std::pair("q", group), std::pair("k", int64_t{1}), std::pair("v", int64_t{1})}) {
    add(which, "self_attention.query_key_value",
        {.groups = spec.kv_heads, .group_rows = (group + 2) * spec.head_dim, .begin = begin});
    begin += heads * spec.head_dim;
  }
  return map;
}

}  // namespace

Result<HfModel> read_hf_falcon(HfConfig& config) {
  ModelSpec spec;
  SINTER_LET(type, config.find("model_type", {"model_type"}));
  SINTER_LET(type_name, type.string());
  SINTER_TRY(config.size(spec.vocabulary, "vocabulary", {"vocab_size"}));
  SINTER_TRY(config.size(spec.hidden, "hidden", {"hidden_size", "n_embed"}));
  SINTER_TRY(config.size(spec.layers, "layers", {"num_hidden_layers", "n_layer"}));
  SINTER_TRY(config.size(spec.heads, "heads", {"num_attention_heads", "n_head"}));
  SINTER_TRY(config.size(spec.max_positions, "max_positions", {"max_position_embeddings"}, 2048));
  SINTER_TRY(config.size(spec.ffn, "ffn", {"ffn_hidden_size"}, 4 * spec.hidden));
  SINTER_TRY(config.head_dim(spec, {}));

  bool renewed = false, multi_query = true, parallel = true, alibi = false;
  SINTER_TRY(
      config.flag(renewed, "renewed", {"new_decoder_architecture"}, type_name == "RefinedWeb"));
  SINTER_TRY(config.flag(multi_query, "kv_heads", {"multi_query"}, true));
  SINTER_TRY(config.flag(parallel, "residual", {"parallel_attn"}, true));
  SINTER_TRY(config.flag(alibi, "alibi", {"alibi"}, false));
  if (alibi)
    return fail("biases by distance (alibi) are not supported", config.places()("alibi"),
                "give a model with rotary positions");
  int64_t groups = 0;
  SINTER_TRY(config.size(groups, "kv_heads", {"num_kv_heads", "n_head_kv"}, spec.heads));
  if (!renewed && !multi_query && groups != spec.heads)
    return fail(fmt::format("{} key/value heads beside {} query heads", groups, spec.heads),
                config.places()("kv_heads"),
                "only the new decoder architecture shares them; remove the key");
  if (renewed && !parallel)
    return fail("sequential branches in the new decoder architecture", config.places()("residual"),
                "parallel_attn must be true there");
  spec.kv_heads = renewed ? groups : multi_query ? 1 : spec.heads;

  int64_t norms = 0;
  SINTER_TRY(config.size(norms, "shared_norm", {"num_ln_in_parallel_attn"}, renewed ? 2 : 1));
  if (norms > 2 || (norms == 2 && !renewed && parallel))
    return fail(fmt::format("{} norms before parallel branches", norms),
                config.places()("shared_norm"),
                "only the new decoder architecture has two, none has more");
  spec.residual = renewed || parallel ? ResidualForm::parallel : ResidualForm::sequential;
  spec.shared_norm = spec.residual == ResidualForm::parallel && norms == 1;
  SINTER_TRY(config.number(spec.norm_eps, "norm_eps", {"layer_norm_epsilon"}, 1e-5));
  SINTER_TRY(config.activation(spec.activation, {"activation"}, "gelu"));
  SINTER_TRY(config.rope(spec, {.theta = {"rope_theta"}}));
  SINTER_TRY(config.flag(spec.qkv_bias, "qkv_bias", {"bias"}, false));
  spec.attention_out_bias = spec.mlp_bias = spec.qkv_bias;
  SINTER_TRY(config.flag(spec.tied, "tied", {"tie_word_embeddings"}, true));
  spec.attention_scale = 1.0 / std::sqrt(static_cast<double>(spec.head_dim));
  if (spec.heads % spec.kv_heads != 0)  // the layout divides by it before the spec is checked
    return fail(
        fmt::format("{} query heads cannot share {} key/value heads", spec.heads, spec.kv_heads),
        config.places()("kv_heads"), "give a divisor of the number of query heads");
  return HfModel{spec,
                 falcon_weight_map(spec, spec.residual == ResidualForm::parallel && norms == 2)};
}

}  // namespace sinter
