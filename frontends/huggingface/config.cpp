#include "frontends/huggingface/config.h"

#include "frontends/huggingface/quantization.h"
#include "frontends/huggingface/unsupported.h"
#include "ir/never_destroyed.h"

namespace sinter {

namespace {

struct Family {
  std::string_view model_type;
  std::vector<std::string_view> architectures;  // classes whose text model is read
  Result<HfModel> (*read)(HfConfig&);
  /// The key of the object that describes the text model, then the keys beside it that describe
  /// other models; empty: the root describes the text model.
  std::vector<std::string_view> nested = {};
};

const std::vector<Family>& families() {
  static const auto& families = never_destroyed([] {
    return std::vector<Family>{
        {"bert", {"BertModel", "BertForMaskedLM", "BertForPreTraining"}, read_hf_bert},
        {"camembert", {"CamembertModel", "CamembertForMaskedLM"}, read_hf_roberta},
        {"distilbert", {"DistilBertModel", "DistilBertForMaskedLM"}, read_hf_distilbert},
        {"falcon", {"FalconForCausalLM"}, read_hf_falcon},
        {"gemma", {"GemmaForCausalLM"}, read_hf_gemma},
        {"gemma2", {"Gemma2ForCausalLM"}, read_hf_gemma2},
        {"gemma3",
         {"Gemma3ForConditionalGeneration"},
         read_hf_gemma3,
         {"text_config", "vision_config", "mm_tokens_per_image", "image_token_index",
          "image_token_id", "boi_token_index", "eoi_token_index"}},
        {"gemma3_text", {"Gemma3ForCausalLM"}, read_hf_gemma3},
        {"gpt2", {"GPT2LMHeadModel"}, read_hf_gpt2},
        {"gpt_neox", {"GPTNeoXForCausalLM"}, read_hf_gpt_neox},
        {"granite", {"GraniteForCausalLM"}, read_hf_granite},
        {"granitemoe", {"GraniteMoeForCausalLM"}, read_hf_granitemoe},
        {"llama", {"LlamaForCausalLM"}, read_hf_llama},
        {"mistral", {"MistralForCausalLM"}, read_hf_mistral},
        {"mixtral", {"MixtralForCausalLM"}, read_hf_mixtral},
        {"modernbert", {"ModernBertModel", "ModernBertForMaskedLM"}, read_hf_modernbert},
        {"mpnet", {"MPNetModel", "MPNetForMaskedLM"}, read_hf_mpnet},
        {"olmo2", {"Olmo2ForCausalLM"}, read_hf_olmo2},
        {"olmoe", {"OlmoeForCausalLM"}, read_hf_olmoe},
        {"opt", {"OPTForCausalLM"}, read_hf_opt},
        {"phi", {"PhiForCausalLM"}, read_hf_phi},
        {"phi3", {"Phi3ForCausalLM"}, read_hf_phi3},
        {"qwen2", {"Qwen2ForCausalLM"}, read_hf_qwen2},
        {"qwen2_moe", {"Qwen2MoeForCausalLM"}, read_hf_qwen2_moe},
        {"qwen3", {"Qwen3ForCausalLM"}, read_hf_qwen3},
        {"qwen3_moe", {"Qwen3MoeForCausalLM"}, read_hf_qwen3_moe},
        {"RefinedWeb", {"RWForCausalLM"}, read_hf_falcon},
        {"RefinedWebModel", {"RWForCausalLM"}, read_hf_falcon},
        {"roberta", {"RobertaModel", "RobertaForMaskedLM"}, read_hf_roberta},
        {"smollm3", {"SmolLM3ForCausalLM"}, read_hf_smollm3},
        {"xlm-roberta", {"XLMRobertaModel", "XLMRobertaForMaskedLM"}, read_hf_roberta},
    };
  });
  return families;
}

/// What takes every model of transformers; ops that Sinter lacks run in eager.
constexpr std::string_view kInPyTorch =
    "load it with transformers and give it to torch.compile(model, backend=\"sinter\")";

Result<const Family*> find_family(const JsonView& type) {
  SINTER_LET(name, type.string());
  std::string known;
  for (const Family& family : families()) {
    if (family.model_type == name) return &family;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", family.model_type);
  }
  const std::string_view needs = missing_feature(name);
  return type.fail(fmt::format("model_type '{}' is not supported{}{}", printable(name),
                               needs.empty() ? "" : ", it needs ", needs),
                   fmt::format("{}; supported: {}", kInPyTorch, known));
}

Status check_architecture(const JsonView& list, const Family& family) {
  if (!list.present()) return {};
  SINTER_LET(classes, list.array());
  for (size_t i = 0; i < classes->size(); ++i) {
    SINTER_LET(name, list[i].string());
    if (!llvm::is_contained(family.architectures, name))
      return list[i].fail(fmt::format("architecture '{}' is not supported", printable(name)),
                          fmt::format("{}; supported for this model_type: {}", kInPyTorch,
                                      fmt::join(family.architectures, ", ")));
  }
  return {};
}

/// Fills `out` where the config says that weights are quantized.
Status read_quantization_of(const JsonDocument& document, HfConfig& config,
                            const IgnoredKeys& ignored, std::optional<Quantization>& out,
                            std::string& text) {
  SINTER_LET(view, config.find("quantization", {"quantization_config"}));
  if (!view.present()) return {};
  SINTER_LET(quantization, read_quantization(document, view, ignored));
  out = std::move(quantization);
  text = quantization_text(*view.value(), ignored);
  return {};
}

/// Features that transformers can switch on in any of these families.
Status refuse_features(HfConfig& config) {
  for (std::string_view key : {"add_cross_attention", "is_encoder_decoder", "rope_interleaved",
                               "tie_encoder_decoder", "use_bidirectional_attention"}) {
    SINTER_LET(view, config.find(key, {key}));
    SINTER_LET(on, view.boolean_or(false));
    if (on) return view.mismatch("false", "this feature is not supported");
  }
  SINTER_LET(pruned, config.find("pruned_heads", {"pruned_heads"}));
  if (pruned.present()) {
    SINTER_LET(heads, pruned.object());
    if (!heads->empty()) return pruned.mismatch("no pruned heads", "give an unpruned checkpoint");
  }
  return {};
}

/// Switches that some family has and whose reader was not this one's: they must be off.
Status refuse_switches(HfConfig& config) {
  for (std::string_view key :
       {"apply_residual_connection_post_layernorm", "attention_bias", "lm_head_bias", "mlp_bias",
        "qk_layernorm", "use_mrope", "use_sliding_window"}) {
    if (config.was_read(key)) continue;
    SINTER_LET(view, config.find(key, {key}));
    SINTER_LET(on, view.boolean_or(false));
    if (on) return view.mismatch("false", "this model_type does not have it");
  }
  return {};
}

/// In a family whose reader knows no windows.
Status refuse_windows(HfConfig& config, int64_t layers) {
  if (config.was_read("layer_types")) return {};
  SINTER_LET(types, config.find("layer_types", {"layer_types"}));
  if (!types.present()) return {};
  SINTER_LET(list, types.array());
  if (static_cast<int64_t>(list->size()) != layers)
    return types.fail(fmt::format("{} layer types for {} layers", list->size(), layers),
                      "give one type a layer");
  for (size_t i = 0; i < list->size(); ++i) {
    SINTER_LET(type, types[i].string());
    if (type != "full_attention")
      return types[i].mismatch("full_attention", "other layer types are not supported");
  }
  return {};
}

Result<DType> read_dtype(const JsonView& view) {
  SINTER_LET(name, view.string_or("float32"));
  if (const auto dtype = parse_dtype(name); dtype && is_float(*dtype)) return *dtype;
  return view.fail(fmt::format("element type '{}' is not supported", printable(name)),
                   "supported: float32, float16, bfloat16");
}

/// One id, a list of them, or null.
Result<std::vector<int64_t>> read_eos(const JsonView& view) {
  std::vector<int64_t> ids;
  if (!view.present()) return ids;
  if (!view.value()->array()) {
    SINTER_LET(id, view.integer(0, INT32_MAX));
    return std::vector<int64_t>{id};
  }
  for (size_t i = 0; i < view.value()->array()->size(); ++i) {
    SINTER_LET(id, view[i].integer(0, INT32_MAX));
    ids.push_back(id);
  }
  return ids;
}

}  // namespace

Result<HfModel> read_hf_config(const JsonDocument& document, const JsonDocument* generation,
                               std::string name, const IgnoredKeys& ignored) {
  SINTER_TRY(document.view().object());
  HfConfig outer(document, document.view());
  SINTER_LET(type, outer.find("model_type", {"model_type"}));
  SINTER_LET(family, find_family(type));
  SINTER_LET(architectures, outer.find("architectures", {"architectures"}));
  SINTER_TRY(check_architecture(architectures, *family));
  std::optional<Quantization> quantization;
  std::string quantization_text;
  SINTER_TRY(read_quantization_of(document, outer, ignored, quantization, quantization_text));
  SINTER_TRY(refuse_features(outer));
  const bool nested = !family->nested.empty();
  std::optional<HfConfig> inner;
  if (nested) {
    const JsonView text = document.view()[family->nested.front()];
    SINTER_TRY(text.object());
    inner.emplace(document, text);
    SINTER_LET(inner_type, inner->find("model_type", {"model_type"}));
    const std::string own = fmt::format("{}_text", family->model_type);
    SINTER_LET(name_of_type, inner_type.string_or(own));
    if (name_of_type != own) return inner_type.mismatch(own, "other text models are not supported");
    SINTER_TRY(inner->find("architectures", {"architectures"}));
    SINTER_TRY(read_quantization_of(document, *inner, ignored, quantization, quantization_text));
    SINTER_TRY(refuse_features(*inner));
  }
  HfConfig& config = nested ? *inner : outer;

  SINTER_LET(model, family->read(config));
  SINTER_TRY(refuse_switches(config));
  SINTER_TRY(refuse_windows(config, model.spec.layers));
  model.quantization = std::move(quantization);
  model.quantization_text = std::move(quantization_text);
  model.spec.name = std::move(name);
  SINTER_LET(outer_dtype, outer.find("dtype", {"dtype", "torch_dtype"}));
  SINTER_LET(inner_dtype, config.find("dtype", {"dtype", "torch_dtype"}));
  SINTER_LET(dtype, read_dtype(inner_dtype.present() ? inner_dtype : outer_dtype));
  model.spec.dtype = dtype;
  SINTER_LET(inner_eos, config.find("eos", {"eos_token_id"}));
  SINTER_LET(outer_eos, outer.find("eos", {"eos_token_id"}));
  const JsonView other_eos =
      generation ? generation->view()["eos_token_id"] : JsonView(document.file, nullptr);
  SINTER_LET(eos, read_eos(other_eos.present()   ? other_eos
                           : outer_eos.present() ? outer_eos
                                                 : inner_eos));
  model.spec.eos = std::move(eos);

  SINTER_LET(tied_key, config.find("tied", {"tie_word_embeddings"}));
  model.tied_said = tied_key.present();
  if (nested) {
    SINTER_LET(tied, outer.find("tied", {"tie_word_embeddings"}));
    SINTER_LET(same, tied.boolean_or(model.spec.tied));
    if (same != model.spec.tied)
      return tied.mismatch(model.spec.tied ? "true" : "false", "the text model says otherwise");
    model.tied_said = model.tied_said || tied.present();
    SINTER_TRY(outer.refuse_unread(ignored, family->nested));
  }
  SINTER_TRY(config.refuse_unread(ignored));
  SINTER_TRY(check_spec(model.spec, config.places()));
  return std::move(model);
}

}  // namespace sinter
