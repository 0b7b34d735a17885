// Translation of regular expressions from Oniguruma's (Ruby) syntax to PCRE2's.
#include <algorithm>
#include <vector>

#include "frontends/tokenizer/pattern_names.h"
#include "frontends/tokenizer/regex.h"
#include "frontends/tokenizer/unicode.h"
#include "ir/characters.h"

namespace sinter {
namespace {

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

class Translator {
 public:
  explicit Translator(std::string_view pattern) : in_(pattern) {}

  Result<std::string> run() {
    while (at_ < in_.size()) {
      const char c = in_[at_];
      if (c == '\\') {
        SINTER_TRY(escape(false));
      } else if (c == '[') {
        SINTER_TRY(bracket());
      } else if (c == '(') {
        SINTER_TRY(open_group());
      } else if (c == ')') {
        if (groups_.empty()) return refuse("a `)` without its `(`");
        atom_ = groups_.back();
        groups_.pop_back();
        copy(1);
      } else if (c == '{' && interval_size() > 0) {
        interval();
      } else if (c == '*' || c == '+' || c == '?') {
        copy(1);
        if (peek() == '+' || peek() == '?') copy(1);  // possessive, lazy
      } else {
        atom_ = out_.size();
        copy(code_point_at(in_, at_).bytes);
      }
    }
    return std::move(out_);
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0'; }
  void copy(size_t bytes) {
    out_ += in_.substr(at_, bytes);
    at_ += bytes;
  }
  /// Emits `text` for the next `bytes` of the pattern.
  Status put(std::string_view text, size_t bytes) {
    out_ += text;
    at_ += bytes;
    return {};
  }
  tl::unexpected<Error> refuse(std::string_view what) const {
    return fail(fmt::format("cannot read the regular expression \"{}\": {} at byte {}",
                            printable(in_), what, at_));
  }

  /// Bytes of an interval `{n}`, `{n,}`, `{,m}` or `{n,m}` here; 0 if the brace is a literal.
  size_t interval_size() const {
    size_t i = 1;
    const size_t low = i;
    while (is_digit(peek(i))) ++i;
    bool some = i > low;
    if (peek(i) == ',') {
      const size_t high = ++i;
      while (is_digit(peek(i))) ++i;
      some = some || i > high;
    }
    return some && peek(i) == '}' ? i + 1 : 0;
  }

  /// Here {n,m}+ repeats the interval and {n}? makes it optional; in PCRE2 they are possessive and
  /// lazy.
  void interval() {
    const std::string_view text = in_.substr(at_, interval_size());
    const bool fixed = text.find(',') == text.npos;
    out_ += text[1] == ',' ? "{0" : "{";
    out_ += text.substr(1);
    at_ += text.size();
    if (peek() == '+' || peek() == '*' || (fixed && peek() == '?')) {
      out_.insert(atom_, "(?:");
      out_ += ')';
    } else if (peek() == '?') {
      copy(1);
    }
  }

  Status open_group() {
    const size_t start = out_.size();
    if (peek(1) == '*') return refuse("a verb");
    if (peek(1) != '?') {
      copy(1);
    } else if (std::string_view(":=!>").find(peek(2)) != std::string_view::npos) {
      copy(3);
    } else if (peek(2) == '<' && (peek(3) == '=' || peek(3) == '!')) {
      copy(4);
    } else if (peek(2) == '<') {  // a name, of no use without references
      const size_t end = in_.find('>', at_);
      if (end == in_.npos) return refuse("a group's name without an end");
      at_ = end + 1;
      out_ += '(';
    } else {
      return options();
    }
    groups_.push_back(start);
    return {};
  }

  /// (?im-im: … ) and, at the pattern's start, (?im-im). Here m lets the dot match a newline.
  Status options() {
    const size_t start = out_.size();
    std::string text = "(?";
    size_t i = 2;
    for (; peek(i) == 'i' || peek(i) == 'm' || peek(i) == '-'; ++i)
      text += peek(i) == 'm' ? 's' : peek(i);
    if (peek(i) == ':' && i > 2) {
      groups_.push_back(start);
    } else if (peek(i) != ')' || start != 0) {
      return refuse("an option or a kind of group that is not supported");
    }
    text += peek(i);
    return put(text, i + 1);
  }

  Status bracket() {
    atom_ = out_.size();
    copy(1);
    if (peek() == '^') copy(1);
    if (peek() == ']') return refuse("an empty class");
    while (at_ < in_.size() && in_[at_] != ']') {
      if (in_[at_] == '\\') {
        SINTER_TRY(escape(true));
      } else if (in_[at_] == '[') {
        return refuse("a class within a class");
      } else if (in_[at_] == '&' && peek(1) == '&') {
        return refuse("an intersection of classes");
      } else {
        copy(code_point_at(in_, at_).bytes);
      }
    }
    if (at_ == in_.size()) return refuse("a class without an end");
    copy(1);
    return {};
  }

  Status escape(bool in_class) {
    const char c = peek(1);
    if (!in_class) atom_ = out_.size();
    if (c == 'p' || c == 'P') return property();
    if (c == 'x' || c == 'u') return code();
    if (const PatternEscape* known = find_pattern_escape(c)) {
      const std::string_view meant = in_class ? known->inside : known->outside;
      if (meant.empty()) return refuse("an escape that is not supported within a class");
      return put(meant, 2);
    }
    if (is_ascii_punctuation(static_cast<unsigned char>(c)) || c == ' ') {
      copy(2);
      return {};
    }
    if (static_cast<signed char>(c) < 0) {
      ++at_;
      copy(code_point_at(in_, at_).bytes);
      return {};
    }
    return refuse("an escape that is not supported");
  }

  /// \p{Name}, \p{^Name}, \P{Name}
  Status property() {
    const size_t end = in_.find('}', at_);
    if (peek(2) != '{' || end == in_.npos) return refuse("a property without braces");
    std::string_view name = in_.substr(at_ + 3, end - at_ - 3);
    bool negative = peek(1) == 'P';
    if (name.starts_with('^')) {
      negative = !negative;
      name.remove_prefix(1);
    }
    const auto plain = [](char c) { return c == '_' || (c | 32) - 'a' + 0u < 26u; };
    if (name.empty() || !std::all_of(name.begin(), name.end(), plain))
      return refuse("a property's name that is not supported");
    return put(fmt::format("\\{}{{{}}}", negative ? 'P' : 'p', pcre2_property(name)),
               end + 1 - at_);
  }

  /// \x{H…}, \xHH below 80 (above, it is a byte), \uHHHH
  Status code() {
    size_t first = 2, digits = 0;
    const bool braces = peek(1) == 'x' && peek(2) == '{';
    if (braces) ++first;
    const size_t most = braces ? 6 : peek(1) == 'x' ? 2 : 4;
    while (digits < most && is_hex(peek(first + digits))) ++digits;
    const std::string_view text = in_.substr(std::min(at_ + first, in_.size()), digits);
    const bool whole = braces ? peek(first + digits) == '}' : peek(1) == 'x' || digits == 4;
    if (digits == 0 || !whole) return refuse("a code point that is not supported");
    if (!braces && peek(1) == 'x' && digits == 2 && text[0] >= '8')
      return refuse("a byte of a code point");
    return put(fmt::format("\\x{{{}}}", text), first + digits + (braces ? 1 : 0));
  }

  std::string_view in_;
  size_t at_ = 0;
  std::string out_;
  size_t atom_ = 0;             // where in out_ the last thing that can be repeated starts
  std::vector<size_t> groups_;  // where in out_ the open groups start
};

}  // namespace

Result<std::string> pcre2_pattern(std::string_view pattern) { return Translator(pattern).run(); }

}  // namespace sinter
