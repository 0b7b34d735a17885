#include "frontends/tokenizer/normalizer.h"

#include "frontends/tokenizer/byte_level.h"
#include "frontends/tokenizer/unicode.h"

namespace sinter {
namespace {

/// Writes every character anew: `rewrite(c, bytes of c, out)` appends what it becomes.
template <typename Rewrite>
void rewrite_characters(NormalizedText& text, const Rewrite& rewrite) {
  std::string result;
  result.reserve(text.text.size());
  for (size_t at = 0; at < text.text.size();) {
    const CodePoint c = code_point_at(text.text, at);
    rewrite(c.value, std::string_view(text.text).substr(at, c.bytes), result);
    if (at == 0 && result.empty()) text.starts_input = false;
    at += c.bytes;
  }
  text.text = std::move(result);
}

template <NormalForm form>
Result<Normalizer> read_normal_form(const JsonView& view) {
  SINTER_TRY(allow_keys(view, {}));
  return [](NormalizedText& text) -> Status {
    text.text = normal_form(text.text, form);
    return {};
  };
}

void lower_case(NormalizedText& text) {
  rewrite_characters(
      text, [](char32_t c, std::string_view, std::string& out) { append_lower_case(out, c); });
}

template <typename Test>
void remove_characters(NormalizedText& text, const Test& test) {
  rewrite_characters(text, [&](char32_t c, std::string_view bytes, std::string& out) {
    if (!test(c)) out += bytes;
  });
}

Result<Normalizer> read_lower_case(const JsonView& view) {
  SINTER_TRY(allow_keys(view, {}));
  return [](NormalizedText& text) -> Status {
    lower_case(text);
    return {};
  };
}

Result<Normalizer> read_strip_accents(const JsonView& view) {
  SINTER_TRY(allow_keys(view, {}));
  return [](NormalizedText& text) -> Status {
    remove_characters(text, is_mark);
    return {};
  };
}

/// Control characters go, every white space is a space.
void clean(NormalizedText& text) {
  rewrite_characters(text, [](char32_t c, std::string_view bytes, std::string& out) {
    const bool space = c == '\t' || c == '\n' || c == '\r' || is_white_space(c);
    if (c == 0 || c == 0xfffd || (is_other(c) && c != '\t' && c != '\n' && c != '\r')) return;
    out += space ? std::string_view(" ") : bytes;
  });
}

void set_ideographs_apart(NormalizedText& text) {
  rewrite_characters(text, [](char32_t c, std::string_view bytes, std::string& out) {
    if (is_cjk_ideograph(c))
      (((out += ' ') += bytes) += ' ');
    else
      out += bytes;
  });
}

Result<Normalizer> read_bert_normalizer(const JsonView& view) {
  SINTER_TRY(
      allow_keys(view, {"clean_text", "handle_chinese_chars", "strip_accents", "lowercase"}));
  SINTER_LET(cleans, view["clean_text"].boolean_or(true));
  SINTER_LET(sets_apart, view["handle_chinese_chars"].boolean_or(true));
  SINTER_LET(lowers, view["lowercase"].boolean_or(true));
  SINTER_LET(strips, view["strip_accents"].boolean_or(lowers));
  return [=](NormalizedText& text) -> Status {
    if (cleans) clean(text);
    if (sets_apart) set_ideographs_apart(text);
    if (strips) {
      text.text = normal_form(text.text, NormalForm::nfd);
      remove_characters(text, is_nonspacing_mark);
    }
    if (lowers) lower_case(text);
    return {};
  };
}

Result<Normalizer> read_prepend(const JsonView& view) {
  SINTER_TRY(allow_keys(view, {"prepend"}));
  SINTER_LET(prefix, view["prepend"].string());
  return [prefix](NormalizedText& text) -> Status {
    if (!text.text.empty()) text.text.insert(0, prefix);
    return {};
  };
}

Result<Normalizer> read_replace(const JsonView& view) {
  SINTER_TRY(allow_keys(view, {"pattern", "content"}));
  SINTER_LET(pattern, TextPattern::read(view["pattern"]));
  SINTER_LET(content, view["content"].string());
  return [pattern, content](NormalizedText& text) -> Status {
    SINTER_LET(replaced, replace_all(text.text, pattern, content));
    text.text = std::move(replaced);
    return {};
  };
}

Result<Normalizer> read_strip(const JsonView& view) {
  SINTER_TRY(allow_keys(view, {"strip_left", "strip_right"}));
  SINTER_LET(left, view["strip_left"].boolean_or(true));
  SINTER_LET(right, view["strip_right"].boolean_or(true));
  return [left, right](NormalizedText& text) -> Status {
    std::string& s = text.text;
    size_t begin = 0, end = s.size();
    while (left && begin < end && is_white_space(code_point_at(s, begin).value))
      begin += code_point_at(s, begin).bytes;
    for (size_t last; right && begin < end; end = last) {
      last = code_point_before(s, end);
      if (!is_white_space(code_point_at(s, last).value)) break;
    }
    if (begin > 0) text.starts_input = false;
    s = s.substr(begin, end - begin);
    return {};
  };
}

Result<Normalizer> read_byte_level_normalizer(const JsonView& view) {
  SINTER_TRY(allow_keys(view, {}));
  return [](NormalizedText& text) -> Status {
    std::string letters;
    append_byte_level(letters, text.text);
    text.text = std::move(letters);
    return {};
  };
}

}  // namespace

Result<std::vector<Normalizer>> read_normalizers(const JsonView& view) {
  constexpr ComponentKind<Normalizer> kinds[] = {
      {"NFC", read_normal_form<NormalForm::nfc>},
      {"NFD", read_normal_form<NormalForm::nfd>},
      {"NFKC", read_normal_form<NormalForm::nfkc>},
      {"NFKD", read_normal_form<NormalForm::nfkd>},
      {"Lowercase", read_lower_case},
      {"StripAccents", read_strip_accents},
      {"BertNormalizer", read_bert_normalizer},
      {"Prepend", read_prepend},
      {"Replace", read_replace},
      {"Strip", read_strip},
      {"ByteLevel", read_byte_level_normalizer},
      {"Precompiled", read_precompiled},
  };
  return read_stages<Normalizer>(view, "normalizer", "normalizers", kinds);
}

}  // namespace sinter
