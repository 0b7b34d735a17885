// The fusion decisions of a plan and their reasons.
#include "api/plan.h"
#include "ir/variants.h"

namespace sinter {
namespace {

Result<size_t> find_entry(const sinter_plan& plan, const char* name) {
  const Program& program = *plan.program;
  for (size_t i = 0; i < program.entries.size(); ++i) {
    const EntryPlan& entry = program.entries[i];
    if (entry.name == name || entry_title(entry.name, entry.range, program.symbols) == name)
      return i;
  }
  return fail(fmt::format("no entry is called \"{}\"", printable(name)), {}, {}, ExitCode::usage);
}

int64_t launch_of(const EntryLedger& entry, const std::string& name) {
  const auto value = llvm::find_if(
      entry.values, [&](const LedgerValue& candidate) { return candidate.name == name; });
  return value == entry.values.end() || !value->step ? -1 : static_cast<int64_t>(*value->step);
}

int64_t launch_of(const WhyPlace& place) {
  return place.step ? static_cast<int64_t>(*place.step) : -1;
}

std::string savings_of(const LedgerDecision& decision) {
  return decision.merge > 0 ? saved_text(decision) : std::string();
}

std::unique_ptr<sinter_decision> decision_of(Why answer) {
  auto decision = std::make_unique<sinter_decision>();
  decision->savings = savings_of(answer.decision);
  decision->decision = std::move(answer.decision);
  decision->launches[0] = launch_of(answer.a);
  decision->launches[1] = launch_of(answer.b);
  for (const WhyPlace& place : answer.path) decision->path_launches.push_back(launch_of(place));
  if (answer.first_refusal) {
    decision->first_refusal = std::make_unique<sinter_decision>();
    decision->first_refusal->of_plan = true;  // freed with its owner
    decision->first_refusal->decision = std::move(*answer.first_refusal);
    // They are neighbours on the path.
    const auto at = llvm::find_if(answer.path, [&](const WhyPlace& place) {
      return place.value == decision->first_refusal->decision.a;
    });
    decision->first_refusal->launches[0] = launch_of(*at);
    decision->first_refusal->launches[1] = launch_of(*std::next(at));
  }
  return decision;
}

}  // namespace

std::unique_ptr<sinter_plan::Decisions> decisions_of(Compiled compiled) {
  auto decisions = std::make_unique<sinter_plan::Decisions>();
  decisions->compiled = std::move(compiled);
  for (EntryLedger& entry : ledger(decisions->compiled)) {
    auto& list = decisions->of_entry.emplace_back();
    for (LedgerDecision& decision : entry.decisions) {
      const int64_t a = launch_of(entry, decision.a), b = launch_of(entry, decision.b);
      std::string savings = savings_of(decision);
      list.push_back({std::move(decision), true, {a, b}, std::move(savings)});
    }
  }
  return decisions;
}

/// The plan's decisions; of a stored plan its module is compiled now, which must give the same
/// plan.
Result<const sinter_plan::Decisions*> asked_decisions(const sinter_plan& plan) {
  const std::lock_guard lock(plan.asked);
  if (!plan.decisions) {
    SINTER_LET(built, build_opened(plan.source.model, request_of(plan)));
    plan.decisions = decisions_of(std::move(built.compiled));
  }
  return plan.decisions.get();
}

}  // namespace sinter

using namespace sinter;

sinter_error* sinter_plan_decision_count(const sinter_plan* plan, size_t entry, size_t* count) {
  return border([&]() -> Status {
    SINTER_TRY(require(plan, "plan"));
    SINTER_TRY(require(count, "count"));
    SINTER_TRY(check_entry(*plan, entry));
    SINTER_LET(decisions, asked_decisions(*plan));
    *count = decisions->of_entry[entry].size();
    return {};
  });
}

const sinter_decision* sinter_plan_decision(const sinter_plan* plan, size_t entry, size_t index) {
  if (!plan) return nullptr;
  const std::lock_guard lock(plan->asked);
  if (!plan->decisions || entry >= plan->decisions->of_entry.size()) return nullptr;
  const auto& list = plan->decisions->of_entry[entry];
  return index < list.size() ? &list[index] : nullptr;
}

sinter_error* sinter_plan_why(const sinter_plan* plan, const char* entry, const char* a,
                              const char* b, sinter_decision** decision) {
  return make_handle(decision, [&]() -> Result<std::unique_ptr<sinter_decision>> {
    SINTER_TRY(require(plan, "plan"));
    SINTER_TRY(require(entry, "entry"));
    SINTER_TRY(require(a, "a"));
    SINTER_TRY(require(b, "b"));
    SINTER_LET(index, find_entry(*plan, entry));
    SINTER_LET(decisions, asked_decisions(*plan));
    const std::lock_guard lock(plan->asked);  // the judge's caches
    SINTER_LET(answer, why(decisions->compiled, index, a, b));
    return decision_of(std::move(answer));
  });
}

void sinter_decision_free(sinter_decision* decision) {
  if (decision && !decision->of_plan) free_handle(decision);
}
const char* sinter_decision_a(const sinter_decision* decision) {
  return decision ? decision->decision.a.c_str() : nullptr;
}
const char* sinter_decision_b(const sinter_decision* decision) {
  return decision ? decision->decision.b.c_str() : nullptr;
}
int sinter_decision_fused(const sinter_decision* decision) {
  return decision && decision->decision.fused ? 1 : 0;
}
const char* sinter_decision_reason(const sinter_decision* decision) {
  return decision ? decision->decision.reason.c_str() : nullptr;
}
const char* sinter_decision_text(const sinter_decision* decision) {
  return decision ? decision->decision.text.c_str() : nullptr;
}
const char* sinter_decision_detail(const sinter_decision* decision) {
  return decision ? decision->decision.detail.c_str() : nullptr;
}
size_t sinter_decision_path_count(const sinter_decision* decision) {
  return decision ? decision->decision.path.size() : 0;
}
const char* sinter_decision_path(const sinter_decision* decision, size_t index) {
  if (!decision) return nullptr;
  const auto& path = decision->decision.path;
  return index < path.size() ? path[index].c_str() : nullptr;
}
int64_t sinter_decision_path_launch(const sinter_decision* decision, size_t index) {
  return decision && index < decision->path_launches.size() ? decision->path_launches[index] : -1;
}
const sinter_decision* sinter_decision_first_refusal(const sinter_decision* decision) {
  return decision ? decision->first_refusal.get() : nullptr;
}
int64_t sinter_decision_saved_bytes(const sinter_decision* decision) {
  return decision ? static_cast<int64_t>(decision->decision.saved_bytes) : 0;
}
const char* sinter_decision_savings(const sinter_decision* decision) {
  return decision ? decision->savings.c_str() : nullptr;
}
const char* sinter_decision_change(const sinter_decision* decision) {
  return decision ? decision->decision.change.c_str() : nullptr;
}
int64_t sinter_decision_launch(const sinter_decision* decision, int which) {
  return decision && (which == 0 || which == 1) ? decision->launches[which] : -1;
}
