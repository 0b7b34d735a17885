#include "frontends/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "frontends/files/pcre2_code.h"
#include "frontends/tokenizer/unicode.h"

namespace sinter {
namespace {

// A pattern from a file may be made to backtrack without end. A real one needs some steps a byte,
// and texts of a megabyte of one character are real.
constexpr uint32_t max_steps = 20'000'000;  // of one match
constexpr uint32_t max_heap_kib = 64 << 10;
constexpr size_t longest_pattern = 16 << 10;  // bytes

pcre2_match_context* limits() {
  static pcre2_match_context* const shared = [] {
    pcre2_match_context* context = pcre2_match_context_create(nullptr);
    pcre2_set_match_limit(context, max_steps);
    pcre2_set_heap_limit(context, max_heap_kib);
    return context;
  }();
  return shared;
}

}  // namespace

Result<Regex> Regex::compile(std::string_view pattern) {
  if (pattern.size() > longest_pattern)
    return fail(fmt::format("a regular expression of {} bytes, at most {} are read", pattern.size(),
                            longest_pattern));
  SINTER_LET(translated, pcre2_pattern(pattern));
  // Multi-line: in Oniguruma's syntax ^ and $ always stand at lines.
  SINTER_LET(code, compile_pcre2(translated, PCRE2_MULTILINE, pattern));
  // Where there is no JIT, PCRE2 interprets.
  pcre2_jit_compile(static_cast<pcre2_code*>(code.get()), PCRE2_JIT_COMPLETE);
  return Regex(std::string(pattern), std::move(code));
}

Regex::Matches::Matches(const Regex& regex, std::string_view text)
    : code_(regex.code_),
      text_(text),
      data_(pcre2_match_data_create_from_pattern(static_cast<const pcre2_code*>(code_.get()),
                                                 nullptr)) {}

void Regex::Matches::FreeMatchData::operator()(void* data) const {
  pcre2_match_data_free(static_cast<pcre2_match_data*>(data));
}

Result<std::optional<TextRange>> Regex::Matches::next() {
  if (done_) return std::nullopt;
  const auto* code = static_cast<const pcre2_code*>(code_.get());
  auto* data = static_cast<pcre2_match_data*>(data_.get());
  const auto match = [&](uint32_t options) {
    return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text_.data()), text_.size(), from_,
                       options | PCRE2_NO_UTF_CHECK, data, limits());
  };
  int count = match(0);
  if (count == PCRE2_ERROR_JIT_STACKLIMIT) count = match(PCRE2_NO_JIT);
  if (count == PCRE2_ERROR_NOMATCH) {
    done_ = true;
    return std::nullopt;
  }
  if (count < 0)
    return fail(fmt::format("a regular expression of the tokenizer gives up on this text: {}",
                            pcre2_message(count)),
                {}, "use a shorter text");
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(data);
  const TextRange found{bounds[0], bounds[1]};
  // After an empty match the search goes on after the next code point.
  from_ = found.end;
  if (found.begin == found.end) {
    if (from_ == text_.size())
      done_ = true;
    else
      from_ += code_point_at(text_, from_).bytes;
  }
  return found;
}

}  // namespace sinter
