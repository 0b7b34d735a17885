// `generate --prompts FILE`: many prompts through a few places.
#pragma once

#include "driver/generate/generate_many.h"
#include "driver/text.h"

namespace sinter {

/// The text that the tokens add to the prompt's.
Result<std::string> continuation_text(const Tokenizer& tokenizer, llvm::ArrayRef<int32_t> prompt,
                                      llvm::ArrayRef<int32_t> tokens);

/// Continues all prompts and prints a JSON object a line for each, in the order of the prompts: its
/// tokens, and their text if there is a tokenizer. A line is printed as a whole, when the prompt
/// and all before it are complete.
Status print_continuations(const OpenedModel& model, const ReadyPlan& ready,
                           llvm::ArrayRef<std::vector<int32_t>> prompts,
                           const std::optional<Tokenizer>& tokenizer, ManyOptions options,
                           std::string_view device);

}  // namespace sinter
