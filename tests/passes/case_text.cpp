#include "passes/case_text.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string_view>

namespace sinter::test {
namespace {

constexpr std::string_view kSettings[] = {"model",      "entry",        "forbid",  "require",
                                          "stop-after", "target",       "no-fuse", "run",
                                          "numerics",   "device-inputs"};
constexpr std::string_view kQuestions[] = {"groups",           "group of", "why",  "reductions in",
                                           "distinct kernels", "after",    "error"};
constexpr std::string_view kComment = "//", kIndent = "  ";

/// "a, b" or "a b" -> {a, b}
std::vector<std::string> words_of(std::string text) {
  std::replace(text.begin(), text.end(), ',', ' ');
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// The text of a line that is a comment from its beginning.
std::optional<std::string> comment_of(std::string_view line) {
  if (!line.starts_with(kComment)) return std::nullopt;
  line.remove_prefix(kComment.size());
  if (line.starts_with(' ')) line.remove_prefix(1);
  return std::string(line);
}

/// A keyword with the words after it.
struct Heading {
  std::string keyword;
  std::vector<std::string> words;
};

std::optional<Heading> setting(const std::string& comment) {
  for (const std::string_view keyword : kSettings)
    if (comment.starts_with(std::string(keyword) + ":"))
      return Heading{std::string(keyword), words_of(comment.substr(keyword.size() + 1))};
  return std::nullopt;
}

std::optional<Heading> question(const std::string& comment) {
  for (const std::string_view keyword : kQuestions)
    if (comment.starts_with(keyword) && comment.ends_with(":") &&
        (comment[keyword.size()] == ' ' || comment.size() == keyword.size() + 1))
      return Heading{std::string(keyword),
                     words_of(comment.substr(keyword.size(), comment.size() - keyword.size() - 1))};
  return std::nullopt;
}

}  // namespace

CaseText::CaseText(const std::string& text) : pieces_(1) {
  bool answering = false;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    const std::optional<std::string> comment = comment_of(line);
    answering = answering && comment && (comment->empty() || comment->starts_with(kIndent));
    if (answering) {
      questions.back().answer += comment->substr(std::min(comment->size(), kIndent.size())) + "\n";
      continue;
    }
    pieces_.back() += line + "\n";
    if (!comment) continue;
    if (auto found = setting(*comment)) settings[found->keyword].push_back(std::move(found->words));
    if (auto found = question(*comment)) {
      questions.push_back({std::move(found->keyword), std::move(found->words), ""});
      pieces_.emplace_back();
      answering = true;
    }
  }
}

std::string CaseText::text() const {
  std::string text;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    text += pieces_[i];
    if (i == questions.size()) break;
    std::istringstream lines(questions[i].answer);
    for (std::string line; std::getline(lines, line);)
      text +=
          std::string(kComment) + (line.empty() ? "" : " " + std::string(kIndent) + line) + "\n";
  }
  return text;
}

}  // namespace sinter::test
