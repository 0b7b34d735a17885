#include "passes/text_test.h"

#include <doctest/doctest.h>

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "codegen/extract.h"
#include "frontends/load_model.h"
#include "ir/decompose.h"
#include "ir/text.h"
#include "passes/plan_runs.h"

namespace sinter::test {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// "a, b" or "a b" -> {a, b}
std::vector<std::string> words_of(std::string text) {
  for (char& c : text)
    if (c == ',') c = ' ';
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

constexpr std::string_view kSettings[] = {"input",      "model",  "entry",   "forbid", "require",
                                          "stop-after", "target", "no-fuse", "run",    "numerics"};
constexpr std::string_view kExpectations[] = {
    "groups", "group of", "why", "reductions in", "distinct kernels", "after", "error"};

/// A heading with what stands after its keyword; expectations have a body.
struct Section {
  std::string keyword, arguments;
  bool expectation = false;
};

std::optional<Section> heading(const std::string& line) {
  for (std::string_view keyword : kSettings)
    if (line.starts_with(std::string(keyword) + ":"))
      return Section{std::string(keyword), line.substr(keyword.size() + 1), false};
  for (std::string_view keyword : kExpectations)
    if (line.starts_with(keyword) && line.ends_with(":") &&
        (line[keyword.size()] == ' ' || line.size() == keyword.size() + 1))
      return Section{std::string(keyword),
                     line.substr(keyword.size(), line.size() - keyword.size() - 1), true};
  return std::nullopt;
}

class Case {
 public:
  explicit Case(std::string path) : path_(std::move(path)) {}

  CaseResult run(const std::string& text) {
    // Settings may stand anywhere; they are read before anything is answered.
    const std::vector<std::string> lines = lines_of(text);
    for (size_t i = 0; i < lines.size(); ++i)
      if (const auto section = heading(lines[i]); section && !section->expectation) {
        std::string value = section->arguments;
        if (section->keyword == "input")
          while (++i < lines.size() && lines[i] != "}") value += lines[i] + "\n";
        settings_[section->keyword].push_back(value);
      }
    compile_input();

    std::string result;
    bool skipping = false;  // the body of an expectation
    for (const std::string& line : lines) {
      if (skipping && (line.starts_with("  ") || line.empty())) continue;
      const auto section = heading(line);
      skipping = section && section->expectation;
      result += line + "\n";
      if (!skipping) continue;
      for (const std::string& answer_line : lines_of(answer(*section)))
        result += answer_line.empty() ? "\n" : "  " + answer_line + "\n";
    }
    if (!error_.empty() && result.find("\nerror:\n") == std::string::npos) failure_ = error_;
    return {result, failure_};
  }

 private:
  std::string setting(const std::string& key) const {
    const auto at = settings_.find(key);
    const auto words = at == settings_.end() ? std::vector<std::string>() : words_of(at->second[0]);
    return words.empty() ? std::string() : words[0];
  }

  void compile_input() {
    Result<Module> module = read_module();
    if (!module) {
      error_ = module.error().message();
      return;
    }
    options_.target = settings_.contains("target") ? setting("target") : options_.target;
    options_.fusion.enabled = !settings_.contains("no-fuse");
    if (setting("numerics") == "fast") options_.fusion.numerics = Numerics::fast;
    if (settings_.contains("stop-after"))
      options_.fusion.stop_after = number(setting("stop-after"));
    for (const auto& [key, pairs] :
         {std::pair("forbid", &options_.fusion.forbidden), {"require", &options_.fusion.required}})
      for (const std::string& value : settings_[key]) {
        const auto words = words_of(value);
        if (words.size() == 2) pairs->push_back({words[0], words[1]});
      }
    const PassObserver keep = [&](std::string_view pass, const Module& m) {
      after_[std::string(pass)] = m;
    };
    Result<Module> frozen = freeze(*module, {}, keep);
    Result<Compiled> compiled =
        frozen ? compile(*frozen, options_) : Result<Compiled>(tl::make_unexpected(frozen.error()));
    if (!compiled) {
      error_ = compiled.error().message();
      return;
    }
    compiled_ = std::move(*compiled);
    const std::string entry = setting("entry");
    for (size_t i = 0; i < compiled_->module.entries.size(); ++i)
      if (compiled_->module.entries[i].name == entry) entry_ = i;
    // Fast plans compute other bits.
    if (settings_.contains("input") && options_.fusion.numerics == Numerics::strict)
      run_plans(*module);
  }

  Result<Module> read_module() {
    if (settings_.contains("input")) return parse_module(settings_["input"][0] + "}\n", "input");
    const std::string folder = fmt::format("{}/{}", SINTER_TESTS_DIR, setting("model"));
    SINTER_LET(loaded, load_model(folder));
    return std::move(loaded.module);
  }

  void run_plans(const Module& module) {
    std::vector<int64_t> values = small_symbol_values(module.symbols);
    if (settings_.contains("run")) {
      values.clear();
      for (const std::string& word : words_of(settings_["run"][0])) values.push_back(number(word));
    }
    failure_ = compare_plans(module, values, options_);
  }

  int64_t number(const std::string& word) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size())
      failure_ = fmt::format("{} is no number", word);
    return value;
  }

  const Graph& graph() const { return compiled_->module.entries[entry_].graph; }
  const Fusion& fusion() const { return compiled_->fusions[entry_]; }

  std::optional<ValueId> value(const std::string& name) {
    const ValueId id = graph().find(name);
    if (id.valid()) return id;
    failure_ = fmt::format("no value is called {}", name);
    return std::nullopt;
  }

  std::string names(llvm::ArrayRef<ValueId> ids) const {
    std::vector<std::string_view> result;
    for (ValueId id : ids) result.push_back(graph()[id].name);
    return fmt::format("{}", fmt::join(result, " "));
  }

  std::string show_group(uint32_t index) const {
    const Grouping& grouping = fusion().grouping;
    const Group& group = grouping.groups[index];
    if (op_class(graph()[group.members[0]]) == OpClass::contraction)
      return "call: " + names(group.members);
    const auto extracted =
        extract_group(graph(), grouping, index, values_that_leave(graph(), grouping));
    std::vector<std::string> parts;
    for (const Group& part :
         group.parts.empty() ? llvm::ArrayRef(group) : llvm::ArrayRef(group.parts))
      parts.push_back(fmt::format("rows {}: {}", part.prefix_rank, names(part.members)));
    return fmt::format("{} => {}", fmt::join(parts, " | "), names(extracted.outputs));
  }

  std::optional<uint32_t> group_of(const std::string& name) {
    const auto id = value(name);
    if (!id) return std::nullopt;
    const uint32_t group = fusion().grouping.group_of[root_of(graph(), *id).index];
    if (group != UINT32_MAX) return group;
    failure_ = name + " belongs to no kernel";
    return std::nullopt;
  }

  std::string show_why(const std::string& x, const std::string& y) {
    const auto a = value(x), b = value(y);
    if (!a || !b) return "";
    const Verdict verdict = fusion().why(*a, *b);
    std::string text(reason_id(verdict.reason));
    if (!verdict.detail.empty()) text += ": " + verdict.detail;
    std::vector<std::string_view> path;
    for (ValueId id : verdict.path) path.push_back(graph()[id].name);
    if (!path.empty()) text += fmt::format(": {}", fmt::join(path, " -> "));
    return text;
  }

  std::string count_reductions(uint32_t group) const {
    const Grouping& grouping = fusion().grouping;
    const auto extracted =
        extract_group(graph(), grouping, group, values_that_leave(graph(), grouping));
    const Graph primitives = decompose_all(extracted.graph, compiled_->module.symbols);
    return fmt::format("{}", llvm::count_if(primitives.ops(), [](const Op& op) {
                         return op_class(op) == OpClass::reduce;
                       }));
  }

  std::string count_kernels() const {
    size_t launches = 0, calls = 0;
    for (const EntryPlan& entry : compiled_->program->entries)
      for (const Step& step : entry.steps)
        ++(std::holds_alternative<KernelStep>(step.run) ? launches : calls);
    std::set<std::string> bodies;
    for (const Kernel& kernel : compiled_->program->kernels) {
      // What follows the comment that shows the group, without the kernel's name.
      std::string body = kernel.source.substr(kernel.source.find("#include"));
      body.erase(body.find(kernel.name), kernel.name.size());
      bodies.insert(std::move(body));
    }
    return fmt::format("{} kernels, {} of different text, {} launches, {} calls",
                       compiled_->program->kernels.size(), bodies.size(), launches, calls);
  }

  std::string answer(const Section& section) {
    const std::vector<std::string> words = words_of(section.arguments);
    if (section.keyword == "error") return error_.empty() ? "none" : error_;
    if (section.keyword == "after") {
      const auto at = after_.find(words.empty() ? "" : words[0]);
      return at == after_.end() ? "no such pass" : print_module(at->second);
    }
    if (!compiled_) return "";
    if (section.keyword == "distinct kernels") return count_kernels();
    if (section.keyword == "groups") {
      std::string text;
      for (uint32_t i = 0; i < fusion().grouping.groups.size(); ++i) text += show_group(i) + "\n";
      return text;
    }
    if (section.keyword == "why" && words.size() == 2) return show_why(words[0], words[1]);
    if (words.size() != 1) return fmt::format("{} names are too many or too few", words.size());
    const auto group = group_of(words[0]);
    if (!group) return "";
    return section.keyword == "group of" ? show_group(*group) : count_reductions(*group);
  }

  std::string path_;
  std::map<std::string, std::vector<std::string>> settings_;
  CompileOptions options_;
  std::map<std::string, Module> after_;
  std::optional<Compiled> compiled_;
  size_t entry_ = 0;
  std::string error_, failure_;
};

}  // namespace

CaseResult run_case(const std::string& text, const std::string& path) {
  return Case(path).run(text);
}

std::string line_difference(const std::string& wanted, const std::string& got) {
  const std::vector<std::string> a = lines_of(wanted), b = lines_of(got);
  size_t head = 0, tail = 0;
  while (head < std::min(a.size(), b.size()) && a[head] == b[head]) ++head;
  while (tail < std::min(a.size(), b.size()) - head &&
         a[a.size() - 1 - tail] == b[b.size() - 1 - tail])
    ++tail;
  std::string text;
  if (head > 0) text += "  " + a[head - 1] + "\n";
  for (size_t i = head; i + tail < a.size(); ++i) text += "- " + a[i] + "\n";
  for (size_t i = head; i + tail < b.size(); ++i) text += "+ " + b[i] + "\n";
  return text;
}

void check_text_file(const std::string& text, const std::string& name, const std::string& test) {
  const std::string path = SINTER_TESTS_DIR "/" + name;
  if (std::getenv("SINTER_BLESS")) std::ofstream(path) << text;
  std::stringstream wanted;
  wanted << std::ifstream(path).rdbuf();
  CHECK_MESSAGE(text == wanted.str(), line_difference(wanted.str(), text),
                "SINTER_BLESS=1 ctest -R ", test, " accepts the lines marked +");
}

void check_case_file(const std::string& path) {
  CAPTURE(path);
  std::ostringstream wanted;
  wanted << std::ifstream(path).rdbuf();
  const CaseResult result = run_case(wanted.str(), path);
  if (!result.failure.empty()) FAIL_CHECK(result.failure);
  if (std::getenv("SINTER_BLESS")) {
    std::ofstream(path) << result.text;
  } else if (result.text != wanted.str()) {
    FAIL_CHECK(line_difference(wanted.str(), result.text)
               << "SINTER_BLESS=1 ctest -R passes_cases accepts the lines marked +");
  }
}

}  // namespace sinter::test
