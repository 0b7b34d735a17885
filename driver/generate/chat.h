// A message as the ids of a conversation's beginning.
#pragma once

#include "frontends/chat_template.h"
#include "frontends/tokenizer/tokenizer.h"

namespace sinter {

struct ChatPrompt {
  std::vector<int32_t> ids;
  std::optional<int32_t> end;        // the id that ends the answer, where the tokenizer has one
  std::vector<std::string> as_text;  // marks of the format that this tokenizer reads as plain text
};

/// `user` after `system` in the form of `format`. Special tokens that the messages spell are
/// recognized, as in any text.
Result<ChatPrompt> chat_prompt(const Tokenizer& tokenizer, const ChatFormat& format,
                               const std::optional<std::string>& system, std::string_view user);

}  // namespace sinter
