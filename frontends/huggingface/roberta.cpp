// roberta, xlm-roberta, camembert: BERT whose positions begin behind the row of the padding token.
#include "frontends/huggingface/config.h"

namespace sinter {

void skip_positions(ModelSpec& spec, WeightMap& map, int64_t unused) {
  TensorRule& rule = map.rules.at("embed.pos.weight");
  rule.group_rows = spec.max_positions;
  rule.begin = unused;
  spec.max_positions -= unused;
}

Result<HfModel> read_hf_roberta(HfConfig& config) {
  SINTER_LET(spec, read_bert_fields(config));
  SINTER_TRY(config.size(spec.token_types, "token_types", {"type_vocab_size"}, 2));
  SINTER_LET(view, config.find("padding", {"pad_token_id"}));
  SINTER_LET(padding, view.integer_or(1, 0, spec.max_positions - 2));
  WeightMap map = bert_weight_map("roberta");
  map.foreign.push_back("lm_head.");
  skip_positions(spec, map, padding + 1);
  return HfModel{std::move(spec), std::move(map)};
}

}  // namespace sinter
