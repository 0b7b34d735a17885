#include "driver/bisect/bisect.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "driver/bisect/judge_plans.h"
#include "driver/bisect/reproducer.h"
#include "driver/bisect/reproducer_folder.h"
#include "driver/text_file.h"
#include "driver/text_table.h"
#include "frontends/files/bounded_file.h"
#include "frontends/files/json.h"
#include "ir/sym_expr.h"
#include "ir/text.h"
#include "ir/variants.h"
#include "plan/plan_file.h"

namespace sinter {
namespace {

// Runs of the fused plan before a fault counts as one that always shows: a fault of one run in five
// shows in all three once in 125 searches.
constexpr int64_t kSureRuns = 3;
// Runs from which the share of wrong runs is estimated, and how often a wrong plan may still pass
// for right then.
constexpr int64_t kSampleRuns = 20;
constexpr double kMissed = 1e-3;
constexpr int64_t kMaxRuns = 200;

/// The fusions of a plan, and the kernels that they join.
class Fusions {
 public:
  explicit Fusions(const Compiled& fused) : fused_(fused) {
    for (size_t entry = 0; entry < fused.fusions.size(); ++entry) {
      const Graph& graph = fused.module.entries[entry].graph;
      for (const LedgerEntry& made : fused.fusions[entry].ledger) {
        if (!made.verdict.accepted()) break;
        list_.push_back({static_cast<int64_t>(list_.size()), entry, fused.title_of(entry),
                         graph[made.a].name, graph[made.b].name,
                         made.verdict.reason == Reason::fused_horizontal});
        ids_.emplace_back(made.a, made.b);
      }
    }
  }

  const std::vector<NumberedFusion>& list() const { return list_; }
  std::pair<ValueId, ValueId> ops(int64_t number) const {
    return ids_[static_cast<size_t>(number)];
  }

  /// The earlier fusions in the kernels that a fusion joins.
  FusionSet context(int64_t number) const {
    const auto [a, b] = ops(number);
    std::set<ValueId> joined = {a, b};
    FusionSet earlier;
    // Backwards, again and again: an earlier fusion may join two ops that a later one reaches.
    for (bool changed = true; changed;) {
      changed = false;
      for (int64_t i = number; i-- > 0;) {
        const auto [x, y] = ops(i);
        if (list_[static_cast<size_t>(i)].entry != list_[static_cast<size_t>(number)].entry ||
            llvm::is_contained(earlier, i) || (!joined.contains(x) && !joined.contains(y)))
          continue;
        joined.insert({x, y});
        earlier.push_back(i);
        changed = true;
      }
    }
    std::sort(earlier.begin(), earlier.end());
    return earlier;
  }

 private:
  const Compiled& fused_;
  std::vector<NumberedFusion> list_;
  std::vector<std::pair<ValueId, ValueId>> ids_;
};

/// Answers by plan, in a file where the search has one.
class Answers {
 public:
  /// `search`: what the answers are of.
  static Result<Answers> open(const std::string& path, const std::string& search) {
    Answers answers;
    answers.path_ = path;
    answers.search_ = content_hash(search);
    std::error_code error;
    if (path.empty() || !std::filesystem::exists(path, error)) return answers;
    constexpr size_t kMaxBytes = size_t{1} << 26;
    SINTER_LET(text, read_small_file(path, kMaxBytes, FileRole::own));
    SINTER_LET(document, parse_json(text, path));
    const JsonView root = document.view();
    SINTER_LET(known, root["search"].string());
    if (known != answers.search_)
      return fail("the file has answers of another search", path,
                  "give another --state, or remove the file", ExitCode::usage);
    SINTER_LET(members, root["wrong"].object());
    for (const JsonMember& member : *members) {
      SINTER_LET(wrong, root["wrong"][member.key].boolean());
      answers.wrong_[member.key] = wrong;
    }
    answers.known_ = static_cast<int64_t>(answers.wrong_.size());
    return answers;
  }

  std::optional<bool> find(const std::string& key) const {
    const auto at = wrong_.find(key);
    return at == wrong_.end() ? std::nullopt : std::optional(at->second);
  }
  Status add(const std::string& key, bool wrong) {
    wrong_[key] = wrong;
    if (path_.empty()) return {};
    nlohmann::ordered_json json;
    json["search"] = search_;
    json["wrong"] = wrong_;
    return write_text(path_, json.dump(1) + "\n");
  }
  int64_t known() const { return known_; }
  /// The search is over: its answers serve no other.
  void remove() const {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove(path_, error);
  }

 private:
  std::string path_, search_;
  std::map<std::string, bool> wrong_;
  int64_t known_ = 0;
};

class Bisection {
 public:
  Bisection(const OpenedModel& model, const BisectOptions& options, PlanJudge& judge,
            Answers answers)
      : model_(model),
        options_(options),
        judge_(judge),
        answers_(std::move(answers)),
        fusions_(judge.fused()) {}

  Result<BisectReport> run() {
    report_.fusions = static_cast<int64_t>(fusions_.list().size());
    report_.known = answers_.known();
    SINTER_LET(fused, fused_is_wrong());
    if (fused) SINTER_TRY(find());
    report_.runs = judge_.runs_made();
    answers_.remove();
    return std::move(report_);
  }

 private:
  Status tell(const std::string& text) {
    if (!options_.progress || options_.progress(text)) return {};
    return fail("the search was cancelled", {}, {}, ExitCode::cancelled);
  }

  /// Judges the fused plan and how often a fault of it shows.
  Result<bool> fused_is_wrong() {
    SINTER_TRY(tell("the fused plan"));
    const PlanChoice fused;
    ++report_.checks;
    SINTER_LET(first, judge_.wrong_runs(fused, kSureRuns, false));
    int64_t wrong = first, runs = kSureRuns;
    if (wrong == kSureRuns) return true;
    if (wrong == 0) {
      SINTER_LET(later,
                 judge_.wrong_runs(fused, std::max<int64_t>(options_.repeats - runs, 0), true));
      wrong += later;
      if (wrong == 0) return false;
    }
    runs = kSampleRuns;
    SINTER_LET(sampled, judge_.wrong_runs(fused, runs, false));
    report_.flaky = true;
    report_.wrong_runs = sampled;
    report_.sampled_runs = runs;
    const double share =
        std::max(static_cast<double>(sampled), 1.0) / static_cast<double>(runs) / 2;
    // Half the share that was seen: the sample is small.
    report_.runs_each =
        std::min(kMaxRuns, static_cast<int64_t>(std::ceil(std::log(kMissed) / std::log1p(-share))));
    return true;
  }

  Result<std::vector<bool>> wrong(llvm::ArrayRef<PlanChoice> choices) {
    std::vector<bool> answers(choices.size(), false);
    std::vector<size_t> open;
    for (size_t i = 0; i < choices.size(); ++i)
      if (const auto known = answers_.find(choices[i].key()))
        answers[i] = *known;
      else
        open.push_back(i);
    std::vector<Result<int64_t>> found(open.size(), int64_t{0});
    const auto judge = [&](size_t i) {
      found[i] = judge_.wrong_runs(choices[open[i]], report_.runs_each, true);
    };
    std::vector<std::thread> threads;
    for (size_t i = 1; i < open.size(); ++i) threads.emplace_back(judge, i);
    if (!open.empty()) judge(0);
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < open.size(); ++i) {
      SINTER_TRY(found[i]);
      ++report_.checks;
      answers[open[i]] = *found[i] > 0;
      SINTER_TRY(answers_.add(choices[open[i]].key(), answers[open[i]]));
    }
    return answers;
  }
  Result<bool> is_wrong(const PlanChoice& choice) {
    SINTER_LET(answers, wrong({choice}));
    return bool(answers[0]);
  }

  Status find() {
    if (compares_with_unfused()) {
      SINTER_TRY(find_fusions());
      return {};
    }
    SINTER_TRY(tell("the unfused plan"));
    SINTER_LET(unfused, is_wrong({false, {}, {}}));
    return unfused ? find_choice() : find_fusions();
  }

  bool compares_with_unfused() const {
    return options_.reference.empty() && options_.check.text.empty();
  }

  /// Other orders and kernels, one change at a time.
  Status find_choice() {
    report_.verdict = BisectReport::Verdict::other;
    using Products = Recipe::Products;
    using Attention = Recipe::Attention;
    const Recipe& usual = options_.compile.recipe;
    std::vector<std::pair<std::string, Recipe>> choices;
    const auto add = [&](std::string_view option, auto Recipe::*choice, auto value) {
      choices.emplace_back(fmt::format("{} {}", option, to_string(value)), usual);
      choices.back().second.*choice = value;
    };
    add("--attention", &Recipe::attention,
        usual.attention == Attention::composed ? Attention::tiled : Attention::composed);
    for (const Products other : {Products::own, Products::library})
      if (usual.products != other) add("--products", &Recipe::products, other);
    const std::string plan = write_plan(*judge_.fused().program);
    for (const auto& [option, recipe] : choices) {
      SINTER_TRY(tell(option));
      const PlanChoice choice{true, {}, recipe};
      auto compiled = judge_.compile_choice(choice);
      if (!compiled || write_plan(*compiled->program) == plan) continue;
      SINTER_LET(still, is_wrong(choice));
      if (still) continue;
      report_.verdict = BisectReport::Verdict::choice;
      report_.choice = option;
      return {};
    }
    return {};
  }

  Status find_fusions() {
    report_.verdict = BisectReport::Verdict::fusion;
    FusionSearch search;
    search.at_once = static_cast<size_t>(options_.jobs);
    search.context = [&](int64_t fusion) { return fusions_.context(fusion); };
    const FusionSet all = [&] {
      FusionSet numbers;
      for (const NumberedFusion& fusion : fusions_.list()) numbers.push_back(fusion.number);
      return numbers;
    }();
    search.wrong = [&](llvm::ArrayRef<FusionSet> sets) -> Result<std::vector<bool>> {
      std::vector<PlanChoice> choices;
      std::vector<bool> answers(sets.size(), true);
      std::vector<size_t> asked;
      for (size_t i = 0; i < sets.size(); ++i) {
        if (sets[i] == all) continue;  // that is the fused plan
        choices.push_back({true, sets[i], {}});
        asked.push_back(i);
      }
      SINTER_TRY(
          tell(fmt::format("{} of {}, {}", to_string(sets.back()), counted(all.size(), "fusion"),
                           counted(static_cast<uint64_t>(report_.checks), "check"))));
      SINTER_LET(found, wrong(choices));
      for (size_t i = 0; i < asked.size(); ++i) answers[asked[i]] = found[i];
      return answers;
    };
    SINTER_LET(sets, find_guilty(all, search));
    for (const FusionSet& set : sets) SINTER_TRY(describe(set, search));
    return {};
  }

  Status describe(const FusionSet& set, const FusionSearch& search) {
    GuiltyFusions guilty;
    FusionSet sorted = set;
    std::sort(sorted.begin(), sorted.end());
    for (const int64_t number : sorted)
      guilty.fusions.push_back(fusions_.list()[static_cast<size_t>(number)]);
    const PlanChoice choice{true, with_context(sorted, search), {}};
    SINTER_TRY(tell("the first element that differs"));
    const int64_t runs = std::max(report_.runs_each, kSureRuns);
    SINTER_LET(difference, judge_.difference(choice, runs));
    guilty.difference = difference.first;
    guilty.failure = difference.second;
    SINTER_LET(compiled, judge_.compile_choice(choice));
    // Kernels of one entry make one module: a set has more than one entry where values go from one
    // to another through states, and the last one shows the fault.
    const size_t entry = guilty.fusions.back().entry;
    const Graph& graph = compiled.module.entries[entry].graph;
    const Grouping& grouping = compiled.fusions[entry].grouping;
    std::set<ValueId> members;
    for (const int64_t number : sorted) {
      if (fusions_.list()[static_cast<size_t>(number)].entry != entry) continue;
      const auto [a, b] = fusions_.ops(number);
      for (const ValueId op : {a, b})
        for (const ValueId member : grouping.groups[grouping.group_of[op.index]].members)
          members.insert(member);
    }
    for (const ValueId member : members) guilty.ops.push_back(graph[member].name);
    if (!options_.output.empty()) {
      SINTER_TRY(tell("the reproducer"));
      SINTER_TRY(reproduce(guilty, compiled, entry, {members.begin(), members.end()}, runs));
    }
    report_.guilty.push_back(std::move(guilty));
    return {};
  }

  /// The call that shows the difference, or the first one of the entry's variant.
  size_t call_of(const GuiltyFusions& guilty, const Compiled& compiled, size_t entry) const {
    const auto& calls = judge_.runs().calls();
    const auto is_of = [&](size_t call) {
      return variant_for(compiled.module.entries, calls[call].entry, calls[call].symbol_values) ==
             &compiled.module.entries[entry];
    };
    if (guilty.difference && is_of(guilty.difference->call)) return guilty.difference->call;
    for (size_t call = 0; call < calls.size(); ++call)
      if (is_of(call)) return call;
    return calls.size();
  }

  Status reproduce(GuiltyFusions& guilty, const Compiled& compiled, size_t entry,
                   const std::vector<ValueId>& members, int64_t runs) {
    const size_t call = call_of(guilty, compiled, entry);
    if (call == judge_.runs().calls().size()) return {};
    SINTER_LET(kernel, kernel_module(compiled.module, entry, members, judge_, call));
    uint64_t bytes = 0;
    for (const Weight& weight : judge_.unfused().program().weights)
      bytes += static_cast<uint64_t>(volume(weight.type.dims).constant()) *
               static_cast<uint64_t>(dtype_info(weight.type.dtype).bits) / 8;
    const std::string folder =
        report_.guilty.empty() ? options_.output
                               : fmt::format("{}-{}", options_.output, report_.guilty.size() + 1);
    SINTER_LET(made, write_reproducer(folder, kernel, guilty, options_, bytes, runs));
    guilty.reproducer = std::move(made);
    return {};
  }

  const OpenedModel& model_;
  const BisectOptions& options_;
  PlanJudge& judge_;
  Answers answers_;
  Fusions fusions_;
  BisectReport report_;
};

std::string search_of(const PlanJudge& judge, const BisectOptions& options) {
  std::string text = print_module(judge.fused().module) + write_plan(*judge.fused().program) +
                     options.reference + options.check.text + options.backend->name();
  text += fmt::format(" {} {} {} {}", options.max_error.value_or(-1),
                      options.slower_than.value_or(-1), options.runs.seed, options.runs.steps);
  for (const PlanRuns::Call& call : judge.runs().calls())
    for (const HostTensor& input : call.inputs)
      text.append(reinterpret_cast<const char*>(input.bytes.data()), input.bytes.size());
  return text;
}

}  // namespace

Result<BisectReport> bisect(const OpenedModel& model, const BisectOptions& options) {
  if (!options.output.empty()) SINTER_TRY(check_reproducer_folder(options.output));
  SINTER_LET(judge, PlanJudge::create(model, options));
  SINTER_LET(answers, Answers::open(options.state, search_of(*judge, options)));
  return Bisection(model, options, *judge, std::move(answers)).run();
}

}  // namespace sinter
