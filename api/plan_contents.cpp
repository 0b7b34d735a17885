// The contents of a plan: symbols, entries, steps, kernels, costs.
#include "api/plan.h"
#include "driver/compile/plan_summary.h"
#include "driver/compile/predicted.h"
#include "ir/variants.h"
#include "plan/shared_outputs.h"

namespace sinter {
namespace {

const EntryPlan* entry_at(const sinter_plan* plan, size_t entry) {
  return plan && entry < plan->program->entries.size() ? &plan->program->entries[entry] : nullptr;
}
const sinter_plan_entry::Value* value_at(const std::vector<sinter_plan_entry::Value>& values,
                                         size_t index) {
  return index < values.size() ? &values[index] : nullptr;
}
const sinter_plan_entry::Value* input_at(const sinter_plan* plan, size_t entry, size_t input) {
  return plan && entry < plan->entries.size() ? value_at(plan->entries[entry].inputs, input)
                                              : nullptr;
}
const sinter_plan_entry::Value* output_at(const sinter_plan* plan, size_t entry, size_t output) {
  return plan && entry < plan->entries.size() ? value_at(plan->entries[entry].outputs, output)
                                              : nullptr;
}
const Step* step_at(const sinter_plan* plan, size_t entry, size_t step) {
  const EntryPlan* at = entry_at(plan, entry);
  return at && step < at->steps.size() ? &at->steps[step] : nullptr;
}

/// `known`: the plan's symbols, narrowed to the entry's range.
Result<std::vector<int64_t>> sizes_of(llvm::ArrayRef<Symbol> known, const char* const* symbols,
                                      const int64_t* values, size_t count) {
  std::vector<int64_t> sizes = usual_sizes(known);
  if (count > 0) {
    SINTER_TRY(require(symbols, "symbols"));
    SINTER_TRY(require(values, "values"));
  }
  for (size_t i = 0; i < count; ++i) {
    SINTER_TRY(require(symbols[i], "symbols"));
    const auto at =
        llvm::find_if(known, [&](const Symbol& symbol) { return symbol.name == symbols[i]; });
    if (at == known.end())
      return fail(fmt::format("no symbol is called \"{}\"", printable(symbols[i])), {}, {},
                  ExitCode::usage);
    SINTER_TRY(check_symbol_value(*at, values[i]));
    sizes[static_cast<size_t>(at - known.begin())] = values[i];
  }
  return sizes;
}

}  // namespace

Status check_entry(const sinter_plan& plan, size_t entry) {
  if (entry < plan.entries.size()) return {};
  return fail(fmt::format("entry {} of a plan that has {}", entry, plan.entries.size()), {}, {},
              ExitCode::usage);
}

}  // namespace sinter

using namespace sinter;

const char* sinter_plan_target(const sinter_plan* plan) {
  return plan ? plan->program->target.c_str() : nullptr;
}

size_t sinter_plan_symbol_count(const sinter_plan* plan) {
  return plan ? plan->program->symbols.size() : 0;
}
const char* sinter_plan_symbol_name(const sinter_plan* plan, size_t index) {
  if (!plan) return nullptr;
  const auto& symbols = plan->program->symbols;
  return index < symbols.size() ? symbols[index].name.c_str() : nullptr;
}
void sinter_plan_symbol_range(const sinter_plan* plan, size_t index, int64_t* low, int64_t* high,
                              int64_t* multiple) {
  if (index >= sinter_plan_symbol_count(plan)) return;
  const auto& symbols = plan->program->symbols;
  if (low) *low = symbols[index].low;
  if (high) *high = symbols[index].high;
  if (multiple) *multiple = symbols[index].multiple;
}

size_t sinter_plan_state_count(const sinter_plan* plan) { return plan ? plan->states.size() : 0; }
const char* sinter_plan_state_name(const sinter_plan* plan, size_t state) {
  const auto* value = plan ? value_at(plan->states, state) : nullptr;
  return value ? value->name.c_str() : nullptr;
}
const char* sinter_plan_state_type(const sinter_plan* plan, size_t state) {
  const auto* value = plan ? value_at(plan->states, state) : nullptr;
  return value ? value->type.c_str() : nullptr;
}

size_t sinter_plan_entry_count(const sinter_plan* plan) { return plan ? plan->entries.size() : 0; }
const char* sinter_plan_entry_name(const sinter_plan* plan, size_t entry) {
  const EntryPlan* at = entry_at(plan, entry);
  return at ? at->name.c_str() : nullptr;
}
int sinter_plan_entry_range(const sinter_plan* plan, size_t entry, const char** symbol,
                            int64_t* low, int64_t* high) {
  const EntryPlan* at = entry_at(plan, entry);
  if (!at || !at->range) return 0;
  if (symbol) *symbol = plan->program->symbols[at->range->symbol.index].name.c_str();
  if (low) *low = at->range->low;
  if (high) *high = at->range->high;
  return 1;
}
size_t sinter_plan_input_count(const sinter_plan* plan, size_t entry) {
  return plan && entry < plan->entries.size() ? plan->entries[entry].inputs.size() : 0;
}
const char* sinter_plan_input_name(const sinter_plan* plan, size_t entry, size_t input) {
  const auto* value = input_at(plan, entry, input);
  return value ? value->name.c_str() : nullptr;
}
const char* sinter_plan_input_type(const sinter_plan* plan, size_t entry, size_t input) {
  const auto* value = input_at(plan, entry, input);
  return value ? value->type.c_str() : nullptr;
}
size_t sinter_plan_output_count(const sinter_plan* plan, size_t entry) {
  return plan && entry < plan->entries.size() ? plan->entries[entry].outputs.size() : 0;
}
const char* sinter_plan_output_name(const sinter_plan* plan, size_t entry, size_t output) {
  const auto* value = output_at(plan, entry, output);
  return value ? value->name.c_str() : nullptr;
}
const char* sinter_plan_output_type(const sinter_plan* plan, size_t entry, size_t output) {
  const auto* value = output_at(plan, entry, output);
  return value ? value->type.c_str() : nullptr;
}
int sinter_plan_may_share(const sinter_plan* plan, size_t entry, size_t output, size_t input) {
  const EntryPlan* at = entry_at(plan, entry);
  return at && may_share_memory(*plan->program, *at, output, input) ? 1 : 0;
}

sinter_error* sinter_plan_costs(const sinter_plan* plan, size_t entry, const char* const* symbols,
                                const int64_t* values, size_t symbol_count, sinter_costs** costs) {
  return make_handle(costs, [&]() -> Result<std::unique_ptr<sinter_costs>> {
    SINTER_TRY(require(plan, "plan"));
    SINTER_TRY(check_entry(*plan, entry));
    const EntryPlan& at = plan->program->entries[entry];
    SINTER_LET(sizes,
               sizes_of(narrowed(plan->program->symbols, at.range), symbols, values, symbol_count));
    const PlanCosts all = plan_costs(*plan->program, at, sizes);
    const auto arena = arena_layout(at, sizes);
    if (!arena) return fail("the arena's size exceeds 63 bits", "entry " + printable(at.name));
    auto result = std::make_unique<sinter_costs>();
    *result = {static_cast<int64_t>(all.launches), static_cast<int64_t>(all.kernels),
               static_cast<int64_t>(all.gemms), static_cast<int64_t>(all.bytes), arena->bytes};
    const std::lock_guard lock(plan->asked);
    if (!plan->source.model.plan)
      result->predicted_seconds =
          predicted_seconds(plan->decisions->compiled, at.name, sizes).value_or(-1);
    return result;
  });
}
int64_t sinter_costs_launches(const sinter_costs* costs) { return costs ? costs->launches : 0; }
int64_t sinter_costs_kernels(const sinter_costs* costs) { return costs ? costs->kernels : 0; }
int64_t sinter_costs_products(const sinter_costs* costs) { return costs ? costs->products : 0; }
int64_t sinter_costs_moved_bytes(const sinter_costs* costs) {
  return costs ? costs->moved_bytes : 0;
}
int64_t sinter_costs_arena_bytes(const sinter_costs* costs) {
  return costs ? costs->arena_bytes : 0;
}
double sinter_costs_predicted_seconds(const sinter_costs* costs) {
  return costs ? costs->predicted_seconds : -1;
}
void sinter_costs_free(sinter_costs* costs) { free_handle(costs); }

size_t sinter_plan_step_count(const sinter_plan* plan, size_t entry) {
  const EntryPlan* at = entry_at(plan, entry);
  return at ? at->steps.size() : 0;
}
const char* sinter_plan_step_kind(const sinter_plan* plan, size_t entry, size_t step) {
  const Step* at = step_at(plan, entry, step);
  return at ? step_facts(*plan->program, *at).kind.data() : nullptr;
}
const char* sinter_plan_step_values(const sinter_plan* plan, size_t entry, size_t step) {
  return step_at(plan, entry, step) ? plan->entries[entry].step_values[step].c_str() : nullptr;
}
int64_t sinter_plan_step_kernel(const sinter_plan* plan, size_t entry, size_t step) {
  const Step* at = step_at(plan, entry, step);
  const Kernel* kernel = at ? step_facts(*plan->program, *at).kernel : nullptr;
  return kernel ? kernel - plan->program->kernels.data() : -1;
}

size_t sinter_plan_kernel_count(const sinter_plan* plan) {
  return plan ? plan->program->kernels.size() : 0;
}
const char* sinter_plan_kernel_name(const sinter_plan* plan, size_t kernel) {
  if (!plan) return nullptr;
  const auto& kernels = plan->program->kernels;
  return kernel < kernels.size() ? kernels[kernel].name.c_str() : nullptr;
}
const char* sinter_plan_kernel_source(const sinter_plan* plan, size_t kernel) {
  if (!plan) return nullptr;
  const auto& kernels = plan->program->kernels;
  return kernel < kernels.size() ? kernels[kernel].source.c_str() : nullptr;
}
