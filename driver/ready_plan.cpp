#include "driver/ready_plan.h"

#include "frontends/files/shards.h"
#include "runtime/cuda/nvrtc_library.h"

namespace sinter {
namespace {

/// The program of a plan as the backend runs it.
Result<std::shared_ptr<const Program>> stored_program(const StoredPlan& plan, Backend& backend) {
  if (!backend.on_gpu()) return plan.program();
  const std::string arch = backend.target({});
  SINTER_LET(code, plan.machine_code_for(arch));
  const bool compiles = llvm::any_of(plan.program()->kernels, [&](const Kernel& kernel) {
    return !code.contains(kernel.source_hash);
  });
  if (const auto nvrtc = find_nvrtc(); compiles && !nvrtc)
    return fail(fmt::format("the plan has no machine code for {}, and its CUDA text cannot be "
                            "compiled here: {}",
                            arch, nvrtc.error().what),
                plan.folder(), fmt::format("compile the model with --arch {}", arch));
  backend.add_machine_code(std::move(code));
  return plan.program();
}

}  // namespace

Status require_runnable(const OpenedModel& model) {
  if (model.spec && model.compiled_with && !model.compiled_with->entries.empty())
    return fail(fmt::format("the plan has the entry {} alone",
                            fmt::join(model.compiled_with->entries, ", ")),
                model.origin, "compile the model without --phase");
  const bool needs_files = llvm::any_of(model.module.weights, [](const Weight& weight) {
    return llvm::any_of(weight.init.ops(), [](const Op& op) { return op.kind == OpKind::file; });
  });
  if (!needs_files || model.tensors) return {};
  if (const std::string other = other_weights(model.origin); !other.empty())
    return fail(fmt::format("the model's weights are not safetensors but {}", other), model.origin,
                safetensors_hint(model.origin, other));
  return fail("the model has no weights", model.origin,
              "give them with --weights FILE, or stand-ins with --random-weights SEED");
}

Status require_tunable(const OpenedModel& model) {
  if (!model.plan) return {};
  return fail("the kernels of a plan are not tuned any more", model.origin,
              "tune the model and compile it with --record, or give --recompile", ExitCode::usage);
}

Status check_tokens(const Model& model, llvm::ArrayRef<int32_t> tokens) {
  if (!model.spec)
    return fail("tokens need a language model, got a module", model.origin,
                "give its inputs with --inputs", ExitCode::usage);
  if (model.spec->encoder)
    return fail("an encoder gives no logits of next tokens", model.origin, "`sinter embed` runs it",
                ExitCode::usage);
  return check_vocabulary(model, tokens);
}

Status check_vocabulary(const Model& model, llvm::ArrayRef<int32_t> tokens) {
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

Result<Compiled> plan_for(const OpenedModel& model, Module frozen, const CompileOptions& options,
                          Backend& backend) {
  if (!model.plan) return compile_opened(model, std::move(frozen), options);
  SINTER_LET(program, stored_program(*model.plan, backend));
  return Compiled{std::move(frozen), {}, std::move(program), {}};
}

Result<ReadyPlan> make_ready(const OpenedModel& model, const CompileOptions& options,
                             Backend& backend) {
  SINTER_TRY(require_runnable(model));
  CompileOptions whole = options;
  whole.entries.clear();
  // A stored plan needs no pass: its entries have the module's inputs as they are.
  SINTER_LET(frozen, model.plan ? Result<Module>(model.module) : frozen_module(model, whole));
  SINTER_LET(compiled, plan_for(model, std::move(frozen),
                                options_for(compile_options(model, options), backend), backend));
  SINTER_LET(executables, backend.load({compiled.program}, model.tensors.get()));
  return ReadyPlan{std::move(compiled), executables[0]};
}

}  // namespace sinter
