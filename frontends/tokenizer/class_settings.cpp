#include "frontends/tokenizer/class_settings.h"

#include <llvm/ADT/STLExtras.h>

namespace sinter {
namespace {

constexpr std::string_view kBertClasses[] = {
    "BertTokenizer",       "ConvBertTokenizer", "DistilBertTokenizer", "ElectraTokenizer",
    "MobileBertTokenizer", "MPNetTokenizer",    "SqueezeBertTokenizer"};
constexpr std::string_view kByteLevelClasses[] = {"BartTokenizer",  "CodeGenTokenizer",
                                                  "GPT2Tokenizer",  "GPTNeoXTokenizer",
                                                  "Qwen2Tokenizer", "RobertaTokenizer"};

JsonValue* member(JsonValue* value, std::string_view key) {
  auto* members = value ? std::get_if<JsonValue::Object>(&value->data) : nullptr;
  if (!members) return nullptr;
  const auto at = llvm::find_if(*members, [&](const JsonMember& one) { return one.key == key; });
  return at == members->end() ? nullptr : &at->value;
}

bool has_type(JsonValue* component, std::string_view type) {
  const JsonValue* said = member(component, "type");
  return said && said->string() && *said->string() == type;
}

/// The component of this type: `component` itself, or a part of a Sequence.
JsonValue* find_component(JsonValue* component, std::string_view type, std::string_view parts) {
  if (has_type(component, type)) return component;
  JsonValue* list = has_type(component, "Sequence") ? member(component, parts) : nullptr;
  auto* values = list ? std::get_if<JsonValue::Array>(&list->data) : nullptr;
  if (values)
    for (JsonValue& value : *values)
      if (has_type(&value, type)) return &value;
  return nullptr;
}

void set_member(JsonValue& object, std::string_view key, JsonValue value) {
  if (JsonValue* known = member(&object, key))
    *known = std::move(value);
  else
    std::get<JsonValue::Object>(object.data).push_back({std::string(key), std::move(value)});
}

}  // namespace

Status apply_class_settings(JsonValue& tokenizer, const JsonView& config) {
  SINTER_LET(name, config["tokenizer_class"].string_or(""));
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  if (llvm::is_contained(kBertClasses, name)) {
    JsonValue* normalizer =
        find_component(member(&tokenizer, "normalizer"), "BertNormalizer", "normalizers");
    if (!normalizer) return {};
    SINTER_LET(lowers, config["do_lower_case"].boolean_or(true));
    SINTER_LET(sets_apart, config["tokenize_chinese_chars"].boolean_or(true));
    SINTER_LET(strips, config["strip_accents"].boolean_or(lowers));
    set_member(*normalizer, "lowercase", JsonValue(lowers));
    set_member(*normalizer, "handle_chinese_chars", JsonValue(sets_apart));
    set_member(*normalizer, "strip_accents", JsonValue(strips));
  } else if (llvm::is_contained(kByteLevelClasses, name)) {
    JsonValue* words =
        find_component(member(&tokenizer, "pre_tokenizer"), "ByteLevel", "pretokenizers");
    if (!words) return {};
    SINTER_LET(prefix, config["add_prefix_space"].boolean_or(false));
    set_member(*words, "add_prefix_space", JsonValue(prefix));
  }
  return {};
}

}  // namespace sinter
