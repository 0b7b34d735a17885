// Post-processors: the special tokens around a text.
#pragma once

#include <functional>
#include <vector>

#include "frontends/tokenizer/component.h"

namespace sinter {

struct SpecialTokens {
  std::vector<int32_t> before, after;
};

/// The "post_processor" of a tokenizer.json, for one text (not for pairs). `has(id)` tells which
/// ids there are.
Result<SpecialTokens> read_post_processors(const JsonView& view,
                                           const std::function<bool(int32_t)>& has);

}  // namespace sinter
