#include "shim/shim_source.h"

#include <algorithm>
#include <vector>

namespace sinter {
namespace {

constexpr std::string_view kShared = "__shared__";
constexpr std::string_view kSpace = " \t\r\n";

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

/// End of the comment or string literal that begins at `at`; `at` itself if none does.
size_t skip_opaque(std::string_view text, size_t at) {
  const std::string_view rest = text.substr(at);
  const auto past = [&](std::string_view mark, size_t from) {
    const size_t end = text.find(mark, from);
    return end == text.npos ? text.size() : end + mark.size();
  };
  if (rest.starts_with("//")) return std::min(text.find('\n', at), text.size());
  if (rest.starts_with("/*")) return past("*/", at + 2);
  if (rest.starts_with('"')) {
    size_t end = at + 1;
    while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
    return std::min(end + 1, text.size());
  }
  return at;
}

/// Cuts at the commas that stand outside brackets.
std::vector<std::string_view> split_declarators(std::string_view text) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '[' || c == '<') ++depth;
    if (c == ')' || c == ']' || c == '>') --depth;
    if (c != ',' || depth > 0) continue;
    parts.push_back(trim(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  parts.push_back(trim(text.substr(begin)));
  return parts;
}

/// Removes an alignment specifier from the front of `text`: all shared storage is aligned to 256.
std::string_view drop_alignment(std::string_view text) {
  text = trim(text);
  if (!text.starts_with("alignas") && !text.starts_with("__align__")) return text;
  return trim(text.substr(std::min(text.find(')'), text.size() - 1) + 1));
}

/// "name[2][3]" -> name, "[2][3]"
std::pair<std::string_view, std::string_view> split_extents(std::string_view declarator) {
  const size_t bracket = std::min(declarator.find('['), declarator.size());
  return {trim(declarator.substr(0, bracket)), declarator.substr(bracket)};
}

std::string declare(std::string_view type, std::string_view name, std::string_view extents) {
  return fmt::format(
      "using {1}_sinter_type = {0}{2}; {1}_sinter_type& {1} = *static_cast<{1}_sinter_type*>("
      "sinter_shim_calls->shared_storage([] {{ static char variable; return &variable; }}(), "
      "sizeof({1}_sinter_type), {{__FILE__, __LINE__}}));",
      type, name, extents);
}

/// `body`: what stands between `__shared__` and its semicolon.
Result<std::string> rewrite_declaration(std::string_view body, bool is_extern) {
  std::vector<std::string_view> declarators = split_declarators(drop_alignment(body));
  // The first declarator follows the type: its name is the last word before the extents.
  const std::string_view head = split_extents(declarators[0]).first;
  size_t name_begin = head.size();
  while (name_begin > 0 && is_word(head[name_begin - 1])) --name_begin;
  const std::string_view type = trim(head.substr(0, name_begin));
  if (type.empty() || name_begin == head.size())
    return fail(fmt::format("cannot read the declaration '__shared__ {};'", printable(body)));
  declarators[0] = declarators[0].substr(name_begin);

  if (is_extern)
    return fmt::format(
        "{0}* const {1} = static_cast<{0}*>(sinter_shim_calls->shared_storage(nullptr, 0, "
        "{{__FILE__, __LINE__}}));",
        type, split_extents(declarators[0]).first);
  std::string result;
  for (std::string_view declarator : declarators) {
    const auto [name, extents] = split_extents(declarator);
    result += declare(type, name, extents);
  }
  return result;
}

}  // namespace

Result<std::string> rewrite_shared(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    if (const size_t end = skip_opaque(text, i); end > i) {
      result += text.substr(i, end - i);
      i = end;
      continue;
    }
    const bool found = text.substr(i).starts_with(kShared) && (i == 0 || !is_word(text[i - 1]));
    if (!found) {
      result += text[i++];
      continue;
    }
    const size_t begin = i + kShared.size();
    const size_t end = text.find(';', begin);
    if (end == text.npos) return fail("__shared__ without a semicolon");
    result.erase(result.find_last_not_of(kSpace) + 1);
    const bool is_extern = result.ends_with("extern");
    if (is_extern || result.ends_with("static")) result.resize(result.size() - 6);
    SINTER_LET(declaration, rewrite_declaration(text.substr(begin, end - begin), is_extern));
    // Line breaks that the declaration swallowed, and those before it.
    const size_t written = static_cast<size_t>(std::count(result.begin(), result.end(), '\n'));
    const size_t read = static_cast<size_t>(std::count(text.begin(), text.begin() + end, '\n'));
    result.append(read - written, '\n');
    result += ' ' + declaration;
    i = end + 1;
  }
  return result;
}

std::string hoist_includes(std::string_view text, std::set<std::string>& includes) {
  std::string result;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (trim(line).starts_with("#include"))
      includes.emplace(trim(line));
    else
      result += line;
    if (end < text.size()) result += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

}  // namespace sinter
