// Conversations as token ids.
#pragma once

#include "frontends/chat_template.h"
#include "frontends/tokenizer/tokenizer.h"

namespace sinter {

struct ChatPrompt {
  std::vector<int32_t> ids;
  std::optional<int32_t> end;        // the id that ends the answer, where the tokenizer has one
  std::vector<std::string> as_text;  // marks of the format that this tokenizer reads as plain text
};

/// `user` after `system`, or after the system message that the model's template adds; an error
/// where that is not known as a whole. `where`: the model, for the error.
Result<std::string> first_message(const ChatFormat& format,
                                  const std::optional<std::string>& system, std::string_view user,
                                  const std::string& where);

/// A note for marks that the tokenizer reads as plain text.
std::string marks_as_text(const ChatFormat& format, const ChatPrompt& prompt);

/// A conversation in the form of `format`. Special tokens that the messages spell are recognized,
/// as in any text.
Result<ChatPrompt> encode_chat(const Tokenizer& tokenizer, const ChatFormat& format,
                               std::string_view text);

}  // namespace sinter
