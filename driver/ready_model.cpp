#include "driver/ready_model.h"

namespace sinter {

Status require_runnable(const OpenedModel& model) {
  if (model.spec && model.compiled_with && !model.compiled_with->entries.empty())
    return fail(fmt::format("the plan has the entry {} alone",
                            fmt::join(model.compiled_with->entries, ", ")),
                model.origin, "compile the model without --phase");
  const bool needs_files = llvm::any_of(model.module.weights, [](const Weight& weight) {
    return llvm::any_of(weight.init.ops(), [](const Op& op) { return op.kind == OpKind::file; });
  });
  if (needs_files && !model.tensors)
    return fail("the model has no weights", model.origin,
                "give them with --weights FILE, or stand-ins with --random-weights SEED");
  return {};
}

Status require_tunable(const OpenedModel& model) {
  if (!model.plan) return {};
  return fail("the kernels of a plan are not tuned any more", model.origin,
              "tune the model and compile it with --record, or give --recompile", ExitCode::usage);
}

Status check_tokens(const LoadedModel& model, llvm::ArrayRef<int32_t> tokens) {
  if (!model.spec)
    return fail("tokens need a language model, got a module", model.origin,
                "give its inputs with --inputs F.safetensors", ExitCode::usage);
  if (model.spec->encoder)
    return fail("an encoder gives no logits of next tokens", model.origin, "`sinter embed` runs it",
                ExitCode::usage);
  for (int32_t id : tokens)
    if (id < 0 || id >= model.spec->vocabulary)
      return fail(
          fmt::format("token {} is outside the vocabulary of {}", id, model.spec->vocabulary),
          model.origin);
  return {};
}

CompileOptions options_for(CompileOptions options, const Backend& backend) {
  options.target = backend.target(options.target);
  options.forms = backend.record().forms;
  return options;
}

Result<std::shared_ptr<const Program>> plan_for(const StoredPlan& plan, Backend& backend) {
  if (!backend.on_gpu()) return plan.program();
  SINTER_LET(loaded, plan.for_gpu(backend.target({})));
  backend.add_machine_code(std::move(loaded.code));
  return std::move(loaded.program);
}

Result<ReadyModel> make_ready(const OpenedModel& model, const CompileOptions& options,
                              Backend& backend) {
  SINTER_TRY(require_runnable(model));
  Compiled compiled;
  if (model.plan) {
    SINTER_LET(program, plan_for(*model.plan, backend));
    compiled = {model.module, {}, std::move(program)};
  } else {
    SINTER_LET(frozen, frozen_module(model));
    SINTER_LET(made,
               compile(std::move(frozen), options_for(compile_options(model, options), backend)));
    compiled = std::move(made);
  }
  SINTER_LET(models, backend.load({compiled.program}, model.tensors.get()));
  return ReadyModel{std::move(compiled), models[0]};
}

}  // namespace sinter
