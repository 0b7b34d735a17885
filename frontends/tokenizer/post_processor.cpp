#include "frontends/tokenizer/post_processor.h"

#include "frontends/tokenizer/vocabulary.h"

namespace sinter {
namespace {

/// Byte-level post-processing changes offsets into the text alone, which are not kept here.
Result<SpecialTokens> read_byte_level_processor(const JsonView& view) {
  SINTER_TRY(allow_keys(view, {"add_prefix_space", "trim_offsets", "use_regex"}));
  return SpecialTokens{};
}

Result<int32_t> read_id(const JsonView& view) {
  SINTER_LET(id, view.integer(0, Vocabulary::max_ids - 1));
  return static_cast<int32_t>(id);
}

/// Appends the ids of the special token that the template names at `view`.
Status add_named(const JsonView& view, const JsonView& special_tokens, std::vector<int32_t>& ids) {
  SINTER_LET(name, view["id"].string());
  const JsonView place = special_tokens[name]["ids"];
  SINTER_LET(list, place.array());
  for (size_t i = 0; i < list->size(); ++i) {
    SINTER_LET(id, read_id(place[i]));
    ids.push_back(id);
  }
  return {};
}

Result<SpecialTokens> read_template(const JsonView& view) {
  SINTER_TRY(allow_keys(view, {"single", "pair", "special_tokens"}));
  const JsonView single = view["single"];
  SINTER_LET(items, single.array());
  SpecialTokens tokens;
  bool has_text = false;
  for (size_t i = 0; i < items->size(); ++i) {
    if (const JsonView special = single[i]["SpecialToken"]; special.present()) {
      SINTER_TRY(
          add_named(special, view["special_tokens"], has_text ? tokens.after : tokens.before));
      continue;
    }
    const JsonView name = single[i]["Sequence"]["id"];
    SINTER_LET(sequence, name.string());
    if (sequence != "A") return name.mismatch("A, the only text");
    if (has_text) return single[i].fail("the text stands in this template twice");
    has_text = true;
  }
  if (!has_text) return single.fail("the text does not stand in this template");
  return tokens;
}

/// [token, id]
Result<int32_t> read_pair(const JsonView& view) { return read_id(view[1]); }

Result<SpecialTokens> read_bert_processor(const JsonView& view) {
  SINTER_TRY(allow_keys(view, {"sep", "cls"}));
  SINTER_LET(first, read_pair(view["cls"]));
  SINTER_LET(last, read_pair(view["sep"]));
  return SpecialTokens{{first}, {last}};
}

Result<SpecialTokens> read_roberta(const JsonView& view) {
  SINTER_TRY(allow_keys(view, {"sep", "cls", "trim_offsets", "add_prefix_space"}));
  SINTER_LET(first, read_pair(view["cls"]));
  SINTER_LET(last, read_pair(view["sep"]));
  return SpecialTokens{{first}, {last}};
}

}  // namespace

Result<SpecialTokens> read_post_processors(const JsonView& view,
                                           const std::function<bool(int32_t)>& has) {
  constexpr ComponentKind<SpecialTokens> kinds[] = {
      {"ByteLevel", read_byte_level_processor},
      {"TemplateProcessing", read_template},
      {"BertProcessing", read_bert_processor},
      {"RobertaProcessing", read_roberta},
  };
  SINTER_LET(stages, read_stages<SpecialTokens>(view, "post-processor", "processors", kinds));
  SpecialTokens all;
  for (SpecialTokens& stage : stages) {
    stage.before.insert(stage.before.end(), all.before.begin(), all.before.end());
    all.before = std::move(stage.before);
    all.after.insert(all.after.end(), stage.after.begin(), stage.after.end());
  }
  for (const auto* ids : {&all.before, &all.after})
    for (int32_t id : *ids)
      if (!has(id))
        return view.fail(fmt::format("the special token {} is not in the vocabulary", id));
  return all;
}

}  // namespace sinter
