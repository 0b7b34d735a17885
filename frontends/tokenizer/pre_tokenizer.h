// Pre-tokenizers: stages that cut a text into the words that a model sees on its own.
#pragma once

#include <functional>

#include "frontends/tokenizer/component.h"

namespace sinter {

/// A text and the words that it is cut into: ranges in order, not overlapping, not empty. What no
/// range covers is dropped.
struct Words {
  std::string text;
  std::vector<TextRange> ranges;
  bool starts_input;  // byte 0 comes from the start of what the user gave
};

/// Replaces the words by smaller ones, perhaps in a new text.
using PreTokenizer = std::function<Status(Words&)>;

/// The "pre_tokenizer" of a tokenizer.json.
Result<std::vector<PreTokenizer>> read_pre_tokenizers(const JsonView& view);

/// How a split treats the matches of a pattern.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };
Result<SplitBehavior> read_split_behavior(const JsonView& view);

/// A part of a word; `matched` or what stands between matches.
struct Part {
  TextRange range;
  bool matched;
};
/// Appends the words that the parts of one word make.
void append_split(std::vector<Part>& parts, SplitBehavior behavior, std::vector<TextRange>& words);

}  // namespace sinter
