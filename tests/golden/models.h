// The models of tests/golden.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

namespace sinter {

/// Decoders whose references hold for a model that is loaded without options.
inline constexpr const char* kGoldenDecoders[] = {"falcon_multi_query",
                                                  "falcon_new_two_norms",
                                                  "falcon_sequential",
                                                  "gemma",
                                                  "gemma2",
                                                  "gemma3_text",
                                                  "gpt2",
                                                  "gpt2_switches",
                                                  "gpt_neox_no_bias_full_rotary",
                                                  "gpt_neox_parallel",
                                                  "gpt_neox_sequential",
                                                  "granite",
                                                  "granitemoe",
                                                  "llama",
                                                  "llama3_gqa_scaled_rope",
                                                  "llama_bias_yarn",
                                                  "llama_linear_gelu",
                                                  "mistral_window",
                                                  "mixtral",
                                                  "olmo2",
                                                  "olmoe",
                                                  "opt",
                                                  "opt_no_bias_no_final_norm",
                                                  "opt_post_norm_projected",
                                                  "phi",
                                                  "phi3",
                                                  "phi3_longrope_short",
                                                  "phi_qk_norm_grouped",
                                                  "qwen2",
                                                  "qwen2_mixed_windows",
                                                  "qwen2_moe",
                                                  "qwen3",
                                                  "qwen3_bias_windows",
                                                  "qwen3_moe",
                                                  "smollm3"};

inline constexpr const char* kGoldenEncoders[] = {"bert_post_ln", "distilbert", "modernbert",
                                                  "mpnet",        "roberta",    "xlm_roberta"};

inline bool is_golden_encoder(const std::string& name) {
  return std::find(std::begin(kGoldenEncoders), std::end(kGoldenEncoders), name) !=
         std::end(kGoldenEncoders);
}

/// All models, each with a reference.
inline std::vector<std::string> golden_models() {
  std::vector<std::string> names(std::begin(kGoldenDecoders), std::end(kGoldenDecoders));
  names.insert(names.end(), std::begin(kGoldenEncoders), std::end(kGoldenEncoders));
  names.emplace_back("phi3_longrope_long");
  return names;
}

}  // namespace sinter
