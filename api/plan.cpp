#include "api/plan.h"

#include <algorithm>

#include "api/options.h"
#include "driver/compile/machine_code.h"
#include "driver/compile/plan_summary.h"
#include "driver/explain/relaxed_attention.h"
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

Result<std::string> text_of(const sinter_plan& plan, const std::string& what) {
  if (what == "plan.json")
    return plan.source.model.plan ? plan.source.model.plan->text() : write_plan(*plan.program);
  SINTER_LET(decisions, asked_decisions(plan));
  const Compiled& compiled = decisions->compiled;
  if (what == "module") return print_module(compiled.module);
  if (what == "ledger.html" || what == "ledger-with-module.html") {
    PageParts parts;
    parts.module_text = what != "ledger.html";
    return ledger_html(compiled, {}, {}, parts);
  }
  if (what == "ledger.json" || what == "ledger.txt") {
    SINTER_LET(relaxed, relaxed_savings(plan.source.model, plan.options, compiled));
    if (what == "ledger.json") return ledger_json(compiled, {}, {relaxed});
    std::string text;
    for (const EntryLedger& entry : ledger(compiled, {}, {relaxed}))
      text += ledger_text(entry, true);
    return text;
  }
  return fail(fmt::format("a plan has no text \"{}\"", printable(what)), {},
              "ask for plan.json, module, ledger.json, ledger.txt, ledger.html or "
              "ledger-with-module.html",
              ExitCode::usage);
}

/// The items of "a,b".
std::vector<std::string> items_of(const std::string& list) {
  std::vector<std::string> items;
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    items.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
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

}  // namespace

BuildRequest request_of(const sinter_plan& plan) {
  BuildRequest request;
  request.path = plan.source.path;
  request.compile = plan.options;
  return request;
}

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
  for (const State& state : plan->program->states)
    plan->states.push_back({state.name, to_string(state.type, plan->program->symbols)});
  return plan;
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

void sinter_plan_free(sinter_plan* plan) { free_handle(plan); }

sinter_error* sinter_plan_text(const sinter_plan* plan, const char* what, char** text) {
  return give_text(text, [&]() -> Result<std::string> {
    SINTER_TRY(require(plan, "plan"));
    SINTER_TRY(require(what, "what"));
    return text_of(*plan, what);
  });
}
