#include "driver/generate/chat.h"

#include <llvm/ADT/STLExtras.h>

namespace sinter {

Result<ChatPrompt> chat_prompt(const Tokenizer& tokenizer, const ChatFormat& format,
                               const std::optional<std::string>& system, std::string_view user) {
  ChatPrompt prompt;
  SINTER_LET(ids, tokenizer.encode(format.prompt(system, user), format.begins));
  prompt.ids = std::move(ids);
  prompt.end = tokenizer.token_id(format.end());
  for (std::string& marker : format.markers()) {
    const std::optional<int32_t> id = tokenizer.token_id(marker);
    SINTER_LET(alone, tokenizer.encode(marker, false));
    if (!id || !llvm::is_contained(alone, *id)) prompt.as_text.push_back(std::move(marker));
  }
  return prompt;
}

}  // namespace sinter
