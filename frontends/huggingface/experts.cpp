// Families with experts in place of the MLP: mixtral (Mistral), olmoe (Llama with norms of all of q
// and k), granitemoe (Granite), qwen2_moe (Qwen 2, with a shared expert) and qwen3_moe (Qwen 3).
// Layers of the last two can have an MLP.
#include "frontends/huggingface/config.h"

namespace sinter {

namespace {

/// Defaults of a class of transformers, for keys that its files lack.
struct RouterDefaults {
  int64_t count, chosen;
};

Status read_router(HfConfig& config, Experts& experts, const RouterDefaults& defaults) {
  SINTER_TRY(config.size(experts.count, "experts.count", {"num_experts", "num_local_experts"},
                         defaults.count));
  return config.size(experts.chosen, "experts.chosen", {"num_experts_per_tok"}, defaults.chosen);
}

/// The layers with experts: each `decoder_sparse_step`-th one that is not in `mlp_only_layers`.
Status read_sparse_layers(HfConfig& config, ModelSpec& spec) {
  Experts& experts = *spec.experts;
  int64_t step = 0;
  SINTER_TRY(config.size(step, "experts.sparse", {"decoder_sparse_step"}, 1));
  const int64_t layers = std::min(spec.layers, kMaxLayers);
  for (int64_t layer = 0; layer < layers; ++layer)
    experts.sparse.push_back((layer + 1) % step == 0);
  SINTER_LET(dense, config.find("experts.sparse", {"mlp_only_layers"}));
  if (dense.present()) {
    SINTER_LET(list, dense.array());
    for (size_t i = 0; i < list->size(); ++i) {
      SINTER_LET(layer, dense[i].integer(0, layers - 1));
      experts.sparse[static_cast<size_t>(layer)] = false;
    }
  }
  // One spec for one meaning.
  if (!llvm::is_contained(experts.sparse, true)) {
    spec.experts.reset();
  } else if (!llvm::is_contained(experts.sparse, false)) {
    experts.sparse.clear();
  }
  return {};
}

Status read_qwen_experts(HfConfig& config, ModelSpec& spec, const RouterDefaults& defaults,
                         int64_t ffn) {
  Experts& experts = spec.experts.emplace();
  SINTER_TRY(read_router(config, experts, defaults));
  SINTER_TRY(config.size(experts.ffn, "experts.ffn", {"moe_intermediate_size"}, ffn));
  return config.flag(experts.normalized, "experts.normalized", {"norm_topk_prob"}, false);
}

}  // namespace

Result<HfModel> read_hf_mixtral(HfConfig& config) {
  SINTER_LET(spec, read_llama_fields(config, {.kv_heads = 8, .norm_eps = 1e-5}));
  std::optional<int64_t> window;
  SINTER_TRY(config.optional_size(window, "window", {"sliding_window"}));
  SINTER_TRY(config.windows(spec, window, false, [](int64_t) { return true; }));
  SINTER_TRY(config.rope(spec, {.theta = {"rope_theta"}, .default_theta = 1e6}));
  spec.experts = {.ffn = spec.ffn, .normalized = true, .wide_weights = true};
  SINTER_TRY(read_router(config, *spec.experts, {.count = 8, .chosen = 2}));
  WeightMap map = llama_weight_map();
  add_expert_rules(map, "block_sparse_moe", "w1", "w3", "w2");
  return HfModel{std::move(spec), std::move(map)};
}

Result<HfModel> read_hf_olmoe(HfConfig& config) {
  SINTER_LET(spec, read_llama_fields(config, {.own_head_dim = false, .norm_eps = 1e-5}));
  SINTER_TRY(config.rope(spec, {.theta = {"rope_theta"}}));
  SINTER_TRY(config.flag(spec.qkv_bias, "qkv_bias", {"attention_bias"}, false));
  spec.attention_out_bias = spec.qkv_bias;
  spec.qk_norm = QkNorm::projection;
  SINTER_LET(clip, config.find("clip_qkv", {"clip_qkv"}));
  if (clip.present())
    return clip.mismatch("null", "bounds of queries, keys and values are not supported");
  spec.experts = {.ffn = spec.ffn};
  SINTER_TRY(read_router(config, *spec.experts, {.count = 64, .chosen = 8}));
  SINTER_TRY(
      config.flag(spec.experts->normalized, "experts.normalized", {"norm_topk_prob"}, false));
  WeightMap map = llama_weight_map();
  add_layer_rule(map, "q_norm", "self_attn.q_norm");
  add_layer_rule(map, "k_norm", "self_attn.k_norm");
  add_expert_rules(map, "mlp", "gate_proj", "up_proj", "down_proj");
  return HfModel{std::move(spec), std::move(map)};
}

Result<HfModel> read_hf_granitemoe(HfConfig& config) {
  SINTER_LET(model, read_hf_granite(config));
  ModelSpec& spec = model.spec;
  spec.experts = {.ffn = spec.ffn, .routing = Routing::choice_first};
  SINTER_TRY(read_router(config, *spec.experts, {.count = 8, .chosen = 2}));
  const auto name = [](const std::string& end) { return "{p}layers.{i}.block_sparse_moe." + end; };
  auto& rules = model.map.rules;
  rules["l{i}.router.weight"] = {.tensor = name("router.layer.weight")};
  rules["l{i}.experts.gate_up.weight"] = {.tensor = name("input_linear.weight")};
  rules["l{i}.experts.down.weight"] = {.tensor = name("output_linear.weight")};
  model.map.others = {{"l{i}.router.weight", {.tensor = name("router.weight")}},
                      {"l{i}.experts.gate_up.weight", {.tensor = name("experts.gate_up_proj")}},
                      {"l{i}.experts.down.weight", {.tensor = name("experts.down_proj")}}};
  return std::move(model);
}

Result<HfModel> read_hf_qwen2_moe(HfConfig& config) {
  SINTER_LET(spec, read_llama_fields(config, {.kv_heads = 16}));
  SINTER_LET(view, config.find("windowed", {"max_window_layers"}));
  SINTER_LET(sliding_layers, view.integer_or(28, 0));
  SINTER_LET(window, read_qwen_window(config));
  SINTER_TRY(config.windows(
      spec, window, true, [&](int64_t layer) { return layer % 2 == 0 && layer < sliding_layers; }));
  SINTER_TRY(config.rope(spec, {.theta = {"rope_theta"}}));
  SINTER_TRY(config.flag(spec.qkv_bias, "qkv_bias", {"qkv_bias"}, true));
  SINTER_TRY(read_qwen_experts(config, spec, {.count = 60, .chosen = 4}, 1408));
  SINTER_TRY(config.size(spec.experts->shared_ffn, "experts.shared_ffn",
                         {"shared_expert_intermediate_size"}, 5632));
  spec.experts->shared_gate = true;
  SINTER_TRY(read_sparse_layers(config, spec));
  WeightMap map = llama_weight_map();
  add_expert_rules(map, "mlp", "gate_proj", "up_proj", "down_proj");
  for (const std::string part : {"gate", "up", "down"})
    add_layer_rule(map, "shared." + part, "mlp.shared_expert." + part + "_proj");
  add_layer_rule(map, "shared_gate", "mlp.shared_expert_gate");
  return HfModel{std::move(spec), std::move(map)};
}

Result<HfModel> read_hf_qwen3_moe(HfConfig& config) {
  SINTER_LET(spec, read_llama_fields(config, {.kv_heads = 4}));
  SINTER_TRY(config.find("windowed", {"max_window_layers"}));  // in its files; no class reads it
  SINTER_LET(window, read_qwen_window(config));
  SINTER_TRY(config.windows(spec, window, false, [](int64_t) { return true; }));
  SINTER_TRY(config.rope(spec, {.theta = {"rope_theta"}}));
  SINTER_TRY(config.flag(spec.qkv_bias, "qkv_bias", {"attention_bias"}, false));
  spec.attention_out_bias = spec.qkv_bias;
  spec.qk_norm = QkNorm::head;
  SINTER_TRY(read_qwen_experts(config, spec, {.count = 128, .chosen = 8}, 768));
  SINTER_TRY(read_sparse_layers(config, spec));
  WeightMap map = llama_weight_map();
  add_layer_rule(map, "q_norm", "self_attn.q_norm");
  add_layer_rule(map, "k_norm", "self_attn.k_norm");
  add_expert_rules(map, "mlp", "gate_proj", "up_proj", "down_proj");
  return HfModel{std::move(spec), std::move(map)};
}

}  // namespace sinter
