#include "driver/generate/decoder.h"
#include "driver/run/run.h"
#include "driver/verify/parts.h"
#include "driver/verify/precise_session.h"
#include "ir/variants.h"

namespace sinter {
namespace {

Status compare_values(std::string_view entry, std::string_view name, const HostTensor& fused,
                      const HostTensor& unfused, DTypeReport& report) {
  SINTER_LET(difference, compare_bits(fused, unfused));
  ++report.values;
  report.elements += fused.volume();
  if (difference && report.difference.empty())
    report.difference = fmt::format("{} %{}: {}", entry, name, to_string(*difference));
  return {};
}

}  // namespace

std::vector<std::string> Plans::common_values(std::string_view entry) const {
  std::vector<std::vector<std::string>> stored;
  for (const auto& plan : {fused, unfused})
    for (const EntryPlan& variant : variants_of(plan->program().entries, entry))
      stored.push_back(arena_values(variant));
  std::vector<std::string> common;
  for (const Op& op : module.find_entry(entry)->graph.ops())
    if (llvm::all_of(stored, [&](const auto& names) { return llvm::is_contained(names, op.name); }))
      common.push_back(op.name);
  return common;
}

Result<Plans> make_plans(const OpenedModel& model, const CompileOptions& compiling,
                         Backend& backend) {
  SINTER_TRY(require_runnable(model));
  SINTER_LET(module, frozen_module(model, compiling));
  CompileOptions options = options_for(compile_options(model, compiling), backend);
  SINTER_LET(fused, plan_for(model, module, options, backend));
  const Numerics numerics = options.fusion.numerics;
  options.fusion = {};
  options.fusion.enabled = false;
  options.fusion.numerics = numerics;
  SINTER_LET(unfused, compile(module, options));
  SINTER_LET(executables, backend.load({fused.program, unfused.program}, model.tensors.get()));
  return Plans{std::move(module), executables[0], executables[1]};
}

Status compare_runs(std::string_view entry, const RunResult& fused, const RunResult& unfused,
                    DTypeReport& report) {
  ++report.calls;
  for (size_t i = 0; i < fused.kept.size(); ++i)
    SINTER_TRY(compare_values(entry, fused.kept[i].first, fused.kept[i].second,
                              unfused.kept[i].second, report));
  for (size_t i = 0; i < fused.outputs.size(); ++i)
    SINTER_TRY(compare_values(entry, fmt::format("output {}", i), fused.outputs[i],
                              unfused.outputs[i], report));
  return {};
}

Status compare_states(const Session& fused, const Session& unfused, const Program& program,
                      DTypeReport& report) {
  for (size_t i = 0; i < program.states.size(); ++i) {
    SINTER_LET(a, fused.state(i));
    SINTER_LET(b, unfused.state(i));
    SINTER_TRY(compare_values("state", program.states[i].name, a, b, report));
  }
  return {};
}

Status measure_float64(const Plans& plans, std::string_view entry,
                       llvm::ArrayRef<DecoderCall> calls, llvm::ArrayRef<RunResult> fused,
                       llvm::ArrayRef<RunResult> unfused, DTypeReport& report) {
  SINTER_LET(precise, PreciseSession::create(plans.module, *plans.unfused));
  std::vector<double> reference;
  for (const DecoderCall& call : calls) {
    precise.restart();
    SINTER_LET(exact, precise.run(entry, call.symbol_values, call.inputs));
    const std::vector<double> values = to_doubles(exact[0]);
    reference.insert(reference.end(), values.begin(), values.end());
  }
  SINTER_LET(fused_error, accuracy(joined_outputs(fused), reference));
  SINTER_LET(unfused_error, accuracy(joined_outputs(unfused), reference));
  report.fused_error = fused_error;
  report.unfused_error = unfused_error;
  return {};
}

}  // namespace sinter
