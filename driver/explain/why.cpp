#include "driver/explain/why.h"

#include <llvm/ADT/STLExtras.h>

#include <nlohmann/json.hpp>

#include "driver/compile/value_names.h"
#include "driver/explain/between.h"
#include "driver/explain/change.h"
#include "driver/explain/layers.h"
#include "driver/explain/merge_tree.h"
#include "driver/shell_word.h"

namespace sinter {

struct WhyAnswers::State {
  explicit State(const Compiled& compiled)
      : compiled(compiled), changes(compiled), merges(compiled.fusions.size()) {}

  const Compiled& compiled;
  const Changes changes;
  struct EntryMerges {
    std::vector<GroupMerge> list;
    MergeTree tree;
  };
  mutable std::vector<std::optional<EntryMerges>> merges;  // by entry

  const EntryMerges& merges_of(size_t entry) const {
    std::optional<EntryMerges>& own = merges[entry];
    if (!own) {
      own.emplace();
      own->list = FusionCosts(compiled.fusions[entry], compiled.sizes_of(entry)).merges();
      own->tree = MergeTree(own->list);
    }
    return *own;
  }
};

namespace {

/// Adds the merge that brought the two values together to `answer`.
void add_merge(const std::vector<GroupMerge>& merges, const MergeTree& tree, const Graph& graph,
               ValueId a, ValueId b, Why& answer) {
  answer.fusions = merges.size();
  const auto joining = tree.joining(a, b);
  if (!joining) return;
  const GroupMerge& merge = merges[*joining];
  LedgerDecision& d = answer.decision;
  d.merge = *joining + 1;
  d.saved_bytes = merge.saved_bytes;
  for (const auto* members : {&merge.first, &merge.second})
    for (ValueId member : *members)
      if (member != a && member != b) d.with.push_back(graph[member].name);
}

WhyPlace place_of(const Compiled& compiled, size_t entry, ValueId id) {
  const Graph& graph = compiled.module.entries[entry].graph;
  WhyPlace place{graph[id].name, "", {}};
  const uint32_t group = compiled.fusions[entry].grouping.group_of[root_of(graph, id).index];
  if (group == UINT32_MAX) return place;
  const EntryPlan& plan = compiled.program->entries[entry];
  place.kernel = step_facts(*compiled.program, plan.steps[group]).name();
  place.step = group;
  return place;
}

/// The change that would let two ops share a kernel.
std::string change(const Changes& changes, size_t entry, ValueId a, ValueId b,
                   const Verdict& refusal) {
  return changes.text(entry, std::min(a, b), std::max(a, b), refusal);
}

/// The first two neighbours on a path that do not share a kernel.
std::optional<LedgerDecision> first_refusal(const Compiled& compiled, const Changes& changes,
                                            size_t entry, llvm::ArrayRef<ValueId> path) {
  for (size_t i = 0; i + 1 < path.size(); ++i) {
    const ValueId a = path[i], b = path[i + 1];
    const Verdict verdict = compiled.fusions[entry].why(a, b);
    if (verdict.accepted()) continue;
    LedgerDecision refused = decision(compiled.module.entries[entry].graph, a, b, verdict);
    refused.change = change(changes, entry, a, b, verdict);
    return refused;
  }
  return std::nullopt;
}

/// Adds to a refusal what stands between the two values and where it is computed.
void add_path(const Compiled& compiled, const Changes& changes, size_t entry, ValueId a, ValueId b,
              const Verdict& refusal, bool finds_path, Why& answer) {
  const Graph& graph = compiled.module.entries[entry].graph;
  const std::vector<ValueId> path =
      refusal.path.empty() && finds_path ? path_between(graph, a, b) : refusal.path;
  if (path.size() <= 2) return;
  answer.decision.path.clear();
  for (ValueId id : path) {
    answer.decision.path.push_back(graph[id].name);
    answer.path.push_back(place_of(compiled, entry, id));
  }
  answer.first_refusal = first_refusal(compiled, changes, entry, path);
}

/// Notes which value a module stands for, and which one a view reads.
void add_notes(const Graph& graph, ValueId id, llvm::StringRef name, Why& answer) {
  if (name.ltrim('%') != graph[id].name && name != graph[id].name)
    answer.notes.push_back(fmt::format("{} is a module: it stands for its last value, {}",
                                       name.str(), graph[id].name));
  if (const ValueId root = root_of(graph, id); root != id)
    answer.notes.push_back(
        fmt::format("{} is a way of reading {}", graph[id].name, graph[root].name));
}

}  // namespace

WhyAnswers::WhyAnswers(const Compiled& compiled) : state_(std::make_unique<State>(compiled)) {}
WhyAnswers::~WhyAnswers() = default;

const std::vector<GroupMerge>& WhyAnswers::merges(size_t entry) const {
  return state_->merges_of(entry).list;
}

Why WhyAnswers::of(size_t entry, ValueId a, ValueId b, bool finds_path) const {
  const Compiled& compiled = state_->compiled;
  const Graph& graph = compiled.module.entries[entry].graph;
  Why answer;
  answer.entry = compiled.title_of(entry);
  const Verdict verdict = compiled.fusions[entry].why(a, b);
  const ValueId root_a = root_of(graph, a), root_b = root_of(graph, b);
  answer.decision = decision(graph, a, b, verdict);
  if (verdict.accepted()) {
    const State::EntryMerges& own = state_->merges_of(entry);
    add_merge(own.list, own.tree, graph, root_a, root_b, answer);
  } else {
    answer.decision.change = change(state_->changes, entry, root_a, root_b, verdict);
    add_path(compiled, state_->changes, entry, root_a, root_b, verdict, finds_path, answer);
  }
  answer.a = place_of(compiled, entry, a);
  answer.b = place_of(compiled, entry, b);
  return answer;
}

namespace {

Result<Why> named_why(const WhyAnswers& answers, const Compiled& compiled, size_t entry,
                      const std::string& a, const std::string& b) {
  const Entry& module_entry = compiled.module.entries[entry];
  const Graph& graph = module_entry.graph;
  const ValueId first = named_value(graph, a), second = named_value(graph, b);
  for (const auto& [id, name] : {std::pair(first, &a), {second, &b}})
    if (!id.valid())
      return fail(fmt::format("no value or module is called \"{}\"", printable(*name)),
                  printable(module_entry.name), near_value_names(compiled.module, *name),
                  ExitCode::usage);
  Why answer = answers.of(entry, first, second);
  add_notes(graph, first, a, answer);
  add_notes(graph, second, b, answer);
  return answer;
}

}  // namespace

Result<Why> why(const Compiled& compiled, size_t entry, const std::string& a,
                const std::string& b) {
  return named_why(WhyAnswers(compiled), compiled, entry, a, b);
}

Result<std::vector<Why>> why(const Compiled& compiled, const std::string& a, const std::string& b,
                             std::string_view only) {
  const std::vector<Entry>& entries = compiled.module.entries;
  const auto has = [&](const Entry& entry, const std::string& name) {
    return (only.empty() || entry.name == only) && named_value(entry.graph, name).valid();
  };
  for (const std::string& name : {a, b})
    if (llvm::none_of(entries, [&](const Entry& entry) { return has(entry, name); }))
      return fail(fmt::format("no value or module is called \"{}\"", printable(name)),
                  printable(only), near_value_names(compiled.module, name), ExitCode::usage);
  const WhyAnswers all(compiled);
  std::vector<Why> answers;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!has(entries[i], a) || !has(entries[i], b)) continue;
    SINTER_LET(answer, named_why(all, compiled, i, a, b));
    answers.push_back(std::move(answer));
  }
  if (answers.empty())
    return fail(fmt::format("no entry has both \"{}\" and \"{}\"", printable(a), printable(b)), {},
                "ask about two values of one entry", ExitCode::usage);
  return answers;
}

namespace {

using Json = nlohmann::ordered_json;

Json kernels_of(llvm::ArrayRef<WhyPlace> places) {
  Json list = Json::array();
  for (const WhyPlace& place : places)
    list.push_back(place.step ? Json(place.kernel) : Json(nullptr));
  return list;
}

Json steps_of(llvm::ArrayRef<WhyPlace> places) {
  Json list = Json::array();
  for (const WhyPlace& place : places) list.push_back(place.step ? Json(*place.step) : Json());
  return list;
}

}  // namespace

std::string why_json(const std::vector<Why>& answers) {
  Json list = Json::array();
  for (const Why& why : answers) {
    const LedgerDecision& d = why.decision;
    const WhyPlace ends[] = {why.a, why.b};
    Json json = {{"entry", why.entry},      {"a", d.a},           {"b", d.b},
                 {"same_kernel", d.fused},  {"reason", d.reason}, {"text", d.text},
                 {"detail", d.detail},      {"path", d.path},     {"kernels", kernels_of(ends)},
                 {"steps", steps_of(ends)}, {"notes", why.notes}};
    if (d.merge > 0) {
      json["fusion"] = d.merge;
      json["with"] = d.with;
      json["saved_bytes"] = static_cast<int64_t>(d.saved_bytes);
    }
    if (!d.fused) json["change"] = d.change;
    if (!why.path.empty()) {
      json["path_kernels"] = kernels_of(why.path);
      json["path_steps"] = steps_of(why.path);
    }
    if (const auto& first = why.first_refusal)
      json["first_refusal"] = {{"a", first->a},           {"b", first->b},
                               {"reason", first->reason}, {"text", first->text},
                               {"detail", first->detail}, {"change", first->change}};
    list.push_back(std::move(json));
  }
  return Json{{"answers", list}}.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

namespace {

constexpr size_t kPlacesAtEachEnd = 6;  // of a long path, that are listed

std::string place_text(const WhyPlace& place) {
  return place.step ? fmt::format("launch {}, {}", *place.step, place.kernel) : "no kernel";
}

/// Where the two values are computed, and what stands between them, in the path's order.
std::vector<std::string> place_lines(const Why& why) {
  std::vector<WhyPlace> places = why.path;
  const auto is_shown = [&](const WhyPlace& end) {
    return llvm::any_of(why.path, [&](const WhyPlace& one) { return one.value == end.value; });
  };
  if (!is_shown(why.a)) places.insert(places.begin(), why.a);
  if (!is_shown(why.b)) places.push_back(why.b);
  std::vector<std::string> lines;
  for (size_t i = 0; i < places.size(); ++i) {
    if (places.size() > 2 * kPlacesAtEachEnd + 1 && i == kPlacesAtEachEnd) {
      i = places.size() - kPlacesAtEachEnd;
      lines.push_back(fmt::format("... {} values between", i - kPlacesAtEachEnd));
    }
    lines.push_back(fmt::format("{}: {}", places[i].value, place_text(places[i])));
  }
  return lines;
}

std::string first_refusal_text(const LedgerDecision& first) {
  std::string text = fmt::format("first on the path, {} and {} do not share a kernel: {} ({})",
                                 first.a, first.b, first.text, first.reason);
  return first.detail.empty() ? text : text + ": " + first.detail;
}

std::string answer_text(const Why& why) {
  const LedgerDecision& d = why.decision;
  std::string text = printable(why.entry) + ": ";
  const auto add = [&](const std::string& line) {
    if (!line.empty()) text += "  " + printable(line, kLongestLine) + '\n';
  };
  if (d.fused) {
    const bool horizontal = d.reason == reason_id(Reason::fused_horizontal);
    text += fmt::format("{} and {} share a kernel{}: {}\n", printable(d.a), printable(d.b),
                        horizontal ? ", each in blocks of its own" : "", place_text(why.a));
    add(d.detail);
    if (d.merge > 0)
      add(fmt::format("fusion {} of {} brought them together{}{}; it saves {}", d.merge,
                      why.fusions, d.with.empty() ? "" : ", with ", fmt::join(d.with, " "),
                      saved_text(d)));
  } else {
    text += fmt::format("{} and {} do not share a kernel: {} ({})\n", printable(d.a),
                        printable(d.b), d.text, d.reason);
    add(d.detail);
    add(path_text(d.path));
    if (!d.change.empty()) text += "  " + line_with_words(d.change, kLongestLine) + '\n';
    for (const std::string& line : place_lines(why)) add(line);
    if (why.first_refusal) add(first_refusal_text(*why.first_refusal));
  }
  for (const std::string& note : why.notes) add(note);
  return text;
}

}  // namespace

std::string why_text(const std::vector<Why>& answers) {
  std::string text;
  for (const Why& why : answers) text += answer_text(why);
  return text;
}

}  // namespace sinter
