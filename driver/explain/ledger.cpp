#include "driver/explain/ledger.h"

#include <llvm/ADT/STLExtras.h>

#include <numeric>

#include "driver/explain/change.h"
#include "driver/explain/worth.h"
#include "driver/text_table.h"
#include "passes/fusion/fusion_costs.h"
#include "plan/step_traffic.h"

namespace sinter {
namespace {

std::vector<LedgerStep> steps_of(const Program& program, const EntryPlan& plan,
                                 const StepTraffic& traffic) {
  std::vector<LedgerStep> steps;
  for (const Step& step : plan.steps) {
    const StepFacts facts = step_facts(program, step);
    LedgerStep one;
    one.name = facts.name();
    one.kind = facts.kind;
    one.step_class = step_class(program, step);
    one.values = step.values;
    one.bytes = traffic.of(plan, step);
    if (facts.kernel) {
      const Overlap& overlap = facts.kernel->overlap;
      for (const auto* inputs : {&overlap.early_inputs, &overlap.early_caches})
        for (uint32_t input : *inputs) one.early.push_back(plan.buffers[facts.reads[input]].value);
      one.triggers_after_wait = overlap.triggers_after_wait;
    }
    steps.push_back(std::move(one));
  }
  return steps;
}

std::vector<LedgerValue> values_of(const Graph& graph, const Grouping& grouping,
                                   llvm::ArrayRef<Symbol> symbols) {
  std::vector<LedgerValue> values;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Op& op = graph.ops()[i];
    LedgerValue value{op.name, std::string(algorithm_name(op)), to_string(op.type, symbols), {}};
    if (grouping.group_of[i] != UINT32_MAX) value.step = grouping.group_of[i];
    values.push_back(std::move(value));
  }
  return values;
}

/// Fills in what needs the finished fusion. Steps are its groups, in their order.
void add_costs(const Graph& graph, const Fusion& fusion, const FusionCosts& costs,
               EntryLedger& entry) {
  const std::vector<Group>& groups = fusion.grouping.groups;
  for (size_t i = 0; i < groups.size(); ++i) {
    entry.steps[i].predicted_s = costs.seconds(groups[i]);
    for (const auto& [root, bytes] : costs.reads(groups[i])) {
      const uint32_t from = fusion.grouping.group_of[root.index];
      entry.edges.push_back({from == UINT32_MAX ? std::nullopt : std::optional<size_t>(from), i,
                             graph[root].name, bytes});
    }
  }
  const std::vector<GroupMerge> merges = costs.merges();
  for (size_t i = 0; i < merges.size(); ++i) {
    LedgerDecision& d = entry.decisions[merges[i].decision];
    d.merge = i + 1;
    d.saved_bytes = merges[i].saved_bytes;
    for (const auto* members : {&merges[i].first, &merges[i].second})
      for (ValueId member : *members)
        if (const std::string& name = graph[member].name; name != d.a && name != d.b)
          d.with.push_back(name);
  }
}

/// A call that was measured as a whole is divided among its steps as predicted.
void add_measured(const MeasuredTimes& measured, EntryLedger& entry) {
  if (measured.empty()) return;
  for (LedgerStep& step : entry.steps)
    if (const MeasuredStep* own = measured.step(entry.name, step.values)) {
      step.measured_s = own->seconds;
      step.launch = own->launch;
    }
  const double predicted = entry.predicted_s();
  if (const auto call = measured.call(entry.name); call && !entry.measured() && predicted > 0)
    for (LedgerStep& step : entry.steps) step.measured_s = *call * step.predicted_s / predicted;
}

}  // namespace

std::string saved_text(const LedgerDecision& fusion) {
  return fusion.saved_bytes > 0 ? with_unit(fusion.saved_bytes, "B") : "a launch";
}

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

std::vector<EntryLedger> ledger(const Compiled& compiled, std::string_view only,
                                const ReportInputs& inputs) {
  const Program& program = *compiled.program;
  const Changes changes(compiled);
  std::vector<EntryLedger> result;
  for (size_t i = 0; i < program.entries.size(); ++i) {
    const EntryPlan& plan = program.entries[i];
    if (!only.empty() && plan.name != only) continue;
    const Graph& graph = compiled.module.entries[i].graph;
    const Fusion& fusion = compiled.fusions[i];
    const std::vector<int64_t> sizes = compiled.sizes_of(i);
    EntryLedger entry;
    entry.entry = i;
    entry.name = plan.name;
    entry.title = compiled.title_of(i);
    entry.sizes = show_sizes(program, plan, sizes);
    entry.steps = steps_of(program, plan, StepTraffic(program, sizes));
    entry.choices = choices_of(graph);
    if (!inputs.relaxed.empty()) entry.relaxed = inputs.relaxed[i];
    if (fusion.state) {
      entry.values = values_of(graph, fusion.grouping, program.symbols);
      for (const LedgerEntry& e : fusion.ledger) {
        LedgerDecision& d = entry.decisions.emplace_back(decision(graph, e.a, e.b, e.verdict));
        if (!d.fused && inputs.advice) d.change = changes.text(i, e.a, e.b, e.verdict);
      }
      const FusionCosts costs(fusion, sizes, inputs.board ? &*inputs.board : nullptr);
      add_costs(graph, fusion, costs, entry);
      add_measured(inputs.measured, entry);
      if (inputs.advice) add_worths(compiled, costs, entry);
    }
    result.push_back(std::move(entry));
  }
  return result;
}

size_t EntryLedger::fusions() const {
  return llvm::count_if(decisions, [](const LedgerDecision& d) { return d.fused; });
}
double EntryLedger::saved_bytes() const {
  double bytes = 0;
  for (const LedgerDecision& d : decisions) bytes += d.saved_bytes;
  return bytes;
}
double EntryLedger::predicted_s() const {
  double seconds = 0;
  for (const LedgerStep& step : steps) seconds += step.predicted_s;
  return seconds;
}

bool EntryLedger::measured() const {
  return llvm::any_of(steps, [](const LedgerStep& step) { return step.measured_s.has_value(); });
}
double EntryLedger::seconds() const {
  double seconds = 0;
  for (const LedgerStep& step : steps) seconds += step.seconds();
  return seconds;
}

std::vector<ClassCosts> EntryLedger::classes() const {
  std::vector<ClassCosts> classes(kStepClasses);
  for (size_t i = 0; i < kStepClasses; ++i) classes[i].step_class = static_cast<StepClass>(i);
  for (const LedgerStep& step : steps) {
    ClassCosts& own = classes[static_cast<size_t>(step.step_class)];
    ++own.launches;
    own.bytes += step.bytes;
    own.predicted_s += step.predicted_s;
    own.seconds += step.seconds();
  }
  llvm::erase_if(classes, [](const ClassCosts& one) { return one.launches == 0; });
  llvm::stable_sort(classes,
                    [](const ClassCosts& a, const ClassCosts& b) { return a.seconds > b.seconds; });
  return classes;
}

}  // namespace sinter
