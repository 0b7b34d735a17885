#include "api/plan.h"

#include <sstream>

#include "api/options.h"
#include "driver/compile/machine_code.h"
#include "driver/compile/plan_summary.h"
#include "driver/plan_folder/write.h"
#include "ir/text.h"
#include "plan/plan_file.h"

namespace sinter {
namespace {

std::vector<sinter_plan_entry> describe_entries(const Program& program) {
  std::vector<sinter_plan_entry> entries;
  for (const EntryPlan& plan : program.entries) {
    sinter_plan_entry& entry = entries.emplace_back();
    const auto type = [&](uint32_t buffer) {
      return to_string(plan.buffers[buffer].type, program.symbols);
    };
    for (uint32_t input : plan.inputs)
      entry.inputs.push_back({plan.buffers[input].value, type(input)});
    for (size_t i = 0; i < plan.outputs.size(); ++i)
      entry.outputs.push_back({plan.output_names[i], type(plan.outputs[i])});
    for (const Step& step : plan.steps) {
      std::string values;
      for (const std::string& value : step.values)
        values += fmt::format("{}%{}", values.empty() ? "" : ", ", value);
      entry.step_values.push_back(std::move(values));
    }
  }
  return entries;
}

BuildRequest request_of(const sinter_plan& plan) {
  BuildRequest request;
  request.path = plan.source.path;
  request.compile = plan.options;
  return request;
}

std::unique_ptr<sinter_plan::Decisions> decisions_of(Compiled compiled) {
  auto decisions = std::make_unique<sinter_plan::Decisions>();
  decisions->compiled = std::move(compiled);
  for (EntryLedger& entry : ledger(decisions->compiled)) {
    auto& list = decisions->of_entry.emplace_back();
    for (LedgerDecision& decision : entry.decisions) list.push_back({std::move(decision)});
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

Result<size_t> find_entry(const sinter_plan& plan, const char* name) {
  for (size_t i = 0; i < plan.program->entries.size(); ++i)
    if (plan.program->entries[i].name == name) return i;
  return fail(fmt::format("no entry is called \"{}\"", printable(name)), {}, {}, ExitCode::usage);
}

Status check_entry(const sinter_plan& plan, size_t entry) {
  if (entry < plan.entries.size()) return {};
  return fail(fmt::format("entry {} of a plan that has {}", entry, plan.entries.size()), {}, {},
              ExitCode::usage);
}

Result<std::string> text_of(const sinter_plan& plan, const std::string& what) {
  if (what == "plan.json")
    return plan.source.model.plan ? plan.source.model.plan->text() : write_plan(*plan.program);
  SINTER_LET(decisions, asked_decisions(plan));
  const Compiled& compiled = decisions->compiled;
  if (what == "module") return print_module(compiled.module);
  if (what == "ledger.json") return ledger_json(compiled);
  if (what == "ledger.html") return ledger_html(compiled);
  if (what == "ledger.txt") {
    std::string text;
    for (const EntryLedger& entry : ledger(compiled)) text += ledger_text(entry, true);
    return text;
  }
  return fail(fmt::format("a plan has no text \"{}\"", printable(what)), {},
              "ask for plan.json, module, ledger.json, ledger.txt or ledger.html", ExitCode::usage);
}

/// The items of "a,b".
std::vector<std::string> items_of(const std::string& list) {
  std::vector<std::string> items;
  std::istringstream stream(list);
  for (std::string item; std::getline(stream, item, ',');) items.push_back(item);
  return items;
}

Status save_plan(const sinter_plan& plan, const char* folder, const sinter_options* options) {
  OptionReader reader(options);
  const std::vector<std::string> archs = items_of(reader.text("machine-code").value_or(""));
  SINTER_TRY(reader.finish());
  if (plan.source.model.plan)
    return fail("this plan is a folder already", plan.source.path, "copy the folder",
                ExitCode::usage);
  SINTER_TRY(check_plan_folder(folder));
  BuildRequest request = request_of(plan);
  request.for_folder = true;
  SINTER_LET(built, build_opened(plan.source.model, request));
  const Progress progress(options);
  std::vector<MachineCode> code;
  for (size_t i = 0; i < archs.size(); ++i) {
    SINTER_TRY(
        progress("machine code", static_cast<int64_t>(i), static_cast<int64_t>(archs.size())));
    SINTER_LET(compiled, machine_code(*plan.program, archs[i]));
    if (!compiled.absent.empty())
      return fail(compiled.absent, OptionReader::where("machine-code"), {}, ExitCode::device);
    code.push_back(std::move(compiled));
  }
  std::vector<ModelFile> files;
  if (!plan.source.path.empty()) {
    SINTER_LET(read, read_model_files(plan.source.path));
    files = std::move(read);
  }
  return write_plan_folder(folder, {built, code, files, {}, plan.source.random_weights, false});
}

const EntryPlan* entry_at(const sinter_plan* plan, size_t entry) {
  return entry < plan->program->entries.size() ? &plan->program->entries[entry] : nullptr;
}
const sinter_plan_entry::Value* value_at(const std::vector<sinter_plan_entry::Value>& values,
                                         size_t index) {
  return index < values.size() ? &values[index] : nullptr;
}
const sinter_plan_entry::Value* input_at(const sinter_plan* plan, size_t entry, size_t input) {
  return entry < plan->entries.size() ? value_at(plan->entries[entry].inputs, input) : nullptr;
}
const sinter_plan_entry::Value* output_at(const sinter_plan* plan, size_t entry, size_t output) {
  return entry < plan->entries.size() ? value_at(plan->entries[entry].outputs, output) : nullptr;
}
const Step* step_at(const sinter_plan* plan, size_t entry, size_t step) {
  const EntryPlan* at = entry_at(plan, entry);
  return at && step < at->steps.size() ? &at->steps[step] : nullptr;
}

}  // namespace

Result<std::unique_ptr<sinter_plan>> compile_plan(const sinter_model& model,
                                                  const sinter_options* options) {
  OptionReader reader(options);
  auto plan = std::make_unique<sinter_plan>();
  plan->source = model;
  const Progress progress(options);
  if (model.model.plan) {
    if (options && !options->values.empty())
      return fail("a plan is compiled already", OptionReader::where(options->values.begin()->first),
                  "leave it out, or open the folder with recompile", ExitCode::usage);
    SINTER_TRY(reader.finish());
    plan->options = *model.model.compiled_with;
    plan->program = model.model.plan->program();
  } else {
    SINTER_LET(compile, read_compile_options(reader));
    SINTER_LET(device_inputs, reader.flag("device-inputs", !model.model.spec));
    compile.device_inputs = device_inputs;
    SINTER_TRY(reader.finish());
    plan->options = std::move(compile);
    SINTER_TRY(progress("passes", 0, 2));
    SINTER_LET(frozen, frozen_module(model.model, plan->options));
    SINTER_TRY(progress("fusion", 1, 2));
    plan->options = compile_options(model.model, plan->options);
    SINTER_LET(compiled, compile_opened(model.model, std::move(frozen), plan->options));
    plan->program = compiled.program;
    plan->decisions = decisions_of(std::move(compiled));
    SINTER_TRY(progress("fusion", 2, 2));
  }
  plan->entries = describe_entries(*plan->program);
  return plan;
}

Result<std::vector<int64_t>> sizes_of(const Program& program, const char* const* symbols,
                                      const int64_t* values, size_t count) {
  std::vector<int64_t> sizes = usual_sizes(program.symbols);
  if (count > 0) {
    SINTER_TRY(require(symbols, "symbols"));
    SINTER_TRY(require(values, "values"));
  }
  for (size_t i = 0; i < count; ++i) {
    SINTER_TRY(require(symbols[i], "symbols"));
    const auto at = llvm::find_if(program.symbols,
                                  [&](const Symbol& symbol) { return symbol.name == symbols[i]; });
    if (at == program.symbols.end())
      return fail(fmt::format("no symbol is called \"{}\"", printable(symbols[i])), {}, {},
                  ExitCode::usage);
    SINTER_TRY(check_symbol_value(*at, values[i]));
    sizes[static_cast<size_t>(at - program.symbols.begin())] = values[i];
  }
  return sizes;
}

}  // namespace sinter

using namespace sinter;

sinter_error* sinter_compile(const sinter_model* model, const sinter_options* options,
                             sinter_plan** plan) {
  return make_handle(plan, [&]() -> Result<std::unique_ptr<sinter_plan>> {
    SINTER_TRY(require(model, "model"));
    return compile_plan(*model, options);
  });
}

sinter_error* sinter_plan_save(const sinter_plan* plan, const char* folder,
                               const sinter_options* options) {
  return border([&]() -> Status {
    SINTER_TRY(require(plan, "plan"));
    SINTER_TRY(require(folder, "folder"));
    return save_plan(*plan, folder, options);
  });
}

void sinter_plan_free(sinter_plan* plan) { delete plan; }

const char* sinter_plan_target(const sinter_plan* plan) { return plan->program->target.c_str(); }

sinter_error* sinter_plan_text(const sinter_plan* plan, const char* what, char** text) {
  return give_text(text, [&]() -> Result<std::string> {
    SINTER_TRY(require(plan, "plan"));
    SINTER_TRY(require(what, "what"));
    return text_of(*plan, what);
  });
}

size_t sinter_plan_symbol_count(const sinter_plan* plan) { return plan->program->symbols.size(); }
const char* sinter_plan_symbol_name(const sinter_plan* plan, size_t index) {
  const auto& symbols = plan->program->symbols;
  return index < symbols.size() ? symbols[index].name.c_str() : nullptr;
}
void sinter_plan_symbol_range(const sinter_plan* plan, size_t index, int64_t* low, int64_t* high,
                              int64_t* multiple) {
  const auto& symbols = plan->program->symbols;
  if (index >= symbols.size()) return;
  if (low) *low = symbols[index].low;
  if (high) *high = symbols[index].high;
  if (multiple) *multiple = symbols[index].multiple;
}

size_t sinter_plan_entry_count(const sinter_plan* plan) { return plan->entries.size(); }
const char* sinter_plan_entry_name(const sinter_plan* plan, size_t entry) {
  const EntryPlan* at = entry_at(plan, entry);
  return at ? at->name.c_str() : nullptr;
}
size_t sinter_plan_input_count(const sinter_plan* plan, size_t entry) {
  return entry < plan->entries.size() ? plan->entries[entry].inputs.size() : 0;
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
  return entry < plan->entries.size() ? plan->entries[entry].outputs.size() : 0;
}
const char* sinter_plan_output_name(const sinter_plan* plan, size_t entry, size_t output) {
  const auto* value = output_at(plan, entry, output);
  return value ? value->name.c_str() : nullptr;
}
const char* sinter_plan_output_type(const sinter_plan* plan, size_t entry, size_t output) {
  const auto* value = output_at(plan, entry, output);
  return value ? value->type.c_str() : nullptr;
}

sinter_error* sinter_plan_costs(const sinter_plan* plan, size_t entry, const char* const* symbols,
                                const int64_t* values, size_t symbol_count, sinter_costs** costs) {
  return make_handle(costs, [&]() -> Result<std::unique_ptr<sinter_costs>> {
    SINTER_TRY(require(plan, "plan"));
    SINTER_TRY(check_entry(*plan, entry));
    SINTER_LET(sizes, sizes_of(*plan->program, symbols, values, symbol_count));
    const EntryPlan& at = plan->program->entries[entry];
    const PlanCosts all = plan_costs(*plan->program, at, sizes);
    const auto arena = arena_layout(at, sizes);
    if (!arena) return fail("the arena's size exceeds 63 bits", "entry " + printable(at.name));
    auto result = std::make_unique<sinter_costs>();
    *result = {static_cast<int64_t>(all.launches), static_cast<int64_t>(all.kernels),
               static_cast<int64_t>(all.gemms), static_cast<int64_t>(all.bytes), arena->bytes};
    return result;
  });
}
int64_t sinter_costs_launches(const sinter_costs* costs) { return costs->launches; }
int64_t sinter_costs_kernels(const sinter_costs* costs) { return costs->kernels; }
int64_t sinter_costs_products(const sinter_costs* costs) { return costs->products; }
int64_t sinter_costs_moved_bytes(const sinter_costs* costs) { return costs->moved_bytes; }
int64_t sinter_costs_arena_bytes(const sinter_costs* costs) { return costs->arena_bytes; }
void sinter_costs_free(sinter_costs* costs) { delete costs; }

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

size_t sinter_plan_kernel_count(const sinter_plan* plan) { return plan->program->kernels.size(); }
const char* sinter_plan_kernel_name(const sinter_plan* plan, size_t kernel) {
  const auto& kernels = plan->program->kernels;
  return kernel < kernels.size() ? kernels[kernel].name.c_str() : nullptr;
}
const char* sinter_plan_kernel_source(const sinter_plan* plan, size_t kernel) {
  const auto& kernels = plan->program->kernels;
  return kernel < kernels.size() ? kernels[kernel].source.c_str() : nullptr;
}

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
    return std::make_unique<sinter_decision>(sinter_decision{std::move(answer.decision)});
  });
}

void sinter_decision_free(sinter_decision* decision) { delete decision; }
const char* sinter_decision_a(const sinter_decision* decision) {
  return decision->decision.a.c_str();
}
const char* sinter_decision_b(const sinter_decision* decision) {
  return decision->decision.b.c_str();
}
int sinter_decision_fused(const sinter_decision* decision) { return decision->decision.fused; }
const char* sinter_decision_reason(const sinter_decision* decision) {
  return decision->decision.reason.c_str();
}
const char* sinter_decision_text(const sinter_decision* decision) {
  return decision->decision.text.c_str();
}
const char* sinter_decision_detail(const sinter_decision* decision) {
  return decision->decision.detail.c_str();
}
size_t sinter_decision_path_count(const sinter_decision* decision) {
  return decision->decision.path.size();
}
const char* sinter_decision_path(const sinter_decision* decision, size_t index) {
  const auto& path = decision->decision.path;
  return index < path.size() ? path[index].c_str() : nullptr;
}
int64_t sinter_decision_saved_bytes(const sinter_decision* decision) {
  return static_cast<int64_t>(decision->decision.saved_bytes);
}
