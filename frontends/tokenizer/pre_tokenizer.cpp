#include "frontends/tokenizer/pre_tokenizer.h"

#include "frontends/tokenizer/byte_level.h"
#include "frontends/tokenizer/unicode.h"

namespace sinter {
namespace {

// Words of byte-level tokenizers that do not bring a pattern of their own.
constexpr std::string_view gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// Cuts every word into the parts that `cut(word's range, parts)` finds.
template <typename Cut>
Status split_words(Words& words, SplitBehavior behavior, const Cut& cut) {
  std::vector<TextRange> smaller;
  smaller.reserve(words.ranges.size());
  std::vector<Part> parts;
  for (const TextRange& range : words.ranges) {
    parts.clear();
    SINTER_TRY(cut(range, parts));
    append_split(parts, behavior, smaller);
  }
  words.ranges = std::move(smaller);
  return {};
}

/// A word's characters for which `test` holds are matches, one by one.
template <typename Test>
Status split_at(Words& words, SplitBehavior behavior, const Test& test) {
  return split_words(words, behavior, [&](TextRange range, std::vector<Part>& parts) -> Status {
    for (size_t at = range.begin; at < range.end;) {
      const CodePoint c = code_point_at(words.text, at);
      const bool matched = test(c.value);
      if (matched || parts.empty() || parts.back().matched)
        parts.push_back({{at, at + c.bytes}, matched});
      else
        parts.back().range.end += c.bytes;
      at += c.bytes;
    }
    return {};
  });
}

Status split_pattern(Words& words, const TextPattern& pattern, SplitBehavior behavior,
                     bool invert) {
  return split_words(words, behavior, [&](TextRange range, std::vector<Part>& parts) -> Status {
    SINTER_LET(matches, pattern.matches(range.of(words.text)));
    size_t done = range.begin;
    for (const TextRange& match : matches) {
      const TextRange found{range.begin + match.begin, range.begin + match.end};
      if (found.begin > done) parts.push_back({{done, found.begin}, invert});
      parts.push_back({found, !invert});
      done = found.end;
    }
    if (range.end > done) parts.push_back({{done, range.end}, invert});
    return {};
  });
}

/// Writes every word anew: `rewrite(word, out)` appends its new text.
template <typename Rewrite>
void rewrite_words(Words& words, const Rewrite& rewrite) {
  if (words.ranges.empty() || words.ranges.front().begin > 0) words.starts_input = false;
  std::string text;
  text.reserve(words.text.size() + words.text.size() / 4);
  for (TextRange& range : words.ranges) {
    const size_t begin = text.size();
    rewrite(range, text);
    range = {begin, text.size()};
  }
  words.text = std::move(text);
}

Result<PreTokenizer> read_byte_level_pre_tokenizer(const JsonView& view) {
  SINTER_TRY(allow_keys(view, {"add_prefix_space", "trim_offsets", "use_regex"}));
  SINTER_LET(prefix_space, view["add_prefix_space"].boolean_or(true));
  SINTER_LET(use_regex, view["use_regex"].boolean_or(true));
  std::optional<TextPattern> pattern;
  if (use_regex) pattern = TextPattern::regex(gpt2_pattern);
  return [=](Words& words) -> Status {
    if (prefix_space)
      rewrite_words(words, [&](TextRange range, std::string& text) {
        if (words.text[range.begin] != ' ') text += ' ';
        text += range.of(words.text);
      });
    if (pattern) SINTER_TRY(split_pattern(words, *pattern, SplitBehavior::isolated, false));
    rewrite_words(words, [&](TextRange range, std::string& text) {
      append_byte_level(text, range.of(words.text));
    });
    return {};
  };
}

Result<PreTokenizer> read_split(const JsonView& view) {
  SINTER_TRY(allow_keys(view, {"pattern", "behavior", "invert"}));
  SINTER_LET(pattern, TextPattern::read(view["pattern"]));
  SINTER_LET(behavior, read_split_behavior(view["behavior"]));
  SINTER_LET(invert, view["invert"].boolean_or(false));
  return [=](Words& words) { return split_pattern(words, pattern, behavior, invert); };
}

Result<PreTokenizer> read_digits(const JsonView& view) {
  SINTER_TRY(allow_keys(view, {"individual_digits"}));
  SINTER_LET(individual, view["individual_digits"].boolean_or(false));
  const auto behavior = individual ? SplitBehavior::isolated : SplitBehavior::contiguous;
  return [=](Words& words) { return split_at(words, behavior, is_numeric); };
}

Result<PreTokenizer> read_metaspace(const JsonView& view) {
  SINTER_TRY(
      allow_keys(view, {"replacement", "prepend_scheme", "add_prefix_space", "split", "str_rep"}));
  SINTER_LET(mark, read_character(view["replacement"]));
  SINTER_LET(scheme, read_prepend_scheme(view));
  SINTER_LET(split, view["split"].boolean_or(true));
  return [=](Words& words) -> Status {
    rewrite_words(words, [&](TextRange range, std::string& text) {
      const std::string_view word = range.of(words.text);
      const bool first = range.begin == 0 && words.starts_input;
      const bool wanted =
          scheme == PrependScheme::always || (scheme == PrependScheme::first && first);
      if (wanted && word.front() != ' ' && !word.starts_with(mark)) text += mark;
      for (char byte : word) {
        if (byte == ' ')
          text += mark;
        else
          text += byte;
      }
    });
    if (!split) return {};
    const char32_t code = code_point_at(mark, 0).value;
    return split_at(words, SplitBehavior::merged_with_next,
                    [code](char32_t c) { return c == code; });
  };
}

bool is_bert_punctuation(char32_t c) { return is_ascii_punctuation(c) || is_punctuation(c); }

Result<PreTokenizer> read_bert_pre_tokenizer(const JsonView& view) {
  SINTER_TRY(allow_keys(view, {}));
  return [](Words& words) -> Status {
    SINTER_TRY(split_at(words, SplitBehavior::removed, is_white_space));
    return split_at(words, SplitBehavior::isolated, is_bert_punctuation);
  };
}

Result<PreTokenizer> read_punctuation(const JsonView& view) {
  SINTER_TRY(allow_keys(view, {"behavior"}));
  auto behavior = SplitBehavior::isolated;
  if (view["behavior"].present()) {
    SINTER_LET(named, read_split_behavior(view["behavior"]));
    behavior = named;
  }
  return [=](Words& words) { return split_at(words, behavior, is_bert_punctuation); };
}

Result<PreTokenizer> read_white_space_split(const JsonView& view) {
  SINTER_TRY(allow_keys(view, {}));
  return [](Words& words) { return split_at(words, SplitBehavior::removed, is_white_space); };
}

/// Runs of word characters and runs of others, white space dropped.
Result<PreTokenizer> read_white_space(const JsonView& view) {
  SINTER_TRY(allow_keys(view, {}));
  return [](Words& words) -> Status {
    SINTER_TRY(split_at(words, SplitBehavior::removed, is_white_space));
    return split_at(words, SplitBehavior::contiguous, is_word);
  };
}

}  // namespace

Result<std::vector<PreTokenizer>> read_pre_tokenizers(const JsonView& view) {
  constexpr ComponentKind<PreTokenizer> kinds[] = {
      {"ByteLevel", read_byte_level_pre_tokenizer},
      {"Split", read_split},
      {"Digits", read_digits},
      {"Metaspace", read_metaspace},
      {"BertPreTokenizer", read_bert_pre_tokenizer},
      {"Punctuation", read_punctuation},
      {"Whitespace", read_white_space},
      {"WhitespaceSplit", read_white_space_split},
  };
  return read_stages<PreTokenizer>(view, "pre-tokenizer", "pretokenizers", kinds);
}

}  // namespace sinter
