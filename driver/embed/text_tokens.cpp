#include "driver/embed/text_tokens.h"

#include <algorithm>

namespace sinter {
namespace {

/// The number of special tokens that the tokenizer adds after a text: `with_special` has them after
/// the text's own ids `alone`.
size_t special_at_end(llvm::ArrayRef<int32_t> with_special, llvm::ArrayRef<int32_t> alone) {
  for (size_t begin = 0; begin + alone.size() <= with_special.size(); ++begin)
    if (with_special.slice(begin, alone.size()) == alone)
      return with_special.size() - alone.size() - begin;
  return 0;
}

}  // namespace

Result<TextTokens> tokenize_texts(const Tokenizer& tokenizer, llvm::ArrayRef<std::string> texts,
                                  std::optional<int64_t> most, std::string_view prompt) {
  TextTokens result;
  if (!prompt.empty()) {
    SINTER_LET(alone, tokenizer.encode(prompt, true));
    const bool ends = !alone.empty() && tokenizer.is_special(alone.back());
    const int64_t count = std::min(static_cast<int64_t>(alone.size()), most.value_or(INT64_MAX));
    result.prompt_tokens = count - (ends ? 1 : 0);
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string text = std::string(prompt) + texts[i];
    SINTER_LET(ids, tokenizer.encode(text, true));
    if (most && static_cast<int64_t>(ids.size()) > *most) {
      SINTER_LET(alone, tokenizer.encode(text, false));
      const size_t length = static_cast<size_t>(*most),
                   kept = std::min(special_at_end(ids, alone), length);
      std::copy(ids.end() - static_cast<int64_t>(kept), ids.end(),
                ids.begin() + static_cast<int64_t>(length - kept));
      ids.resize(length);
      result.cut.push_back(i);
    }
    result.texts.push_back(std::move(ids));
  }
  return result;
}

}  // namespace sinter
