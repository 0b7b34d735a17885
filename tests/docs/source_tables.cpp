#include "docs/source_tables.h"

#include <algorithm>
#include <filesystem>
#include <regex>
#include <sstream>

#include "support/expected_text.h"

namespace sinter::test {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = fs::path(SINTER_TESTS_DIR).parent_path();

std::string source(const fs::path& path) { return read_text((kRoot / path).string()); }

/// The files that hold rules of inference, sorted.
std::vector<fs::path> rule_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kRoot / "ir")) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("infer") && name.ends_with(".cpp")) files.push_back(entry.path());
  }
  for (const auto& entry : fs::directory_iterator(kRoot / "kernels"))
    if (fs::exists(entry.path() / "op.cpp")) files.push_back(entry.path() / "op.cpp");
  std::sort(files.begin(), files.end());
  return files;
}

/// Comments such as
///   //   C4   reshape: the number of elements stays,
///   //        for all values of the symbols
std::map<int, std::string> numbered_texts(const std::string& text, const std::string& letter) {
  const std::regex first("//   " + letter + "([0-9]+) +(.*)"), more("//( {3,}|   *)([^ ].*)");
  std::map<int, std::string> texts;
  std::string* open = nullptr;
  std::istringstream lines(text);
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, match, first)) {
      open = &texts[std::stoi(match[1])];
      *open = match[2];
    } else if (open && std::regex_match(line, match, more) && line.starts_with("//   ")) {
      *open += " " + match[2].str();
    } else {
      open = nullptr;
    }
  }
  return texts;
}

/// The bodies of a file's functions by name: from a line that begins in the first column to "}".
void add_functions(const std::string& text, std::map<std::string, std::string>& bodies) {
  static const std::regex head("[A-Za-z].*?([A-Za-z_0-9]+)\\(.*");
  std::istringstream lines(text);
  std::string name;
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, match, head)) name = match[1];
    if (!name.empty()) bodies[name] += line + "\n";
    if (line == "}" || line.ends_with("; }")) name.clear();
  }
}

/// The functions that stand in a body.
std::set<std::string> words_called(const std::string& body) {
  static const std::regex call("([A-Za-z_0-9]+)\\(");
  std::set<std::string> names;
  for (std::sregex_iterator at(body.begin(), body.end(), call), end; at != end; ++at)
    names.insert((*at)[1]);
  return names;
}

}  // namespace

std::map<AttrName, std::string> attribute_texts() {
  std::map<AttrName, std::string> texts;
  const std::string text = source("ir/attributes.h");
  // Files that a comment refers to are left out.
  const std::regex row(R"(X\((\w+), [^)]*\) */\* (.*?) \*/)"), file(R"( \(\w+\.(def|h)\))");
  for (std::sregex_iterator at(text.begin(), text.end(), row), end; at != end; ++at)
    if (const auto name = parse_attr_name((*at)[1].str()))
      texts[*name] = std::regex_replace((*at)[2].str(), file, "");
  return texts;
}

std::map<std::string, std::string> role_texts() {
  std::map<std::string, std::string> texts;
  const std::regex row(R"(//         (\w+)(?:\(k?\))?(?:, (\w+)\(k\))?  +(.*))"),
      more(R"(// {19}(.*))");
  std::vector<std::string*> open;
  std::istringstream lines(source("ir/ops.def"));
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, match, more)) {
      for (std::string* text : open) *text += " " + match[1].str();
    } else if (std::regex_match(line, match, row)) {
      open = {&texts[match[1]]};
      if (match[2].matched) open.push_back(&texts[match[2]]);
      for (std::string* text : open) *text = match[3];
    } else {
      open.clear();
    }
    if (line.starts_with("#ifndef")) break;
  }
  return texts;
}

std::map<int, std::string> constraint_texts() {
  std::map<int, std::string> texts;
  for (const fs::path& file : rule_files()) texts.merge(numbered_texts(source(file), "C"));
  return texts;
}

std::map<int, std::string> invariant_texts() {
  return numbered_texts(source("ir/verifier.cpp"), "V");
}

std::set<int> constraints_of(const Algorithm& algorithm) {
  static const std::map<std::string, std::string> bodies = [] {
    std::map<std::string, std::string> all;
    for (const fs::path& file : rule_files()) add_functions(source(file), all);
    return all;
  }();
  const OpInfo& info = op_info(algorithm.kind);
  std::set<std::string> seen;
  std::vector<std::string> open = {info.op_class == OpClass::elementwise
                                       ? "infer_elementwise"
                                       : "infer_" + std::string(info.name)};
  if (algorithm.order) open.push_back(fmt::format("check_{}", algorithm.name()));
  std::set<int> numbers;
  static const std::regex number(R"(\breject\(\s*([0-9]+),|\(C([0-9]+)\))");
  while (!open.empty()) {
    const std::string name = open.back();
    open.pop_back();
    const auto body = bodies.find(name);
    if (body == bodies.end() || !seen.insert(name).second) continue;
    const std::string& text = body->second;
    for (std::sregex_iterator at(text.begin(), text.end(), number), end; at != end; ++at)
      numbers.insert(std::stoi((*at)[1].matched ? (*at)[1] : (*at)[2]));
    for (const std::string& called : words_called(text)) open.push_back(called);
  }
  return numbers;
}

}  // namespace sinter::test
