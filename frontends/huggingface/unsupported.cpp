#include "frontends/huggingface/unsupported.h"

namespace sinter {

namespace {

constexpr std::string_view kAlibi = "positions by a slope of the scores (ALiBi)";
constexpr std::string_view kAudio = "sound as input";
constexpr std::string_view kBoth = "an encoder and a decoder in one model";
constexpr std::string_view kExperts = "experts with a router or an MLP of their own kind";
constexpr std::string_view kHybrid = "state-space layers beside attention";
constexpr std::string_view kImages = "images as input";
constexpr std::string_view kLatent = "attention whose keys and values are compressed (MLA)";
constexpr std::string_view kLinear = "linear attention";
constexpr std::string_view kParallelNorm =
    "LayerNorm without bias before parallel branches, and a factor of the logits";
constexpr std::string_view kPatterns = "attention to a pattern of tokens";
constexpr std::string_view kPerLayer =
    "embeddings of each layer and layers that share keys and values";
constexpr std::string_view kRecurrent = "recurrent layers";
constexpr std::string_view kRelative =
    "attention that multiplies queries and keys with relative positions";
constexpr std::string_view kShared = "layers that share their weights";
constexpr std::string_view kSpaces = "state-space layers";
constexpr std::string_view kReader = "a reader of its config and the names of its weights";

struct Unsupported {
  std::string_view model_type, needs;
};
constexpr Unsupported kUnsupported[] = {
    {"albert", kShared},
    {"bamba", kHybrid},
    {"bart", kBoth},
    {"beit", kImages},
    {"big_bird", kPatterns},
    {"blenderbot", kBoth},
    {"bloom", kAlibi},
    {"chatglm", kReader},
    {"clip", kImages},
    {"codegen", kReader},
    {"cohere", kParallelNorm},
    {"cohere2", kParallelNorm},
    {"convnext", kImages},
    {"dbrx", kExperts},
    {"deberta", kRelative},
    {"deberta-v2", kRelative},
    {"deepseek_v2", kExperts},
    {"deepseek_v3", kExperts},
    {"deit", kImages},
    {"dinov2", kImages},
    {"dinov2_with_registers", kImages},
    {"electra", kReader},
    {"ernie4_5_moe", kExperts},
    {"exaone", kReader},
    {"exaone4", kReader},
    {"falcon_h1", kHybrid},
    {"falcon_mamba", kSpaces},
    {"gemma3n", kPerLayer},
    {"gemma3n_text", kPerLayer},
    {"glm", kReader},
    {"glm4", kReader},
    {"glm4_moe", kExperts},
    {"gpt_bigcode", kReader},
    {"gpt_neo", kReader},
    {"gpt_oss", kExperts},
    {"gptj", kReader},
    {"granitemoehybrid", kHybrid},
    {"helium", kReader},
    {"hubert", kAudio},
    {"hunyuan_v1_moe", kExperts},
    {"idefics2", kImages},
    {"idefics3", kImages},
    {"internlm2", kReader},
    {"internlm3", kReader},
    {"jamba", kHybrid},
    {"jetmoe", kExperts},
    {"kimi_k2", kLatent},
    {"kimi_linear", kLinear},
    {"led", kBoth},
    {"llama4", kExperts},
    {"llama4_text", kExperts},
    {"llava", kImages},
    {"llava_next", kImages},
    {"longformer", kPatterns},
    {"longt5", kBoth},
    {"m2m_100", kBoth},
    {"mamba", kSpaces},
    {"mamba2", kSpaces},
    {"marian", kBoth},
    {"mbart", kBoth},
    {"minicpm", kReader},
    {"minicpm3", kLatent},
    {"minimax", kExperts},
    {"mistral3", kReader},
    {"mllama", kImages},
    {"moonshine", kAudio},
    {"mpt", kAlibi},
    {"mt5", kBoth},
    {"nemotron", kReader},
    {"nemotron_h", kHybrid},
    {"nomic_bert", kReader},
    {"olmo", kReader},
    {"olmo3", kReader},
    {"paligemma", kImages},
    {"pegasus", kBoth},
    {"persimmon", kReader},
    {"phimoe", kExperts},
    {"pixtral", kImages},
    {"qwen2_5_vl", kImages},
    {"qwen2_audio", kAudio},
    {"qwen2_vl", kImages},
    {"qwen3_next", kLinear},
    {"qwen3_vl", kImages},
    {"recurrent_gemma", kRecurrent},
    {"reformer", kPatterns},
    {"rwkv", kRecurrent},
    {"seed_oss", kReader},
    {"siglip", kImages},
    {"siglip2", kImages},
    {"smolvlm", kImages},
    {"stablelm", kReader},
    {"starcoder2", kReader},
    {"swin", kImages},
    {"switch_transformers", kBoth},
    {"t5", kBoth},
    {"t5gemma", kBoth},
    {"umt5", kBoth},
    {"vit", kImages},
    {"wav2vec2", kAudio},
    {"wav2vec2-bert", kAudio},
    {"wavlm", kAudio},
    {"whisper", kAudio},
    {"xlm-roberta-xl", kReader},
    {"xlnet", kRelative},
    {"zamba", kHybrid},
    {"zamba2", kHybrid},
};

}  // namespace

std::string_view missing_feature(std::string_view model_type) {
  for (const Unsupported& row : kUnsupported)
    if (row.model_type == model_type) return row.needs;
  return {};
}

}  // namespace sinter
