// Comments name files that are there: by their path from the root, from the end of it, or by their
// name alone.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <set>

#include "support/check_text.h"

namespace sinter::named_files_test {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = SINTER_SAMPLES_DIR "/..";

/// Headers of others, and files that Sinter writes.
const std::set<std::string> kElsewhere = {"cuda.h",       "cublasLt.h", "cupti_activity.h",
                                          "fmt/format.h", "target.h",   "program.py"};

/// The sources: all files except version control, builds and copies of released headers.
std::vector<std::string> sources() {
  std::vector<std::string> paths;
  for (auto it = fs::recursive_directory_iterator(kRoot); it != fs::recursive_directory_iterator();
       ++it) {
    const std::string name = it->path().filename().string();
    const std::string path = it->path().lexically_relative(kRoot).string();
    if (it->is_directory() &&
        (name.starts_with(".") || path == "build" || name == "released" || name == "__pycache__"))
      it.disable_recursion_pending();
    else if (it->is_regular_file())
      paths.push_back(path);
  }
  return paths;
}

/// Each path, and what is left of it behind each slash.
std::set<std::string> ends_of(const std::vector<std::string>& paths) {
  std::set<std::string> ends;
  for (const std::string& path : paths)
    for (size_t at = 0; at != std::string::npos;) {
      ends.insert(path.substr(at));
      at = path.find('/', at);
      if (at != std::string::npos) ++at;
    }
  return ends;
}

/// The text behind the mark of a comment in the line; "" where there is none.
std::string comment_of(const std::string& line, const std::string& mark) {
  const size_t at = line.find(mark);
  return at == std::string::npos ? "" : line.substr(at + mark.size());
}

std::vector<std::string> missing_files(const std::string& comment,
                                       const std::set<std::string>& ends) {
  static const std::regex kFile("[A-Za-z0-9_./-]*[a-z0-9_]\\.(?:h|cpp|cuh|md|py|cmake|def)\\b");
  std::vector<std::string> missing;
  if (comment.find('.') == std::string::npos) return missing;
  for (std::sregex_iterator it(comment.begin(), comment.end(), kFile), end; it != end; ++it) {
    std::string name = it->str();
    // Behind "../", or behind a pattern: "*/order.h".
    while (name.starts_with("../") || name.starts_with("./") || name.starts_with('/'))
      name.erase(0, name.find('/') + 1);
    const bool stands_for_a_name = name.find("NAME") != std::string::npos;
    if (!stands_for_a_name && !kElsewhere.contains(name) && !ends.contains(name))
      missing.push_back(name);
  }
  return missing;
}

TEST_CASE("comments name files that are there") {
  const std::vector<std::string> paths = sources();
  const std::set<std::string> ends = ends_of(paths);
  size_t comments = 0;
  for (const std::string& path : paths) {
    const std::string type = fs::path(path).extension().string();
    const bool is_c = type == ".h" || type == ".cpp" || type == ".cuh" || type == ".def";
    if (!is_c && type != ".py" && type != ".cmake" && !path.ends_with("CMakeLists.txt")) continue;
    std::ifstream file(kRoot / path);
    size_t number = 0;
    for (std::string line; std::getline(file, line);) {
      ++number;
      const std::string comment = comment_of(line, is_c ? "// " : "# ");
      comments += !comment.empty();
      for (const std::string& name : missing_files(comment, ends))
        FAIL_CHECK(path, ":", number, " names ", name, ", which is not there");
    }
  }
  CHECK(comments > 5000);
}

/// Sections that a comment cites as `PAGE.md, "SECTION"` or `PAGE.md, "SECTION" and "SECTION"`, and
/// that the page lacks; pages are named by their path from the root.
std::vector<std::string> missing_sections(const std::string& comment,
                                          const std::function<std::string(std::string)>& page) {
  static const std::regex kCitation(
      "((?:bench|docs)/[A-Za-z0-9_/]+\\.md), (\"[^\"]+\"(?:(?:,| and|, and) \"[^\"]+\")*)");
  static const std::regex kTitle("\"([^\"]+)\"");
  std::vector<std::string> missing;
  for (std::sregex_iterator it(comment.begin(), comment.end(), kCitation), end; it != end; ++it) {
    const std::string text = "\n" + page((*it)[1]), titles = (*it)[2];
    for (std::sregex_iterator title(titles.begin(), titles.end(), kTitle); title != end; ++title)
      if (text.find("# " + (*title)[1].str() + "\n") == std::string::npos)
        missing.push_back((*it)[1].str() + ", " + (*title)[1].str());
  }
  return missing;
}

TEST_CASE("sections that comments cite are there") {
  const auto page = [](const std::string& name) {
    std::ifstream file(kRoot / name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  size_t cited = 0;
  for (const std::string& path : sources()) {
    const std::string type = fs::path(path).extension().string();
    const bool is_c = type == ".h" || type == ".cpp" || type == ".cuh" || type == ".def";
    if (!is_c && type != ".py") continue;
    // Neighbouring lines of comments are one text.
    std::ifstream file(kRoot / path);
    std::string text;
    for (std::string line; std::getline(file, line);) {
      const std::string comment = comment_of(line, is_c ? "// " : "# ");
      text += comment.empty() ? "\n" : " " + comment;
    }
    cited += text.find("bench/log/") != std::string::npos;
    for (const std::string& section : missing_sections(text, page))
      FAIL_CHECK(path, " cites ", section, ", which is not there");
  }
  CHECK(cited > 0);
}

TEST_CASE("a section that is not there is found") {
  const auto page = [](const std::string& name) {
    return std::string(name == "bench/a.md" ? "# A\n\n## One of b\n" : "");
  };
  CHECK(missing_sections("as bench/a.md, \"One of b\" and \"A\", says", page).empty());
  CHECK(missing_sections("(bench/a.md, \"A\" and \"One\")", page) ==
        std::vector<std::string>{"bench/a.md, One"});
  CHECK(missing_sections("(docs/b.md, \"A\")", page) == std::vector<std::string>{"docs/b.md, A"});
}

TEST_CASE("a file that is not there is found") {
  const std::set<std::string> ends = ends_of({"a/b/c.h", "docs/d.md"});
  CHECK(missing_files("see c.h, b/c.h, a/b/c.h and docs/d.md", ends).empty());
  CHECK(missing_files("see b/d.h and e.md", ends) == std::vector<std::string>{"b/d.h", "e.md"});
  CHECK(missing_files("NAME/order.h of cuda.h, 1.5 and f.x", ends).empty());
}

}  // namespace
}  // namespace sinter::named_files_test
