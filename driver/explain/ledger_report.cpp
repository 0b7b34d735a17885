#include "driver/explain/ledger_report.h"

#include <nlohmann/json.hpp>

#include "passes/fusion_costs.h"
#include "plan/step_traffic.h"

namespace sinter {

LedgerDecision decision(const Graph& graph, ValueId a, ValueId b, const Verdict& verdict) {
  LedgerDecision d;
  d.a = graph[a].name;
  d.b = graph[b].name;
  d.fused = verdict.accepted();
  d.reason = reason_id(verdict.reason);
  d.text = reason_text(verdict.reason);
  d.detail = verdict.detail;
  for (ValueId id : verdict.path) d.path.push_back(graph[id].name);
  return d;
}

std::vector<EntryLedger> ledger(const Compiled& compiled) {
  const Program& program = *compiled.program;
  const StepTraffic traffic(program, compiled.sizes);
  std::vector<EntryLedger> result;
  for (size_t i = 0; i < program.entries.size(); ++i) {
    const EntryPlan& plan = program.entries[i];
    EntryLedger entry{plan.name, {}, {}};
    for (const Step& step : plan.steps) {
      const StepFacts facts = step_facts(program, step);
      entry.steps.push_back({std::string(facts.name()),
                             std::string(facts.kind),
                             step.values,
                             traffic.of(plan, step).total(),
                             {},
                             false});
      if (!facts.kernel) continue;
      const Overlap& overlap = facts.kernel->overlap;
      for (const auto* inputs : {&overlap.early_inputs, &overlap.early_caches})
        for (uint32_t input : *inputs)
          entry.steps.back().early.push_back(plan.buffers[facts.reads[input]].value);
      entry.steps.back().triggers_after_wait = overlap.triggers_after_wait;
    }
    for (const LedgerEntry& e : compiled.fusions[i].ledger)
      entry.decisions.push_back(decision(compiled.module.entries[i].graph, e.a, e.b, e.verdict));
    if (!entry.decisions.empty())
      for (const GroupMerge& merge : FusionCosts(compiled.fusions[i], compiled.sizes).merges())
        entry.decisions[merge.decision].saved_bytes = merge.saved_bytes;
    result.push_back(std::move(entry));
  }
  return result;
}

std::string ledger_json(const Compiled& compiled) {
  using Json = nlohmann::ordered_json;
  // One line per kernel and decision: files that a person can compare.
  const auto line = [](const Json& value) {
    return "      " + value.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  std::vector<std::string> entries;
  for (const EntryLedger& entry : ledger(compiled)) {
    std::vector<std::string> kernels, decisions;
    for (size_t i = 0; i < entry.steps.size(); ++i) {
      const LedgerStep& step = entry.steps[i];
      kernels.push_back(line({{"index", i},
                              {"name", step.name},
                              {"kind", step.kind},
                              {"values", step.values},
                              {"bytes", step.bytes},
                              {"early", step.early},
                              {"triggers_after_wait", step.triggers_after_wait}}));
    }
    for (const LedgerDecision& d : entry.decisions)
      decisions.push_back(line({{"a", d.a},
                                {"b", d.b},
                                {"fused", d.fused},
                                {"reason", d.reason},
                                {"detail", d.detail},
                                {"path", d.path},
                                {"saved_bytes", d.saved_bytes}}));
    const auto list = [](const std::vector<std::string>& items) {
      return items.empty() ? "[]" : fmt::format("[\n{}\n    ]", fmt::join(items, ",\n"));
    };
    entries.push_back(
        fmt::format("  {{\n    \"name\": {},\n    \"kernels\": {},\n    \"decisions\": {}\n  }}",
                    Json(entry.name).dump(-1, ' ', false, Json::error_handler_t::replace),
                    list(kernels), list(decisions)));
  }
  return fmt::format("{{\"entries\": [\n{}\n]}}\n", fmt::join(entries, ",\n"));
}

int64_t layer_of(std::string_view value) {
  if (!value.starts_with('l')) return -1;
  int64_t layer = 0;
  size_t i = 1;
  for (; i < value.size() && value[i] >= '0' && value[i] <= '9' && i < 10; ++i)
    layer = 10 * layer + (value[i] - '0');
  return i > 1 && i < value.size() && value[i] == '.' ? layer : -1;
}

std::string with_layer(const std::string& value, const std::string& layer) {
  return layer_of(value) < 0 ? value : layer + value.substr(value.find('.'));
}

}  // namespace sinter
