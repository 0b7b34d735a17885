// Regular expressions of tokenizer files. They are written for Oniguruma and matched by PCRE2; the
// pattern is translated, so that every construct means what it meant there, or refused.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ir/error.h"

namespace sinter {

/// Bytes begin .. end of a text.
struct TextRange {
  size_t begin = 0, end = 0;

  size_t size() const { return end - begin; }
  std::string_view of(std::string_view text) const { return text.substr(begin, end - begin); }
};

/// `pattern` in the syntax of PCRE2. Constructs that the two engines read differently are rewritten
/// (\s \d \w \h \v \b, `$`, `(?m:`, {n,m}+, {,n}, scripts); those without an equal fail: nested
/// classes, `&&`, POSIX brackets, back references, \G \K \R \X, conditions, verbs.
Result<std::string> pcre2_pattern(std::string_view pattern);

/// A compiled pattern. Copies share it; matching is safe from several threads.
class Regex {
 public:
  /// Errors have no place; the caller knows it.
  static Result<Regex> compile(std::string_view pattern);

  /// Matches of one text, from left to right, not overlapping. Borrows the text.
  class Matches {
   public:
    Matches(const Regex& regex, std::string_view text);
    /// The next match, which may be empty, or nothing. Fails if the pattern takes too many steps.
    Result<std::optional<TextRange>> next();

   private:
    struct FreeMatchData {
      void operator()(void* data) const;
    };
    std::shared_ptr<const void> code_;
    std::string_view text_;
    std::unique_ptr<void, FreeMatchData> data_;
    size_t from_ = 0;
    bool done_ = false;
  };

  const std::string& pattern() const { return pattern_; }

 private:
  Regex(std::string pattern, std::shared_ptr<const void> code)
      : pattern_(std::move(pattern)), code_(std::move(code)) {}

  std::string pattern_;
  std::shared_ptr<const void> code_;  // pcre2_code
};

}  // namespace sinter
