// Settings that a tokenizer class of transformers takes from tokenizer_config.json and puts in the
// place of those in tokenizer.json.
//
//   BertTokenizer and its kin    do_lower_case, strip_accents, tokenize_chinese_chars: the
//                                BertNormalizer
//   GPT2Tokenizer and its kin    add_prefix_space: the ByteLevel pre-tokenizer
//
// Both where tokenizer_config.json names the class; a setting that it leaves out is the class's
// own. A class's further components, which transformers 5 puts in the place of those in
// tokenizer.json, are not: tokenizer.json counts.
#pragma once

#include "frontends/files/json.h"

namespace sinter {

/// Changes `tokenizer`, the root of a tokenizer.json, as tokenizer_config.json says.
Status apply_class_settings(JsonValue& tokenizer, const JsonView& config);

}  // namespace sinter
