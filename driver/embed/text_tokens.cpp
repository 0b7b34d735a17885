#include "driver/embed/text_tokens.h"

#include <algorithm>

namespace sinter {
namespace {

/// The special tokens that the tokenizer adds after a text: those of `with_special` behind the ids
/// of the text alone.
size_t special_at_end(llvm::ArrayRef<int32_t> with_special, llvm::ArrayRef<int32_t> alone) {
  for (size_t begin = 0; begin + alone.size() <= with_special.size(); ++begin)
    if (with_special.slice(begin, alone.size()) == alone)
      return with_special.size() - alone.size() - begin;
  return 0;
}

}  // namespace

Result<TextTokens> tokenize_texts(const Tokenizer& tokenizer, llvm::ArrayRef<std::string> texts,
                                  std::optional<int64_t> most) {
  TextTokens result;
  for (size_t i = 0; i < texts.size(); ++i) {
    SINTER_LET(ids, tokenizer.encode(texts[i], true));
    if (most && static_cast<int64_t>(ids.size()) > *most) {
      SINTER_LET(alone, tokenizer.encode(texts[i], false));
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
