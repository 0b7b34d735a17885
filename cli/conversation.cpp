#include "cli/conversation.h"

#include <algorithm>

#include "cli/input.h"
#include "cli/many_prompts.h"
#include "cli/output.h"
#include "cli/text_printer.h"
#include "driver/text_table.h"

namespace sinter {
namespace {

/// The next line that says something; nothing at the end.
Result<std::optional<std::string>> next_message(InputLines& lines) {
  while (true) {
    ask();
    SINTER_LET(line, lines.next());
    if (!line) return std::nullopt;
    SINTER_TRY(check_utf8(*line, "standard input"));
    if (line->find_first_not_of(" \t") != line->npos) return line;
  }
}

class Answers {
 public:
  Answers(const Model& model, const ReadyPlan& ready, const Tokenizer& tokenizer,
          const Conversation& conversation)
      : model_(model), ready_(ready), tokenizer_(tokenizer), conversation_(conversation) {}

  Status answer(const std::string& message) {
    SINTER_LET(text, with(message));
    SINTER_LET(prompt, encode_chat(tokenizer_, conversation_.format, text));
    if (turn_ == 0 && !prompt.as_text.empty()) note(marks_as_text(conversation_.format, prompt));
    const std::vector<std::vector<int32_t>> prompts = {prompt.ids};
    GenerateOptions options = conversation_.generating;
    SINTER_LET(room, room_after(prompt.ids));
    const bool cut = room < options.count;
    options.count = std::min(options.count, room);
    options.sampling.seed = sequence_seed(options.sampling.seed, turn_);
    if (prompt.end) options.ends.push_back(*prompt.end);
    SINTER_TRY(check_prompts(model_, prompts, options.count));

    SINTER_LET(printer, TextPrinter::start(tokenizer_, prompt.ids, false));
    Status printed = {};
    const InterruptTaken interrupt;
    options.on_token = [&](size_t, int32_t token) {
      printed = printer.print(token);
      return printed && !interrupt.taken();
    };
    options.prefill.progress = [&](int64_t, int64_t) { return !interrupt.taken(); };
    const auto generation = generate(model_, ready_, prompts, options);
    if (!generation && generation.error().code == ExitCode::cancelled)
      return {};  // nothing is said
    if (!generation) return tl::make_unexpected(generation.error());
    SINTER_TRY(printed);
    SINTER_TRY(printer.finish());
    const std::vector<int32_t>& tokens = generation->tokens[0];
    if (cut && static_cast<int64_t>(tokens.size()) == options.count)
      note(fmt::format("the conversation fills the model's {}: the answer ends here",
                       counted(static_cast<uint64_t>(model_.spec->max_positions), "position")));
    SINTER_LET(answer, continuation_text(tokenizer_, prompt.ids, tokens));
    answer_ = std::move(answer);
    text_ = std::move(text);
    ++turn_;
    return {};
  }

 private:
  /// The conversation with one more message.
  Result<std::string> with(const std::string& message) const {
    if (turn_ > 0) return text_ + conversation_.format.further(answer_, message);
    return first_message(conversation_.format, conversation_.system, message, conversation_.where);
  }

  /// The tokens of an answer that the model has positions for.
  Result<int64_t> room_after(const std::vector<int32_t>& ids) const {
    if (model_.spec->streaming) return conversation_.generating.count;
    const int64_t positions = model_.spec->max_positions;
    const int64_t room = positions - text_tokens(ids.size(), 1) + 1;
    if (room >= 1) return room;
    return fail(fmt::format("the conversation is full: it has {}, the model has {}",
                            counted(ids.size(), "token"),
                            counted(static_cast<uint64_t>(positions), "position")),
                conversation_.where, "begin a new one");
  }

  const Model& model_;
  const ReadyPlan& ready_;
  const Tokenizer& tokenizer_;
  const Conversation& conversation_;
  std::string text_, answer_;  // up to the last message, and what was said to that
  size_t turn_ = 0;
};

}  // namespace

Status check_conversation(const Conversation& conversation) {
  const ChatFormat& format = conversation.format;
  if (!format.form->further.empty() && !format.rewrites_answers) return {};
  return fail(
      fmt::format("the program does not know how {} writes earlier answers",
                  format.rewrites_answers ? "this chat template"
                                          : fmt::format("the chat template {}", format.form->name)),
      conversation.where,
      "give one message with --prompt, or converse in Python: "
      "sinter.LanguageModel(FOLDER).chat(messages)",
      ExitCode::usage);
}

Status converse(const Model& model, const ReadyPlan& ready, const Tokenizer& tokenizer,
                const Conversation& conversation) {
  Answers answers(model, ready, tokenizer, conversation);
  InputLines lines;
  while (true) {
    SINTER_LET(message, next_message(lines));
    if (!message) return {};
    SINTER_TRY(answers.answer(*message));
  }
}

}  // namespace sinter
