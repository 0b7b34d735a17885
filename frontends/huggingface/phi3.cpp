// phi3 (Phi 3, 3.5, 4): Llama with q, k, v in one tensor and gate, up in another; long positions.
#include "frontends/huggingface/config.h"

namespace sinter {

namespace {

WeightMap phi3_weight_map(const ModelSpec& spec) {
  WeightMap map = llama_weight_map();
  const int64_t q = spec.heads * spec.head_dim, kv = spec.kv_heads * spec.head_dim;
  add_layer_rule(map, "q", "self_attn.qkv_proj", {.group_rows = q + 2 * kv, .begin = 0});
  add_layer_rule(map, "k", "self_attn.qkv_proj", {.group_rows = q + 2 * kv, .begin = q});
  add_layer_rule(map, "v", "self_attn.qkv_proj", {.group_rows = q + 2 * kv, .begin = q + kv});
  add_layer_rule(map, "mlp.gate", "mlp.gate_up_proj", {.group_rows = 2 * spec.ffn, .begin = 0});
  add_layer_rule(map, "mlp.up", "mlp.gate_up_proj",
                 {.group_rows = 2 * spec.ffn, .begin = spec.ffn});
  return map;
}

}  // namespace

Result<HfModel> read_hf_phi3(HfConfig& config) {
  SINTER_LET(spec, read_llama_fields(config, {.norm_eps = 1e-5}));
  for (std::string_view key : {"full_attn_mod", "interpolate_factor"}) {  // of files of Phi 4
    SINTER_LET(view, config.find(key, {key}));
    SINTER_LET(value, view.integer_or(1));
    if (value != 1) return view.mismatch("1", "other values are not supported");
  }
  std::optional<int64_t> window;
  SINTER_TRY(config.optional_size(window, "window", {"sliding_window"}));
  SINTER_TRY(config.windows(spec, window, false, [](int64_t) { return true; }));
  constexpr std::string_view kTypes[] = {"default", "longrope", "su"};
  SINTER_TRY(config.rope(spec, {.theta = {"rope_theta"},
                                .turns_part = true,
                                .types = kTypes,
                                .original_max_positions = 4096}));
  return HfModel{spec, phi3_weight_map(spec)};
}

}  // namespace sinter
