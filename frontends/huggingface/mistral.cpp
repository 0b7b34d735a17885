// mistral: Llama with a window on all layers, where the config gives its size.
#include "frontends/huggingface/config.h"

namespace sinter {

Result<HfModel> read_hf_mistral(HfConfig& config) {
  SINTER_LET(spec, read_llama_fields(config, {.kv_heads = 8}));
  std::optional<int64_t> window;
  SINTER_TRY(config.optional_size(window, "window", {"sliding_window"}, 4096));
  SINTER_TRY(config.windows(spec, window, false, [](int64_t) { return true; }));
  SINTER_TRY(config.rope(spec, {.theta = {"rope_theta"}}));
  return HfModel{std::move(spec), llama_weight_map()};
}

}  // namespace sinter
