#include "driver/explain/why.h"

#include <llvm/ADT/STLExtras.h>

#include <nlohmann/json.hpp>

#include "driver/compile/value_names.h"
#include "driver/explain/change.h"
#include "driver/explain/layers.h"
#include "passes/fusion_costs.h"

namespace sinter {
namespace {

/// Adds the merge that brought the two values together to `answer`.
void add_merge(const Compiled& compiled, size_t entry, ValueId a, ValueId b, Why& answer) {
  const Graph& graph = compiled.module.entries[entry].graph;
  const std::vector<GroupMerge> merges =
      FusionCosts(compiled.fusions[entry], compiled.sizes).merges();
  answer.fusions = merges.size();
  for (size_t i = 0; i < merges.size(); ++i) {
    const GroupMerge& merge = merges[i];
    const auto joins = [](const std::vector<ValueId>& x, ValueId one, const std::vector<ValueId>& y,
                          ValueId other) {
      return llvm::is_contained(x, one) && llvm::is_contained(y, other);
    };
    if (!joins(merge.first, a, merge.second, b) && !joins(merge.first, b, merge.second, a))
      continue;
    LedgerDecision& d = answer.decision;
    d.merge = i + 1;
    d.saved_bytes = merge.saved_bytes;
    for (const auto* members : {&merge.first, &merge.second})
      for (ValueId member : *members)
        if (member != a && member != b) d.with.push_back(graph[member].name);
    return;
  }
}

}  // namespace

Result<Why> why(const Compiled& compiled, size_t entry, const std::string& a,
                const std::string& b) {
  const Entry& module_entry = compiled.module.entries[entry];
  const Graph& graph = module_entry.graph;
  const Fusion& fusion = compiled.fusions[entry];
  const EntryPlan& plan = compiled.program->entries[entry];
  const Module& module = compiled.module;
  const ValueId first = graph.find(value_name(module, a)),
                second = graph.find(value_name(module, b));
  for (const auto& [id, name] : {std::pair(first, &a), {second, &b}})
    if (!id.valid())
      return fail(fmt::format("no value is called \"{}\"", printable(*name)),
                  printable(module_entry.name), near_value_names(module, value_name(module, *name)),
                  ExitCode::usage);
  Why answer;
  answer.entry = module_entry.name;
  const Verdict verdict = fusion.why(first, second);
  answer.decision = decision(graph, first, second, verdict);
  const ValueId root_a = root_of(graph, first), root_b = root_of(graph, second);
  if (verdict.accepted())
    add_merge(compiled, entry, root_a, root_b, answer);
  else
    answer.decision.change =
        Changes(compiled).text(entry, std::min(root_a, root_b), std::max(root_a, root_b), verdict);
  const auto place = [&](ValueId id, std::string& kernel, uint32_t& step) {
    const ValueId root = root_of(graph, id);
    if (root != id)
      answer.notes.push_back(
          fmt::format("{} is a way of reading {}", graph[id].name, graph[root].name));
    const uint32_t group = fusion.grouping.group_of[root.index];
    if (group == UINT32_MAX) return;
    step = group;
    kernel = step_facts(*compiled.program, plan.steps[group]).name();
  };
  place(first, answer.kernel_a, answer.step_a);
  place(second, answer.kernel_b, answer.step_b);
  return answer;
}

Result<std::vector<Why>> why(const Compiled& compiled, const std::string& a, const std::string& b,
                             std::string_view only) {
  const std::vector<Entry>& entries = compiled.module.entries;
  const auto has = [&](const Entry& entry, const std::string& name) {
    return (only.empty() || entry.name == only) &&
           entry.graph.find(value_name(compiled.module, name)).valid();
  };
  for (const std::string& name : {a, b})
    if (llvm::none_of(entries, [&](const Entry& entry) { return has(entry, name); }))
      return fail(fmt::format("no value is called \"{}\"", printable(name)), printable(only),
                  near_value_names(compiled.module, value_name(compiled.module, name)),
                  ExitCode::usage);
  std::vector<Why> answers;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!has(entries[i], a) || !has(entries[i], b)) continue;
    SINTER_LET(answer, why(compiled, i, a, b));
    answers.push_back(std::move(answer));
  }
  if (answers.empty())
    return fail(fmt::format("no entry has both \"{}\" and \"{}\"", printable(a), printable(b)), {},
                "ask about two values of one entry", ExitCode::usage);
  return answers;
}

std::string why_json(const std::vector<Why>& answers) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const Why& why : answers) {
    const LedgerDecision& d = why.decision;
    Json kernels = Json::array(), steps = Json::array();
    for (const auto& [kernel, step] :
         {std::pair(&why.kernel_a, why.step_a), {&why.kernel_b, why.step_b}}) {
      kernels.push_back(kernel->empty() ? Json(nullptr) : Json(*kernel));
      steps.push_back(kernel->empty() ? Json(nullptr) : Json(step));
    }
    Json json = {{"entry", why.entry},     {"a", d.a},           {"b", d.b},
                 {"same_kernel", d.fused}, {"reason", d.reason}, {"text", d.text},
                 {"detail", d.detail},     {"path", d.path},     {"kernels", kernels},
                 {"steps", steps},         {"notes", why.notes}};
    if (d.merge > 0) {
      json["fusion"] = d.merge;
      json["with"] = d.with;
      json["saved_bytes"] = static_cast<int64_t>(d.saved_bytes);
    }
    if (!d.fused) json["change"] = d.change;
    list.push_back(std::move(json));
  }
  return Json{{"answers", list}}.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

namespace {

std::string answer_text(const Why& why) {
  const LedgerDecision& d = why.decision;
  const auto where = [](const std::string& kernel, uint32_t step) {
    return kernel.empty() ? std::string("no kernel") : fmt::format("launch {}, {}", step, kernel);
  };
  std::string text = printable(why.entry) + ": ";
  const auto add = [&](const std::string& line) {
    if (!line.empty()) text += "  " + printable(line, kLongestLine) + '\n';
  };
  if (d.fused) {
    const bool horizontal = d.reason == reason_id(Reason::fused_horizontal);
    text += fmt::format("{} and {} share a kernel{}: {}\n", printable(d.a), printable(d.b),
                        horizontal ? ", each in blocks of its own" : "",
                        where(why.kernel_a, why.step_a));
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
    add(d.change);
    add(fmt::format("{}: {}", d.a, where(why.kernel_a, why.step_a)));
    add(fmt::format("{}: {}", d.b, where(why.kernel_b, why.step_b)));
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
