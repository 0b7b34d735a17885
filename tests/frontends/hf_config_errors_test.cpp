// Configs that must be refused: file, JSON pointer, both values and what to do stand in the
// message.
#include <doctest/doctest.h>

#include "frontends/config_text.h"

namespace sinter::hf_config_errors_test {
namespace {

using testing::gpt2_config;
using testing::gpt_neox_config;
using testing::llama_config;
using testing::with;
using testing::without;

void refuses(const std::string& config, const std::string& expected) {
  CHECK(testing::message_of(testing::read_config(config)) == expected);
}

TEST_CASE("sizes") {
  refuses(with(llama_config(), "num_attention_heads", "0"),
          "config.json: /num_attention_heads: expected an integer from 1 to 268435456, got 0; "
          "correct this value");
  refuses(with(llama_config(), "hidden_size", "-1"),
          "config.json: /hidden_size: expected an integer from 1 to 268435456, got -1; correct "
          "this value");
  refuses(with(llama_config(), "hidden_size", "4096.5"),
          "config.json: /hidden_size: expected an integer from 1 to 268435456, got 4096.5; correct "
          "this value");
  refuses(with(llama_config(), "vocab_size", "\"40\""),
          "config.json: /vocab_size: expected an integer from 1 to 268435456, got \"40\"; correct "
          "this value");
  refuses(with(llama_config(), "vocab_size", "4294967296"),
          "config.json: /vocab_size: expected an integer from 1 to 268435456, got 4294967296; "
          "correct this value");
  // More than tokens are chosen from.
  refuses(with(llama_config(), "vocab_size", "1048577"),
          "config.json: /vocab_size: vocabulary is 1048577, outside 1 .. 1048576; give the model's "
          "true size");
  refuses(without(llama_config(), "num_hidden_layers"),
          "config.json: /num_hidden_layers: the key is missing, expected an integer from 1 to "
          "268435456; add it");
  refuses(with(llama_config(), "num_hidden_layers", "100000000"),
          "config.json: /num_hidden_layers: layers is 100000000, outside 1 .. 4096; give the "
          "model's true size");
  refuses(with(gpt2_config(), "n_embd", "268435456"),
          "config.json: /n_head: hidden size 268435456 is not divisible by 3 heads; give the "
          "model's true sizes");
}

TEST_CASE("heads") {
  refuses(with(gpt2_config(), "n_head", "5"),
          "config.json: /n_head: hidden size 12 is not divisible by 5 heads; give the model's true "
          "sizes");
  refuses(with(llama_config(), "num_key_value_heads", "8"),
          "config.json: /num_key_value_heads: 4 query heads cannot share 8 key/value heads; give a "
          "divisor of the number of query heads (config.json: /num_attention_heads)");
  refuses(with(llama_config(), "num_key_value_heads", "3"),
          "config.json: /num_key_value_heads: 4 query heads cannot share 3 key/value heads; give a "
          "divisor of the number of query heads (config.json: /num_attention_heads)");
}

TEST_CASE("rotary positions") {
  refuses(with(llama_config(), "head_dim", "3"),
          "config.json: /head_dim: 3 of 3 head elements rotate, which is not an even number in 2 "
          ".. 3; elements rotate in pairs: give an even rotary size");
  refuses(with(gpt_neox_config(), "rotary_pct", "0.4"),
          "config.json: /rotary_pct: 3 of 8 head elements rotate, which is not an even number in 2 "
          ".. 8; elements rotate in pairs: give an even rotary size");
  refuses(with(gpt_neox_config(), "rotary_pct", "1.5"),
          "config.json: /rotary_pct: expected a number from 0 to 1, got 1.5; correct this value");
  refuses(with(llama_config(), "rope_theta", "0"),
          "config.json: /rope_theta: rope.theta is 0, not a number in 1e-30 .. 1e+30; give a "
          "positive finite number");
  refuses(with(llama_config(), "rope_theta", "1e400"),
          "config.json: /rope_theta: expected a number, got 1e400, which does not fit a double; "
          "correct this value");
  refuses(with(llama_config(), "rope_parameters", R"({"rope_theta": -1.5})"),
          "config.json: /rope_parameters/rope_theta: rope.theta is -1.5, not a number in 1e-30 .. "
          "1e+30; give a positive finite number");
  refuses(with(llama_config(), "rope_scaling", R"({"type": "ntk", "factor": 4})"),
          "config.json: /rope_scaling/type: rope type 'ntk' is not supported; supported: default, "
          "linear, dynamic, llama3, yarn, longrope, su");
  refuses(with(llama_config(), "rope_scaling", R"({"type": "linear"})"),
          "config.json: /rope_scaling/factor: the key is missing, expected a number; add it");
  refuses(with(llama_config(), "rope_scaling", R"({"type": "linear", "factor": 0})"),
          "config.json: /rope_scaling/factor: rope.factor is 0, not a number in 1e-30 .. 1000000; "
          "give a positive finite number");
  refuses(
      with(llama_config(), "rope_scaling", R"({"type": "linear", "factor": 2, "beta_fast": 32})"),
      "config.json: /rope_scaling/beta_fast: expected no such key in rotary positions of type "
      "linear, got 32; remove the key if it does not change the model's results");
  refuses(with(llama_config(), "rope_scaling",
               R"({"type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4})"),
          "config.json: /rope_scaling/high_freq_factor: high_freq_factor 4 is not above "
          "low_freq_factor 4; give a larger high_freq_factor");
  refuses(with(llama_config(), "rope_scaling", "8"),
          "config.json: /rope_scaling: expected an object, got 8; correct this value");
  refuses(with(gpt_neox_config(), "rope_theta", "500.0"),
          "config.json: /rope_theta: the value is 500, but /rotary_emb_base, which says the same "
          "thing, is 10000; remove the wrong one");
}

TEST_CASE("rotary positions: keys that transformers does not read for this family") {
  refuses(with(llama_config(), "partial_rotary_factor", "0.5"),
          "config.json: /partial_rotary_factor: expected 1, got 0.5; heads of this model_type turn "
          "as a whole");
  refuses(with(llama_config(), "rope_parameters", R"({"partial_rotary_factor": 0.5})"),
          "config.json: /rope_parameters/partial_rotary_factor: expected 1, got 0.5; heads of this "
          "model_type turn as a whole");
  CHECK(testing::read_config(with(llama_config(), "partial_rotary_factor", "1.0")));
  refuses(with(without(gpt_neox_config(), "rotary_emb_base"), "rope_theta", "500"),
          "config.json: /rope_theta: expected 10000, which counts where there is no "
          "rotary_emb_base, got 500; say it as rotary_emb_base");
  refuses(with(without(gpt_neox_config(), "rotary_pct"), "partial_rotary_factor", "0.5"),
          "config.json: /partial_rotary_factor: expected 0.25, which counts where there is no "
          "rotary_pct, got 0.5; say it as rotary_pct");
}

TEST_CASE("norms") {
  refuses(with(llama_config(), "rms_norm_eps", "0"),
          "config.json: /rms_norm_eps: norm_eps is 0, not a number in 1e-30 .. 1000000; give a "
          "positive finite number");
  refuses(with(llama_config(), "rms_norm_eps", "-1e-6"),
          "config.json: /rms_norm_eps: norm_eps is -1e-06, not a number in 1e-30 .. 1000000; give "
          "a positive finite number");
  refuses(with(llama_config(), "rms_norm_eps", "\"NaN\""),
          "config.json: /rms_norm_eps: expected a number, got \"NaN\"; correct this value");
  refuses(with(llama_config(), "rms_norm_eps", "NaN"),
          "config.json:2:19: /rms_norm_eps: not JSON: syntax error while parsing value - invalid "
          "literal, at \"\\\"rms_norm_eps\\\": N\"; correct the file or download it again");
}

TEST_CASE("families, activations, element types") {
  const std::string in_torch =
      "; load it with transformers and give it to torch.compile(model, backend=\"sinter\")";
  const std::string supported =
      in_torch +
      "; supported: bert, camembert, distilbert, falcon, gemma, gemma2, gemma3, gemma3_text, gpt2, "
      "gpt_neox, granite, granitemoe, llama, mistral, mixtral, modernbert, mpnet, olmo2, olmoe, "
      "opt, phi, phi3, qwen2, qwen2_moe, qwen3, qwen3_moe, RefinedWeb, RefinedWebModel, roberta, "
      "smollm3, xlm-roberta";
  refuses(with(llama_config(), "model_type", "\"mamba\\n\""),
          "config.json: /model_type: model_type 'mamba\\x0a' is not supported" + supported);
  for (const auto& [type, needs] :
       {std::pair("dbrx", "experts with a router or an MLP of their own kind"),
        {"mamba2", "state-space layers"},
        {"t5", "an encoder and a decoder in one model"},
        {"bloom", "positions by a slope of the scores (ALiBi)"}})
    refuses(with(llama_config(), "model_type", fmt::format("\"{}\"", type)),
            fmt::format("config.json: /model_type: model_type '{}' is not supported, it needs {}{}",
                        type, needs, supported));
  refuses(with(llama_config(), "num_local_experts", "8"),
          "config.json: /num_local_experts: expected no such key for this model_type, got 8; if "
          "it does not change the model's results, remove the key or give --ignore-key "
          "num_local_experts");
  refuses(without(llama_config(), "model_type"),
          "config.json: /model_type: the key is missing, expected a string; add it");
  refuses(with(llama_config(), "architectures", "[\"LlamaForSequenceClassification\"]"),
          "config.json: /architectures/0: architecture 'LlamaForSequenceClassification' is not "
          "supported" +
              in_torch + "; supported for this model_type: LlamaForCausalLM");
  refuses(
      with(llama_config(), "hidden_act", "\"mish\""),
      "config.json: /hidden_act: activation 'mish' is not supported; supported: gelu, gelu_python, "
      "gelu_new, gelu_pytorch_tanh, gelu_fast, quick_gelu, silu, swish, relu, tanh, sigmoid");
  refuses(with(llama_config(), "torch_dtype", "\"float8_e4m3fn\""),
          "config.json: /torch_dtype: element type 'float8_e4m3fn' is not supported; supported: "
          "float32, float16, bfloat16");
  refuses(with(llama_config(), "eos_token_id", "[2, -1]"),
          "config.json: /eos_token_id/1: expected an integer from 0 to 2147483647, got -1; correct "
          "this value");
  refuses("[]", "config.json: expected an object, got an array of 0; correct this value");
}

TEST_CASE("experts") {
  const auto with_experts = [](const char* type, const char* key, const char* value) {
    return with(testing::experts_config(type), key, value);
  };
  refuses(with_experts("mixtral", "num_experts_per_tok", "5"),
          "config.json: /num_experts_per_tok: a token has 5 of 4 experts; give at most as many as "
          "there are (config.json: /num_experts)");
  refuses(with_experts("olmoe", "num_experts_per_tok", "0"),
          "config.json: /num_experts_per_tok: expected an integer from 1 to 268435456, got 0; "
          "correct this value");
  refuses(with_experts("granitemoe", "num_experts", "1025"),
          "config.json: /num_experts: experts.count is 1025, outside 1 .. 1024; give the model's "
          "true size");
  refuses(with_experts("qwen3_moe", "moe_intermediate_size", "33554433"),
          "config.json: /moe_intermediate_size: experts.ffn is 33554433, outside 1 .. 33554432; "
          "give the model's true size");
  refuses(with_experts("mixtral", "num_local_experts", "8"),
          "config.json: /num_local_experts: the value is 8, but /num_experts, which says the same "
          "thing, is 4; remove the wrong one");
  refuses(with_experts("olmoe", "clip_qkv", "8.0"),
          "config.json: /clip_qkv: expected null, got 8; bounds of queries, keys and values are "
          "not supported");
  refuses(with_experts("granitemoe", "mlp_bias", "true"),
          "config.json: /mlp_bias: experts with biases; this is not supported");
  refuses(with_experts("qwen2_moe", "mlp_only_layers", "[1]"),
          "config.json: /mlp_only_layers/0: expected an integer from 0 to 0, got 1; correct this "
          "value");
  refuses(with_experts("mixtral", "decoder_sparse_step", "2"),
          "config.json: /decoder_sparse_step: expected no such key for this model_type, got 2; if "
          "it does not change the model's results, remove the key or give --ignore-key "
          "decoder_sparse_step");
}

TEST_CASE("features that change the result") {
  refuses(with(llama_config(), "quantization_config", R"({"quant_method": "gguf"})"),
          "config.json: /quantization_config/quant_method: weights quantized by 'gguf' are not "
          "supported; supported: gptq, awq, compressed-tensors, fp8, modelopt");
  refuses(with(llama_config(), "sliding_window", "4096"),
          "config.json: /sliding_window: expected no such key for this model_type, got 4096; "
          "if it does not change the model's results, remove the key or give --ignore-key "
          "sliding_window");
  refuses(
      with(gpt2_config(), "add_cross_attention", "true"),
      "config.json: /add_cross_attention: expected false, got true; this feature is not supported");
  refuses(with(gpt2_config(), "pruned_heads", R"({"0": [1]})"),
          "config.json: /pruned_heads: expected no pruned heads, got an object of 1; give an "
          "unpruned checkpoint");
  refuses(with(llama_config(), "layer_types", "[\"sliding_attention\"]"),
          "config.json: /layer_types/0: expected full_attention, got \"sliding_attention\"; other "
          "layer types are not supported");
  refuses(with(llama_config(), "layer_types", R"(["full_attention", "full_attention"])"),
          "config.json: /layer_types: 2 layer types for 1 layers; give one type a layer");
  refuses(with(gpt_neox_config(), "head_dim", "4"),
          "config.json: /head_dim: expected 8, hidden size by heads, got 4; other sizes are not "
          "supported for this model_type");
  CHECK(testing::read_config(with(gpt_neox_config(), "head_dim", "8")));
  refuses(with(llama_config(), "attn_logit_softcapping", "50.0"),
          "config.json: /attn_logit_softcapping: expected no such key for this model_type, got 50; "
          "if it does not change the model's results, remove the key or give --ignore-key "
          "attn_logit_softcapping");
}

}  // namespace
}  // namespace sinter::hf_config_errors_test
