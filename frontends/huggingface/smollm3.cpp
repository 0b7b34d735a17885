// smollm3: Llama in which the heads of every fourth layer do not rotate. Those layers can have a
// window.
#include "frontends/huggingface/config.h"

namespace sinter {

namespace {

Status read_rotated(HfConfig& config, ModelSpec& spec) {
  int64_t period = 0;
  SINTER_TRY(config.size(period, "rotated", {"no_rope_layer_interval"}, 4));
  SINTER_LET(view, config.find("rotated", {"no_rope_layers"}));
  const int64_t layers = std::min(spec.layers, kMaxLayers);
  for (int64_t layer = 0; layer < layers; ++layer) {
    int64_t rotates = (layer + 1) % period != 0;
    if (view.present()) {
      SINTER_TRY(view.array());
      SINTER_LET(said, view[static_cast<size_t>(layer)].integer(0, 1));
      rotates = said;
    }
    spec.rotated.push_back(rotates == 1);
  }
  return {};
}

}  // namespace

Result<HfModel> read_hf_smollm3(HfConfig& config) {
  SINTER_LET(spec, read_llama_fields(config, {.kv_heads = 4, .tied = true}));
  SINTER_TRY(read_rotated(config, spec));
  bool slides = false;
  std::optional<int64_t> window;
  SINTER_TRY(config.flag(slides, "window", {"use_sliding_window"}, false));
  if (slides)
    SINTER_TRY(config.optional_size(window, "window", {"sliding_window"}));
  else
    SINTER_TRY(config.find("window", {"sliding_window"}));
  SINTER_TRY(config.find("windowed", {"max_window_layers"}));  // in its files; no class reads it
  const std::vector<bool> rotated = spec.rotated;
  SINTER_TRY(config.windows(spec, window, true,
                            [&](int64_t layer) { return !rotated[static_cast<size_t>(layer)]; }));
  if (!llvm::is_contained(spec.rotated, false)) spec.rotated.clear();  // one spec for one meaning
  SINTER_TRY(config.rope(spec, {.theta = {"rope_theta"}, .default_theta = 2e6}));
  SINTER_TRY(config.flag(spec.qkv_bias, "qkv_bias", {"attention_bias"}, false));
  spec.attention_out_bias = spec.qkv_bias;
  SINTER_TRY(config.flag(spec.mlp_bias, "mlp_bias", {"mlp_bias"}, false));
  return HfModel{std::move(spec), llama_weight_map()};
}

}  // namespace sinter
