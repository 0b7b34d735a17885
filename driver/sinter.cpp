#include "driver/sinter.h"

#include "driver/run/run.h"
#include "ir/text.h"
#include "plan/plan_file.h"

namespace sinter {

struct CompiledModel::Data {
  OpenedModel model;
  RunOptions options;
  Compiled compiled;
};

Result<CompiledModel> CompiledModel::compile(const std::string& path, const ModelOptions& options) {
  OpenOptions load;
  load.random_weights = options.random_weights;
  if (!options.dtype.empty()) {
    SINTER_LET(dtype, parse_dtype_option(options.dtype));
    load.dtype = dtype;
  }
  SINTER_LET(model, open_model(path, load));
  auto data = std::make_shared<Data>(Data{std::move(model), {}, {}});
  BackendOptions on_cpu;
  on_cpu.device = "cpu";
  SINTER_LET(backend, Backend::open(on_cpu));
  data->options.backend = std::move(backend);
  data->options.compile.target = options.target;
  data->options.compile.fusion.enabled = options.fuse;
  if (options.fast) data->options.compile.fusion.numerics = Numerics::fast;
  SINTER_LET(frozen, frozen_module(data->model));
  SINTER_LET(compiled, sinter::compile(std::move(frozen),
                                       compile_options(data->model, data->options.compile)));
  data->compiled = std::move(compiled);
  return CompiledModel(std::move(data));
}

std::vector<std::string> CompiledModel::entries() const {
  std::vector<std::string> names;
  for (const EntryPlan& entry : data_->compiled.program->entries) names.push_back(entry.name);
  return names;
}

Result<std::int64_t> CompiledModel::launches(const std::string& entry) const {
  const EntryPlan* plan = data_->compiled.program->find_entry(entry);
  if (!plan) return fail(fmt::format("no entry point is called \"{}\"", printable(entry)));
  return static_cast<std::int64_t>(plan->steps.size());
}

Result<WhyAnswer> CompiledModel::why(const std::string& entry, const std::string& a,
                                     const std::string& b) const {
  const Module& module = data_->compiled.module;
  for (size_t i = 0; i < module.entries.size(); ++i) {
    if (module.entries[i].name != entry) continue;
    const Graph& graph = module.entries[i].graph;
    for (const std::string& name : {a, b})
      if (!graph.find(name).valid())
        return fail(fmt::format("no value is called \"{}\"", printable(name)), entry);
    const Verdict verdict = data_->compiled.fusions[i].why(graph.find(a), graph.find(b));
    WhyAnswer answer{
        verdict.accepted(), std::string(reason_id(verdict.reason)), describe(verdict, graph), {}};
    for (ValueId id : verdict.path) answer.path.push_back(graph[id].name);
    return answer;
  }
  return fail(fmt::format("no entry point is called \"{}\"", printable(entry)));
}

std::string CompiledModel::plan_json() const { return write_plan(*data_->compiled.program); }
std::string CompiledModel::module_text() const { return print_module(data_->compiled.module); }

std::vector<std::string> CompiledModel::kernel_sources() const {
  std::vector<std::string> sources;
  for (const Kernel& kernel : data_->compiled.program->kernels) sources.push_back(kernel.source);
  return sources;
}

Result<std::vector<std::int32_t>> CompiledModel::generate(const std::vector<std::int32_t>& tokens,
                                                          std::int64_t more) const {
  SINTER_LET(run, run_tokens(data_->model, tokens, more, data_->options));
  return std::move(run.tokens);
}

}  // namespace sinter
