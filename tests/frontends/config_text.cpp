#include "frontends/config_text.h"

namespace sinter::testing {

std::string without(std::string config, const std::string& key) {
  const size_t at = config.find("\n  \"" + key + "\":");
  REQUIRE_MESSAGE(at != std::string::npos, key);
  config.erase(at, config.find('\n', at + 1) - at);
  // The last member has no comma.
  const size_t last = config.find_last_not_of("\n}");
  if (config[last] == ',') config.erase(last, 1);
  return config;
}

std::string with(std::string config, const std::string& key, const std::string& value) {
  if (config.find("\n  \"" + key + "\":") != std::string::npos) config = without(config, key);
  return "{\n  \"" + key + "\": " + value + "," + config.substr(1);
}

std::string gpt2_config() {
  return R"({
  "model_type": "gpt2",
  "architectures": ["GPT2LMHeadModel"],
  "vocab_size": 40,
  "n_embd": 12,
  "n_head": 3,
  "n_layer": 1,
  "n_positions": 20,
  "n_ctx": 10,
  "n_inner": null,
  "activation_function": "gelu_new",
  "layer_norm_epsilon": 1e-05,
  "attn_pdrop": 0.1,
  "eos_token_id": 39
})";
}

std::string gpt_neox_config() {
  return R"({
  "model_type": "gpt_neox",
  "architectures": ["GPTNeoXForCausalLM"],
  "vocab_size": 40,
  "hidden_size": 16,
  "num_attention_heads": 2,
  "num_hidden_layers": 1,
  "intermediate_size": 24,
  "max_position_embeddings": 20,
  "hidden_act": "gelu",
  "layer_norm_eps": 1e-05,
  "use_parallel_residual": true,
  "rotary_pct": 0.5,
  "rotary_emb_base": 10000,
  "torch_dtype": "float16",
  "eos_token_id": 0
})";
}

std::string llama_config() {
  return R"({
  "model_type": "llama",
  "architectures": ["LlamaForCausalLM"],
  "vocab_size": 40,
  "hidden_size": 12,
  "num_attention_heads": 4,
  "num_key_value_heads": 2,
  "head_dim": 4,
  "num_hidden_layers": 1,
  "intermediate_size": 20,
  "max_position_embeddings": 20,
  "hidden_act": "silu",
  "rms_norm_eps": 1e-06,
  "rope_theta": 500000.0,
  "torch_dtype": "bfloat16",
  "tie_word_embeddings": false,
  "eos_token_id": [2, 5]
})";
}

std::string experts_config(const std::string& model_type) {
  std::string config = without(without(llama_config(), "architectures"), "head_dim");
  for (const auto& [key, value] : {std::pair("model_type", '"' + model_type + '"'),
                                   {"hidden_size", "16"},
                                   {"num_experts", "4"},
                                   {"num_experts_per_tok", "2"},
                                   {"router_aux_loss_coef", "0.001"},
                                   {"output_router_logits", "false"}})
    config = with(config, key, value);
  return config;
}

Result<HfModel> read_config(const std::string& config, const std::string& generation) {
  SINTER_LET(document, parse_json(config, "config.json"));
  if (generation.empty()) return read_hf_config(document, nullptr, "small");
  SINTER_LET(other, parse_json(generation, "generation_config.json"));
  return read_hf_config(document, &other, "small");
}

}  // namespace sinter::testing
