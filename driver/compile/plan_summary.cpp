#include "driver/compile/plan_summary.h"

#include <llvm/ADT/DenseMap.h>

#include <algorithm>
#include <set>

#include "driver/compile/predicted.h"
#include "driver/text_table.h"
#include "ir/variants.h"
#include "plan/step_traffic.h"

namespace sinter {
namespace {

std::string arrow(std::string before, std::string after) {
  return before == after ? after : fmt::format("{} → {}", before, after);
}

}  // namespace

PlanCosts plan_costs(const Program& program, const EntryPlan& entry,
                     llvm::ArrayRef<int64_t> sizes) {
  PlanCosts costs;
  const StepTraffic traffic(program, sizes);
  std::set<const Kernel*> kernels;
  for (const Step& step : entry.steps) {
    const StepFacts facts = step_facts(program, step);
    ++costs.launches;
    if (facts.kernel) kernels.insert(facts.kernel);
    costs.gemms += facts.kind == "gemm";
    costs.copies += facts.kind == "copy";
    costs.bytes += traffic.of(entry, step).total();
  }
  costs.kernels = kernels.size();
  if (const auto arena = arena_layout(entry, sizes))
    costs.arena_bytes = static_cast<double>(arena->bytes);
  return costs;
}

std::string summary_table(const Compiled& unfused_plan, const Compiled& fused_plan) {
  const Program &unfused = *unfused_plan.program, &fused = *fused_plan.program;
  const auto predicted = [&](const Compiled& plan, const EntryPlan& entry,
                             llvm::ArrayRef<int64_t> sizes) {
    const std::optional<double> seconds = predicted_seconds(plan, entry.name, sizes);
    return seconds ? duration(*seconds) : "–";
  };
  std::vector<std::pair<PlanCosts, PlanCosts>> costs;  // of each entry, before and after
  for (size_t i = 0; i < fused.entries.size(); ++i)
    costs.emplace_back(plan_costs(unfused, unfused.entries[i], fused_plan.sizes_of(i)),
                       plan_costs(fused, fused.entries[i], fused_plan.sizes_of(i)));
  // Few plans have copies.
  const bool has_copies = std::any_of(costs.begin(), costs.end(), [](const auto& of_entry) {
    return of_entry.first.copies + of_entry.second.copies > 0;
  });
  TextTable table(has_copies ? "llrrrrrrr" : "llrrrrrr");
  std::vector<std::string> header = {"entry", "at", "kernels", "launches", "of them GEMM"};
  if (has_copies) header.push_back("copy");
  header.push_back("bytes moved");
  header.push_back("arena");
  header.push_back("predicted");
  table.add(header);
  for (size_t i = 0; i < costs.size(); ++i) {
    const auto& [before, after] = costs[i];
    const EntryPlan& entry = fused.entries[i];
    const std::vector<int64_t> sizes = fused_plan.sizes_of(i);
    std::vector<std::string> row = {printable(fused_plan.title_of(i)),
                                    show_sizes(fused, entry, sizes)};
    const auto add = [&](uint64_t was, uint64_t is) {
      row.push_back(arrow(std::to_string(was), std::to_string(is)));
    };
    add(before.kernels, after.kernels);
    add(before.launches, after.launches);
    add(before.gemms, after.gemms);
    if (has_copies) add(before.copies, after.copies);
    row.push_back(arrow(with_unit(before.bytes, "B"), with_unit(after.bytes, "B")));
    row.push_back(arrow(with_unit(before.arena_bytes, "B"), with_unit(after.arena_bytes, "B")));
    row.push_back(
        arrow(predicted(unfused_plan, entry, sizes), predicted(fused_plan, entry, sizes)));
    table.add(row);
  }
  return table.str();
}

std::string kernel_table(const Program& program) {
  std::vector<std::string> header = {"kernel"};
  for (const EntryPlan& entry : program.entries)
    header.push_back(printable(entry_title(entry.name, entry.range, program.symbols)));
  header.push_back("first launch computes");
  TextTable table("l" + std::string(program.entries.size(), 'r') + "l");
  table.add(header);
  struct Launches {
    std::vector<size_t> of_entry;
    std::string first;  // what the first one computes
  };
  llvm::DenseMap<const Kernel*, Launches> launches;
  for (size_t e = 0; e < program.entries.size(); ++e)
    for (const Step& step : program.entries[e].steps) {
      const Kernel* kernel = step_facts(program, step).kernel;
      if (!kernel) continue;
      Launches& own = launches[kernel];
      own.of_entry.resize(program.entries.size());
      if (own.first.empty()) own.first = printable(fmt::format("{}", fmt::join(step.values, " ")));
      ++own.of_entry[e];
    }
  for (const Kernel& kernel : program.kernels) {
    std::vector<std::string> row = {kernel.name};
    Launches& own = launches[&kernel];
    own.of_entry.resize(program.entries.size());
    for (size_t count : own.of_entry) row.push_back(count ? fmt::format("{}×", count) : "–");
    row.push_back(own.first);
    table.add(row);
  }
  return table.str();
}

}  // namespace sinter
