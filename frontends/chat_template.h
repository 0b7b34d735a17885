// Chat formats: the text that puts messages before a model that was trained on conversations.
//
// Formats are a fixed table. The Jinja program that model folders bring is not run: it only tells,
// by the marks that stand in it, which row of the table it is, and which system message it adds
// where a conversation has none: default_system, or own_system, which a caller must not leave out
// in silence.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/error.h"

namespace sinter {

/// One format. In the texts {system}, {user} and {answer} stand for the messages, {bos} and {eos}
/// for the model's begin and end tokens as they are spelled; |trim and |trim_end before the brace
/// take white space off a message.
struct ChatTemplate {
  std::string_view name;
  std::string_view with_system, without_system;
  std::string_view further;  // an answer and the next message; empty: models differ in it
  bool begins;               // the tokenizer's begin token stands first
  std::string_view end;      // the token that ends an answer
  std::string_view markers;  // texts of the format that are one token, with spaces between
};

std::span<const ChatTemplate> chat_templates();
/// Their names with commas between.
std::string chat_template_names();

/// A format as one model has it.
struct ChatFormat {
  const ChatTemplate* form = nullptr;
  bool begins = false;
  std::string eos = "</s>";
  /// How a system message begins that the model's own template adds where none is given, and that
  /// is not known as a whole; such a message is not in `prompt`. Empty: it adds none.
  std::string own_system = {};
  /// The system message that the model's own template adds where none is given.
  std::optional<std::string> default_system = {};
  std::string bos = "<s>";
  /// The model's own template changes earlier answers in a way that `further` does not.
  bool rewrites_answers = false;

  /// The prompt up to where the answer begins, without the begin token.
  std::string prompt(const std::optional<std::string>& system, std::string_view user) const;
  /// What an answer and a further message add to it, up to where the next answer begins.
  std::string further(std::string_view answer, std::string_view user) const;
  std::string end() const;
  std::vector<std::string> markers() const;
};

/// Which format a Jinja template is; nothing if it is none of the table.
std::optional<ChatFormat> recognize_chat_format(std::string_view jinja);

/// The format of the model in `folder`: the one called `name` if that is not empty, else what
/// chat_template.jinja is (or additional_chat_templates/default.jinja), else "chat_template" of
/// tokenizer_config.json. The end token is the folder's "eos_token". An error for an unknown format
/// names those of the table.
Result<ChatFormat> read_chat_format(const std::string& folder, std::string_view name);

}  // namespace sinter
