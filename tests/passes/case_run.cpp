#include "passes/case_run.h"

#include <charconv>
#include <filesystem>
#include <set>

#include "codegen/lowering/extract.h"
#include "frontends/load_model.h"
#include "ir/decompose.h"
#include "ir/text.h"
#include "passes/case_text.h"
#include "passes/plan_runs.h"

namespace sinter::test {
namespace {

class CaseRun {
 public:
  CaseRun(const CaseText& asked, const std::string& text, const std::string& path)
      : asked_(asked), text_(text), file_(std::filesystem::path(path).filename().string()) {
    compile_input();
  }

  const std::string& error() const { return error_; }
  const std::string& failure() const { return failure_; }

  std::string answer(const Question& question) {
    const std::vector<std::string>& names = question.names;
    if (question.keyword == "error") return error_.empty() ? "none" : error_;
    if (question.keyword == "after") {
      const auto at = after_.find(names.empty() ? "" : names[0]);
      return at == after_.end() ? "no such pass" : print_module(at->second);
    }
    if (!compiled_) return "";
    if (question.keyword == "distinct kernels") return count_kernels();
    if (question.keyword == "groups") {
      std::string text;
      for (uint32_t i = 0; i < fusion().grouping.groups.size(); ++i) text += show_group(i) + "\n";
      return text;
    }
    if (question.keyword == "why" && names.size() == 2) return show_why(names[0], names[1]);
    if (names.size() != 1) return fmt::format("{} names are too many or too few", names.size());
    const auto group = group_of(names[0]);
    if (!group) return "";
    return question.keyword == "group of" ? show_group(*group) : count_reductions(*group);
  }

 private:
  bool has(const std::string& key) const { return asked_.settings.contains(key); }
  /// The first word of a setting, "" without one.
  std::string setting(const std::string& key) const {
    const auto at = asked_.settings.find(key);
    return at == asked_.settings.end() || at->second[0].empty() ? "" : at->second[0][0];
  }

  void compile_input() {
    Result<Module> module = read_module();
    if (!module) {
      error_ = module.error().message();
      return;
    }
    options_.target = has("target") ? setting("target") : options_.target;
    options_.fusion.enabled = !has("no-fuse");
    if (setting("numerics") == "fast") options_.fusion.numerics = Numerics::fast;
    options_.device_inputs = has("device-inputs");
    if (has("stop-after")) options_.fusion.stop_after = number(setting("stop-after"));
    for (const auto& [key, pairs] :
         {std::pair("forbid", &options_.fusion.forbidden), {"require", &options_.fusion.required}})
      if (has(key))
        for (const std::vector<std::string>& words : asked_.settings.at(key))
          if (words.size() == 2) pairs->push_back({words[0], words[1]});
    const PassObserver keep = [&](std::string_view pass, const Module& m) {
      after_[std::string(pass)] = m;
    };
    Result<Module> frozen = freeze(*module, {}, keep, pass_options(options_));
    Result<Compiled> compiled =
        frozen ? compile(*frozen, options_) : Result<Compiled>(tl::make_unexpected(frozen.error()));
    if (!compiled) {
      error_ = compiled.error().message();
      return;
    }
    compiled_ = std::move(*compiled);
    // The last variant, for the most tokens.
    const std::string entry = has("entry") ? setting("entry") : compiled_->module.entries[0].name;
    for (size_t i = 0; i < compiled_->module.entries.size(); ++i)
      if (compiled_->module.entries[i].name == entry) entry_ = i;
    // Fast plans compute other bits.
    if (!has("model") && options_.fusion.numerics == Numerics::strict) run_plans(*module);
  }

  Result<Module> read_module() {
    if (!has("model")) return parse_module(text_, file_);
    const std::string folder = fmt::format("{}/{}", SINTER_TESTS_DIR, setting("model"));
    SINTER_LET(loaded, load_model(folder));
    return std::move(loaded.module);
  }

  void run_plans(const Module& module) {
    std::vector<int64_t> values = small_symbol_values(module.symbols);
    if (has("run")) {
      values.clear();
      for (const std::string& word : asked_.settings.at("run")[0]) values.push_back(number(word));
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
    const auto extracted = extract_group(
        graph(), grouping, index, values_that_leave(graph(), grouping, compiled_->module.symbols));
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
    const auto extracted = extract_group(
        graph(), grouping, group, values_that_leave(graph(), grouping, compiled_->module.symbols));
    const Graph primitives = decompose_all(extracted.graph, compiled_->module.symbols);
    return fmt::format("{}", llvm::count_if(primitives.ops(), [](const Op& op) {
                         return op_class(op) == OpClass::reduce;
                       }));
  }

  std::string count_kernels() const {
    size_t launches = 0, calls = 0;
    for (const EntryPlan& entry : compiled_->program->entries)
      for (const Step& step : entry.steps)
        ++(step_facts(*compiled_->program, step).kernel ? launches : calls);
    std::set<std::string> bodies;
    for (const Kernel& kernel : compiled_->program->kernels) {
      // The text after the comment that shows the group, without the kernel's name.
      std::string body = kernel.source.substr(kernel.source.find("#include"));
      body.erase(body.find(kernel.name), kernel.name.size());
      bodies.insert(std::move(body));
    }
    return fmt::format("{} kernels, {} of different text, {} launches, {} calls",
                       compiled_->program->kernels.size(), bodies.size(), launches, calls);
  }

  const CaseText& asked_;
  std::string text_, file_;
  CompileOptions options_;
  std::map<std::string, Module> after_;
  std::optional<Compiled> compiled_;
  size_t entry_ = 0;
  std::string error_, failure_;
};

/// The command that shows the module after `pass`: with all passes up to it.
std::string opt_command(const std::string& pass, const std::string& path) {
  std::vector<std::string_view> passes;
  for (const Pass& each : pipeline()) {
    passes.push_back(each.name);
    if (each.name == pass) break;
  }
  return fmt::format("sinter opt --pass {} {}", fmt::join(passes, ","), path);
}

}  // namespace

CaseResult run_case(const std::string& text, const std::string& path) {
  const CaseText wanted(text);
  CaseText got = wanted;
  CaseRun run(wanted, text, path);
  CaseResult result;
  bool expects_error = false;
  for (size_t i = 0; i < got.questions.size(); ++i) {
    Question& question = got.questions[i];
    expects_error |= question.keyword == "error";
    question.answer = run.answer(question);
    if (!question.answer.empty() && !question.answer.ends_with('\n')) question.answer += '\n';
    if (question.keyword == "after" && !question.names.empty() &&
        question.answer != wanted.questions[i].answer)
      result.changed_passes.push_back(question.names[0]);
  }
  result.text = got.text();
  result.failure = expects_error || run.error().empty() ? run.failure() : run.error();
  return result;
}

std::string case_commands(const CaseResult& result, const std::string& program,
                          const std::string& path) {
  std::string text = fmt::format("run it alone:            {} {}\n", program, path);
  if (result.failure.empty())
    text += fmt::format("accept the lines with +: SINTER_BLESS=1 {} {}\n", program, path);
  for (const std::string& pass : result.changed_passes)
    text += fmt::format("show the module:         {}\n", opt_command(pass, path));
  return text;
}

}  // namespace sinter::test
