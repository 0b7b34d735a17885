#include "frontends/gguf/gguf_architecture.h"

#include <algorithm>

namespace sinter {
namespace {

constexpr GgufKey kBertKeys[] = {{"attention.layer_norm_epsilon", "layer_norm_eps"},
                                 {"attention.causal", ""},
                                 {"attention.head_count_kv", ""},
                                 {"pooling_type", ""}};
constexpr GgufKey kGpt2Keys[] = {{"attention.layer_norm_epsilon", "layer_norm_epsilon"},
                                 {"feed_forward_length", ""},
                                 {"attention.head_count_kv", ""},
                                 {"rope.dimension_count", ""},
                                 {"rope.freq_base", ""}};
constexpr GgufKey kNeoxKeys[] = {{"attention.layer_norm_epsilon", "layer_norm_eps"},
                                 {"attention.head_count_kv", ""},
                                 {"rope.freq_base", "rotary_emb_base"},
                                 {"use_parallel_residual", "use_parallel_residual"}};
constexpr GgufKey kPhiKeys[] = {{"attention.layer_norm_epsilon", "layer_norm_eps"},
                                {"add_bos_token", ""}};
constexpr GgufKey kPhi3Keys[] = {
    {"rope.scaling.original_context_length", "original_max_position_embeddings"},
    {"rope.scaling.attn_factor", ""}};
constexpr GgufKey kFalconKeys[] = {{"attention.layer_norm_epsilon", "layer_norm_epsilon"},
                                   {"feed_forward_length", "ffn_hidden_size"},
                                   {"attention.head_count_kv", "num_kv_heads"},
                                   {"tensor_data_layout", ""}};
constexpr GgufKey kGemmaKeys[] = {{"attn_logit_softcapping", "attn_logit_softcapping"},
                                  {"final_logit_softcapping", "final_logit_softcapping"},
                                  {"rope.freq_base_swa", "rope_local_base_freq"}};
constexpr GgufKey kGraniteKeys[] = {{"embedding_scale", "embedding_multiplier"},
                                    {"residual_scale", "residual_multiplier"},
                                    {"attention.scale", "attention_multiplier"},
                                    {"logit_scale", "logits_scaling"}};
constexpr GgufKey kQwenMoeKeys[] = {
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"}};

constexpr GgufArchitecture kArchitectures[] = {
    {.name = "bert", .model_type = "bert", .keys = kBertKeys},
    {.name = "falcon", .model_type = "falcon", .keys = kFalconKeys},
    {.name = "gemma", .model_type = "gemma", .plus_one = true},
    {.name = "gemma2", .model_type = "gemma2", .keys = kGemmaKeys, .plus_one = true},
    {.name = "gemma3", .model_type = "gemma3_text", .keys = kGemmaKeys, .plus_one = true},
    {.name = "gpt2", .model_type = "gpt2", .keys = kGpt2Keys},
    {.name = "gptneox", .model_type = "gpt_neox", .keys = kNeoxKeys, .partial = "rotary_pct"},
    {.name = "granite",
     .model_type = "granite",
     .keys = kGraniteKeys,
     .interleaved = true,
     .biases = true,
     .mlp_biases = true},
    {.name = "granitemoe", .model_type = "granitemoe", .keys = kGraniteKeys, .interleaved = true},
    // Mistral and Mixtral are llama there, told by their windows and experts.
    {.name = "llama",
     .model_type = "llama",
     .interleaved = true,
     .biases = true,
     .mlp_biases = true},
    {.name = "olmo2", .model_type = "olmo2"},
    {.name = "phi2", .model_type = "phi", .keys = kPhiKeys, .partial = "partial_rotary_factor"},
    {.name = "phi3", .model_type = "phi3", .keys = kPhi3Keys, .partial = "partial_rotary_factor"},
    {.name = "qwen2", .model_type = "qwen2"},
    {.name = "qwen2moe", .model_type = "qwen2_moe", .keys = kQwenMoeKeys},
    {.name = "qwen3", .model_type = "qwen3", .biases = true},
    {.name = "qwen3moe", .model_type = "qwen3_moe", .keys = kQwenMoeKeys, .biases = true},
    {.name = "smollm3",
     .model_type = "smollm3",
     .interleaved = true,
     .biases = true,
     .mlp_biases = true},
};

constexpr GgufName kNames[] = {
    {"embed", "token_embd"},
    {"embed.pos", "position_embd"},
    {"embed.type", "token_types"},
    {"embed.norm", "token_embd_norm"},
    {"final_norm", "output_norm"},
    {"lm_head", "output"},
    {"l{i}.norm1", "blk.{i}.attn_norm"},
    {"l{i}.norm2", "blk.{i}.ffn_norm"},
    {"l{i}.post_norm1", "blk.{i}.post_attention_norm"},
    {"l{i}.post_norm2", "blk.{i}.post_ffw_norm"},
    {"l{i}.q", "blk.{i}.attn_q"},
    {"l{i}.k", "blk.{i}.attn_k"},
    {"l{i}.v", "blk.{i}.attn_v"},
    {"l{i}.q_norm", "blk.{i}.attn_q_norm"},
    {"l{i}.k_norm", "blk.{i}.attn_k_norm"},
    {"l{i}.attn_out", "blk.{i}.attn_output"},
    {"l{i}.mlp.gate", "blk.{i}.ffn_gate"},
    {"l{i}.mlp.up", "blk.{i}.ffn_up"},
    {"l{i}.mlp.down", "blk.{i}.ffn_down"},
    {"l{i}.router", "blk.{i}.ffn_gate_inp"},
    {"l{i}.shared.gate", "blk.{i}.ffn_gate_shexp"},
    {"l{i}.shared.up", "blk.{i}.ffn_up_shexp"},
    {"l{i}.shared.down", "blk.{i}.ffn_down_shexp"},
    {"l{i}.shared_gate", "blk.{i}.ffn_gate_inp_shexp"},
};

std::string text_of(const GgufFile& file, std::string_view key) {
  const GgufValue* value = file.find(key);
  const auto* text = value ? std::get_if<std::string>(value) : nullptr;
  return text ? *text : "";
}

}  // namespace

Result<const GgufArchitecture*> gguf_architecture(const GgufFile& file) {
  const std::string place = file.files().front(), kind = text_of(file, "general.type");
  if (!kind.empty() && kind != "model")
    return fail(fmt::format("general.type is \"{}\", which is no model", printable(kind, 40)),
                place,
                kind == "adapter" ? "merge the adapter into its base model and give that"
                                  : "give the file of the model");
  const std::string name = text_of(file, "general.architecture");
  std::string known;
  for (const GgufArchitecture& row : kArchitectures) {
    if (row.name == name) return &row;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  }
  return fail(name.empty() ? std::string("the file has no general.architecture")
                           : fmt::format("general.architecture \"{}\" is not supported",
                                         printable(name, 40)),
              place, "supported: " + known);
}

llvm::ArrayRef<GgufName> gguf_names() { return kNames; }

}  // namespace sinter
