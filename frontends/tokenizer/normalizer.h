// Normalizers: stages that rewrite a text before it is cut into words.
#pragma once

#include <functional>

#include "frontends/tokenizer/component.h"

namespace sinter {

struct NormalizedText {
  std::string text;
  bool starts_input;  // byte 0 comes from the start of what the user gave
};

using Normalizer = std::function<Status(NormalizedText&)>;

/// The "normalizer" of a tokenizer.json.
Result<std::vector<Normalizer>> read_normalizers(const JsonView& view);

/// The type Precompiled: the character map of a SentencePiece model.
Result<Normalizer> read_precompiled(const JsonView& view);

}  // namespace sinter
