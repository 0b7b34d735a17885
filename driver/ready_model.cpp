#include "driver/ready_model.h"

namespace sinter {

Status require_weights(const LoadedModel& model) {
  const bool needs_files = llvm::any_of(model.module.weights, [](const Weight& weight) {
    return llvm::any_of(weight.init.ops(), [](const Op& op) { return op.kind == OpKind::file; });
  });
  if (needs_files && !model.tensors)
    return fail("the model has no weights", model.origin,
                "give them with --weights FILE, or stand-ins with --random-weights SEED");
  return {};
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

Result<ReadyModel> make_ready(const LoadedModel& model, const CompileOptions& options,
                              Backend& backend) {
  SINTER_TRY(require_weights(model));
  SINTER_LET(module, freeze(model.module, {}));
  SINTER_LET(compiled, compile(std::move(module), options_for(options, backend)));
  SINTER_LET(models, backend.load({compiled.program}, model.tensors.get()));
  return ReadyModel{std::move(compiled), models[0]};
}

}  // namespace sinter
