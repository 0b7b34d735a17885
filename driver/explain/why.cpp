#include "driver/explain/why.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringRef.h>

#include <nlohmann/json.hpp>

namespace sinter {
namespace {

/// Up to three names like `name`: those that hold it, then those that few edits lead to.
std::string near_names(const Graph& graph, const std::string& name) {
  std::vector<std::pair<unsigned, std::string_view>> found;
  const auto limit = static_cast<unsigned>(name.size() / 3 + 1);
  for (const Op& op : graph.ops()) {
    unsigned distance = llvm::StringRef(op.name).edit_distance(name, true, limit);
    if (distance > limit && !name.empty() && op.name.find(name) != std::string::npos)
      distance = limit;
    if (distance <= limit) found.emplace_back(distance, op.name);
  }
  llvm::stable_sort(found, [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min<size_t>(found.size(), 3); ++i)
    names.push_back(printable(found[i].second));
  if (names.empty()) return "`sinter explain` lists the values";
  return fmt::format("near it: {}", fmt::join(names, ", "));
}

Result<ValueId> find_value(const Entry& entry, const std::string& name) {
  const ValueId id = entry.graph.find(name);
  if (!id.valid())
    return fail(fmt::format("no value is called \"{}\"", printable(name)), printable(entry.name),
                near_names(entry.graph, name), ExitCode::usage);
  return id;
}

}  // namespace

Result<Why> why(const Compiled& compiled, size_t entry, const std::string& a,
                const std::string& b) {
  const Graph& graph = compiled.module.entries[entry].graph;
  const Fusion& fusion = compiled.fusions[entry];
  const EntryPlan& plan = compiled.program->entries[entry];
  Why answer;
  SINTER_LET(first, find_value(compiled.module.entries[entry], a));
  SINTER_LET(second, find_value(compiled.module.entries[entry], b));
  answer.decision = decision(graph, first, second, fusion.why(first, second));
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

std::string why_json(const Why& why, const std::string& entry) {
  using Json = nlohmann::ordered_json;
  const LedgerDecision& d = why.decision;
  Json kernels = Json::array(), steps = Json::array();
  for (const auto& [kernel, step] :
       {std::pair(&why.kernel_a, why.step_a), {&why.kernel_b, why.step_b}}) {
    kernels.push_back(kernel->empty() ? Json(nullptr) : Json(*kernel));
    steps.push_back(kernel->empty() ? Json(nullptr) : Json(step));
  }
  const Json json = {{"entry", entry},         {"a", d.a},           {"b", d.b},
                     {"same_kernel", d.fused}, {"reason", d.reason}, {"text", d.text},
                     {"detail", d.detail},     {"path", d.path},     {"kernels", kernels},
                     {"steps", steps},         {"notes", why.notes}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string why_text(const Why& why) {
  const LedgerDecision& d = why.decision;
  const auto where = [](const std::string& kernel, uint32_t step) {
    return kernel.empty() ? std::string("no kernel") : fmt::format("launch {}, {}", step, kernel);
  };
  std::string text;
  if (d.fused) {
    const bool horizontal = d.reason == reason_id(Reason::fused_horizontal);
    text = fmt::format("{} and {} share a kernel{}: {}\n", d.a, d.b,
                       horizontal ? ", each in blocks of its own" : "",
                       where(why.kernel_a, why.step_a));
    if (!d.detail.empty()) text += fmt::format("  {}\n", printable(d.detail, 1000));
  } else {
    text = fmt::format("{} and {} do not share a kernel: {} ({})\n", d.a, d.b, d.text, d.reason);
    if (!d.detail.empty()) text += fmt::format("  {}\n", printable(d.detail, 1000));
    if (!d.path.empty()) text += fmt::format("  {}\n", fmt::join(d.path, " → "));
    text += fmt::format("  {}: {}\n  {}: {}\n", d.a, where(why.kernel_a, why.step_a), d.b,
                        where(why.kernel_b, why.step_b));
  }
  for (const std::string& note : why.notes) text += fmt::format("  {}\n", note);
  return text;
}

}  // namespace sinter
