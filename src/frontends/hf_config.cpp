#include "frontends/hf_config.h"

namespace sinter {

namespace {

struct Family {
  std::string_view model_type;
  std::string_view architecture;  // the class with a language model head
  Result<HfModel> (*read)(HfConfig&);
};

constexpr Family kFamilies[] = {
    {"gpt2", "GPT2LMHeadModel", read_hf_gpt2},
    {"gpt_neox", "GPTNeoXForCausalLM", read_hf_gpt_neox},
    {"llama", "LlamaForCausalLM", read_hf_llama},
};

Result<const Family*> find_family(const JsonView& type) {
  SINTER_LET(name, type.string());
  std::string known;
  for (const Family& family : kFamilies) {
    if (family.model_type == name) return &family;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", family.model_type);
  }
  return type.fail(fmt::format("model_type '{}' is not supported", printable(name)),
                   fmt::format("supported: {}", known));
}

Status check_architecture(const JsonView& list, const Family& family) {
  if (!list.present()) return {};
  SINTER_LET(classes, list.array());
  for (size_t i = 0; i < classes->size(); ++i) {
    SINTER_LET(name, list[i].string());
    if (name != family.architecture)
      return list[i].fail(fmt::format("architecture '{}' is not supported", printable(name)),
                          fmt::format("supported for this model_type: {}", family.architecture));
  }
  return {};
}

/// Features that transformers can switch on in any of these families.
Status refuse_features(HfConfig& config) {
  SINTER_LET(quantization, config.find("quantization", {"quantization_config"}));
  if (quantization.present())
    return quantization.mismatch("unquantized weights", "give an f32, f16 or bf16 checkpoint");
  for (std::string_view key : {"add_cross_attention", "is_encoder_decoder", "rope_interleaved",
                               "tie_encoder_decoder", "use_sliding_window"}) {
    SINTER_LET(view, config.find(key, {key}));
    SINTER_LET(on, view.boolean_or(false));
    if (on) return view.mismatch("false", "this feature is not supported");
  }
  SINTER_LET(pruned, config.find("pruned_heads", {"pruned_heads"}));
  if (pruned.present()) {
    SINTER_LET(heads, pruned.object());
    if (!heads->empty()) return pruned.mismatch("no pruned heads", "give an unpruned checkpoint");
  }
  SINTER_LET(types, config.find("layer_types", {"layer_types"}));
  if (types.present()) {
    SINTER_LET(list, types.array());
    for (size_t i = 0; i < list->size(); ++i) {
      SINTER_LET(type, types[i].string());
      if (type != "full_attention")
        return types[i].mismatch("full_attention", "other layer types are not supported");
    }
  }
  return {};
}

Result<DType> read_dtype(const JsonView& view) {
  SINTER_LET(name, view.string_or("float32"));
  for (auto [known, dtype] : {std::pair{"float32", DType::f32}, std::pair{"float16", DType::f16},
                              std::pair{"bfloat16", DType::bf16}})
    if (name == known) return dtype;
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
                               std::string name) {
  HfConfig config(document);
  SINTER_TRY(document.view().object());
  SINTER_LET(type, config.find("model_type", {"model_type"}));
  SINTER_LET(family, find_family(type));
  SINTER_LET(architectures, config.find("architectures", {"architectures"}));
  SINTER_TRY(check_architecture(architectures, *family));
  SINTER_TRY(refuse_features(config));

  SINTER_LET(model, family->read(config));
  model.spec.name = std::move(name);
  SINTER_LET(dtype_view, config.find("dtype", {"dtype", "torch_dtype"}));
  SINTER_LET(dtype, read_dtype(dtype_view));
  model.spec.dtype = dtype;
  SINTER_LET(own_eos, config.find("eos", {"eos_token_id"}));
  const JsonView other_eos =
      generation ? generation->view()["eos_token_id"] : JsonView(document.file, nullptr);
  SINTER_LET(eos, read_eos(other_eos.present() ? other_eos : own_eos));
  model.spec.eos = std::move(eos);

  SINTER_TRY(config.refuse_unread());
  SINTER_TRY(check_spec(model.spec, config.places()));
  return std::move(model);
}

}  // namespace sinter
