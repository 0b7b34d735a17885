// Every entry of a module. A call is short, and its operands may fit in the second-level cache:
// many calls, each on memory of its own, are recorded in one graph, and its launches are timed.
#include <algorithm>

#include "driver/bench/calls.h"
#include "driver/bench/parts.h"
#include "driver/compile/plan_summary.h"
#include "driver/generate/decoder.h"
#include "ir/variants.h"
#include "runtime/random_inputs.h"

namespace sinter {
namespace {

constexpr int64_t kMinSets = 3, kMaxSets = 32768;
constexpr size_t kTimesCache = 4;  // all sets take this many times the second-level cache
constexpr int64_t kMinCalls = 8;   // of one graph
constexpr size_t kMinCopy = 32;    // bytes; see CudaCeilings::copy

Result<std::vector<int64_t>> sizes_of(const BenchPlans& plans, const BenchOptions& options) {
  const llvm::ArrayRef<Symbol> symbols = plans.frozen.symbols;
  std::vector<int64_t> sizes = min_symbol_values(symbols);
  std::string names;
  for (const Symbol& symbol : symbols)
    names += (names.empty() ? "" : ", ") + printable(symbol.name);
  for (const auto& [name, value] : options.symbols) {
    const int symbol = find_symbol(symbols, name);
    if (symbol < 0)
      return fail(fmt::format("the module has no symbol {}", printable(name)), "--symbol",
                  names.empty() ? "its sizes are constants" : "it has " + names, ExitCode::usage);
    sizes[static_cast<size_t>(symbol)] = value;
  }
  if (Status valid = check_symbol_values(symbols, sizes); !valid) {
    valid.error().hint = "give sizes with --symbol NAME=VALUE";
    return tl::make_unexpected(std::move(valid.error()));
  }
  return sizes;
}

/// Sets that take at least kTimesCache times the cache, inputs, states and the smaller arena
/// counted.
Result<int64_t> count_sets(const BenchPlans& plans, const EntryPlan& fused,
                           const EntryPlan& unfused, llvm::ArrayRef<HostTensor> inputs,
                           llvm::ArrayRef<int64_t> sizes) {
  const auto a = arena_layout(fused, sizes), b = arena_layout(unfused, sizes);
  if (!a || !b) return fail("the arena's size exceeds 63 bits", "entry " + printable(fused.name));
  size_t bytes = static_cast<size_t>(std::min(a->bytes, b->bytes));
  for (const HostTensor& input : inputs) bytes += input.bytes.size();
  for (const State& state : plans.frozen.states)
    bytes += static_cast<size_t>(storage_bytes(state.type).evaluate(sizes).value_or(0));
  const size_t wanted = kTimesCache * plans.device()->l2_bytes() / std::max<size_t>(bytes, 1) + 1;
  return std::clamp(static_cast<int64_t>(std::min<size_t>(wanted, kMaxSets)), kMinSets, kMaxSets);
}

/// Runs both plans in turns; leaves nothing on the device.
Status measure(BenchPlans& plans, const EntryCall& call, llvm::ArrayRef<HostTensor> inputs,
               int64_t repeat, BenchCase& result) {
  const auto begin = Clock::now();
  SINTER_LET(sets, InputSets::create(plans.device(), inputs, call.sets));
  SINTER_LET(fused, RecordedCalls::create(plans.fused, call, sets));
  SINTER_LET(unfused, RecordedCalls::create(plans.unfused, call, sets));
  for (int64_t i = 0; i < kWarmLaunches; ++i) {
    SINTER_TRY(fused.run());
    SINTER_TRY(unfused.run());
  }
  for (size_t i = 0; i < fused.outputs(); ++i) {
    SINTER_LET(a, fused.output(i));
    SINTER_LET(b, unfused.output(i));
    SINTER_TRY(
        require_same(plans, a, b, fmt::format("entry {}, output {}", printable(call.name), i)));
  }
  plans.first_calls_s += seconds_since(begin);
  for (int64_t i = 0; i < repeat; ++i) {
    SINTER_LET(a, fused.run());
    add_sample(result.fused, a, call.calls());
    SINTER_LET(b, unfused.run());
    add_sample(result.unfused, b, call.calls());
  }
  return {};
}

/// Whether a call of these sizes has this entry, which may be a variant.
bool is_called(const Module& module, const Entry& entry, llvm::ArrayRef<int64_t> sizes) {
  return variant_for(module.entries, entry.name, sizes) == &entry;
}

}  // namespace

Result<std::vector<BenchCase>> bench_entries(BenchPlans& plans, const BenchOptions& options,
                                             const CudaCeilings& ceilings) {
  SINTER_LET(sizes, sizes_of(plans, options));
  std::vector<BenchCase> cases;
  for (const Entry& entry : plans.model.module.entries) {
    if (!is_called(plans.model.module, entry, sizes)) continue;
    if (options.on_stage) options.on_stage("entry " + printable(entry.name));
    const EntryPlan& fused = *variant_for(plans.fused->program().entries, entry.name, sizes);
    const EntryPlan& unfused = *variant_for(plans.unfused->program().entries, entry.name, sizes);
    SINTER_LET(inputs, random_inputs(entry.graph, plans.frozen.symbols, sizes, options.seed));
    SINTER_LET(sets, count_sets(plans, fused, unfused, inputs, sizes));
    const EntryCall call{entry.name, sizes, sets, (kMinCalls + sets - 1) / sets, options.seed};
    const PlanCosts costs = plan_costs(plans.fused->program(), fused, sizes);
    BenchCase result;
    result.name = entry_title(fused.name, fused.range, plans.frozen.symbols);
    for (size_t i = 0; i < sizes.size(); ++i)
      result.sizes.emplace_back(plans.frozen.symbols[i].name, sizes[i]);
    result.sizes.insert(result.sizes.end(), {{"sets", sets}, {"calls", call.calls()}});
    result.amount = costs.bytes;
    result.fused.launches = costs.launches;
    result.fused.predicted_s = plans.predicted(plans.compiled, entry.name, sizes);
    result.unfused.predicted_s = plans.predicted(plans.apart, entry.name, sizes);
    result.unfused.launches = plan_costs(plans.unfused->program(), unfused, sizes).launches;
    SINTER_TRY(measure(plans, call, inputs, options.repeat, result));
    result.ceiling_name = "copy";
    SINTER_LET(copy, ceilings.copy(std::max(static_cast<size_t>(costs.bytes), kMinCopy)));
    result.ceiling = copy;
    cases.push_back(std::move(result));
  }
  return cases;
}

}  // namespace sinter
