#include "cli/many_prompts.h"

#include <map>
#include <nlohmann/json.hpp>

#include "cli/output.h"
#include "driver/text_table.h"

namespace sinter {
namespace {

/// Prints lines in the order of the prompts; those that are complete too early wait.
class OrderedLines {
 public:
  OrderedLines(llvm::ArrayRef<std::vector<int32_t>> prompts,
               const std::optional<Tokenizer>& tokenizer)
      : prompts_(prompts), tokenizer_(tokenizer) {}

  Status add(size_t prompt, llvm::ArrayRef<int32_t> tokens) {
    nlohmann::ordered_json line = {{"prompt", prompt}, {"tokens", tokens.vec()}};
    if (tokenizer_) {
      SINTER_LET(text, continuation_text(*tokenizer_, prompts_[prompt], tokens));
      line["text"] = text;
    }
    waiting_[prompt] = line.dump() + "\n";
    ++complete_;
    for (auto at = waiting_.find(next_); at != waiting_.end(); at = waiting_.find(++next_)) {
      print_now(at->second);
      waiting_.erase(at);
    }
    return {};
  }

  size_t complete() const { return complete_; }

 private:
  llvm::ArrayRef<std::vector<int32_t>> prompts_;
  const std::optional<Tokenizer>& tokenizer_;
  std::map<size_t, std::string> waiting_;
  size_t next_ = 0, complete_ = 0;
};

}  // namespace

Result<std::string> continuation_text(const Tokenizer& tokenizer, llvm::ArrayRef<int32_t> prompt,
                                      llvm::ArrayRef<int32_t> tokens) {
  TextStream stream(tokenizer, true);
  for (int32_t id : prompt) SINTER_TRY(stream.push(id));
  std::string text;
  for (int32_t id : tokens) {
    SINTER_LET(more, stream.push(id));
    text += more;
  }
  SINTER_LET(rest, stream.finish());
  return text + rest;
}

Status print_continuations(const OpenedModel& model, const ReadyPlan& ready,
                           llvm::ArrayRef<std::vector<int32_t>> prompts,
                           const std::optional<Tokenizer>& tokenizer, ManyOptions options,
                           std::string_view device) {
  OrderedLines lines(prompts, tokenizer);
  Status printed = {};
  int64_t places = 0;
  options.on_places = [&](int64_t count, int64_t bytes) {
    places = count;
    note(fmt::format("{} in {}, caches of {}", counted(prompts.size(), "prompt"),
                     counted(static_cast<uint64_t>(count), "place"),
                     with_unit(static_cast<double>(bytes), "B")));
  };
  options.on_sequence = [&](size_t prompt, llvm::ArrayRef<int32_t> tokens) {
    printed = lines.add(prompt, tokens);
    progress(fmt::format("{} of {} prompts, {} places", lines.complete(), prompts.size(), places));
    return printed.has_value();
  };
  SINTER_LET(done, generate_many(model, ready, prompts, options));
  SINTER_TRY(printed);
  note(fmt::format("{} on {}: {}, {} prompt tokens and {} more in {:.2f} s, {:.0f} tokens/s",
                   model.module.name, device, counted(prompts.size(), "prompt"), done.prompt_tokens,
                   done.tokens, done.seconds, static_cast<double>(done.tokens) / done.seconds));
  return {};
}

}  // namespace sinter
