// `generate --chat` without a prompt: a conversation.
#pragma once

#include "driver/generate/chat.h"
#include "driver/generate/generate.h"
#include "driver/text.h"

namespace sinter {

struct Conversation {
  std::string where;  // the model, for errors
  ChatFormat format;
  std::optional<std::string> system;
  GenerateOptions generating;  // `ends`, beside the format's own
};

/// An error for a format whose later messages are not known.
Status check_conversation(const Conversation& conversation);

/// Answers the lines of standard input, each in the light of all before it, until they end. The
/// model reads the whole conversation for each answer. Ctrl-C ends an answer; what is there of it
/// stays a part of the conversation.
Status converse(const Model& model, const ReadyPlan& ready, const Tokenizer& tokenizer,
                const Conversation& conversation);

}  // namespace sinter
