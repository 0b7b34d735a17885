#include "driver/generate/chat.h"

#include <llvm/ADT/STLExtras.h>

namespace sinter {

Result<std::string> first_message(const ChatFormat& format,
                                  const std::optional<std::string>& system, std::string_view user,
                                  const std::string& where) {
  if (!format.own_system.empty() && !system)
    return fail(
        fmt::format("the chat template adds a system message of its own, \"{}\"",
                    printable(format.own_system, 120)),
        where, fmt::format("give --system TEXT, or --chat-template {} for none", format.form->name),
        ExitCode::usage);
  return format.prompt(system ? system : format.default_system, user);
}

std::string marks_as_text(const ChatFormat& format, const ChatPrompt& prompt) {
  return fmt::format("chat template {}: the tokenizer has no token {}; read as plain text",
                     format.form->name, fmt::join(prompt.as_text, ", "));
}

Result<ChatPrompt> encode_chat(const Tokenizer& tokenizer, const ChatFormat& format,
                               std::string_view text) {
  ChatPrompt prompt;
  SINTER_LET(ids, tokenizer.encode(text, format.begins));
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
