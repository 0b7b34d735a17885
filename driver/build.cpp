#include "driver/build.h"

#include <chrono>

#include "driver/stored_plan/embed_weights.h"
#include "driver/text_table.h"
#include "frontends/check_tensors.h"
#include "ir/text.h"
#include "plan/plan_file.h"

namespace sinter {
namespace {

class Stages {
 public:
  explicit Stages(std::vector<std::pair<std::string, double>>& list) : list_(list) {}
  void done(std::string_view stage) {
    const auto now = std::chrono::steady_clock::now();
    list_.emplace_back(stage, std::chrono::duration<double>(now - last_).count());
    last_ = now;
  }

 private:
  std::vector<std::pair<std::string, double>>& list_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// The plan with a kernel for each op.
Result<Compiled> unfused_plan(const Module& frozen, CompileOptions options) {
  options.fusion = {};
  options.fusion.enabled = false;
  return compile(frozen, options);
}

}  // namespace

Result<Built> build(const BuildRequest& request) {
  std::vector<std::pair<std::string, double>> seconds;
  Stages stages(seconds);
  SINTER_LET(model, open_model(request.path, request.load));
  stages.done("load");
  SINTER_LET(built, build_opened(std::move(model), request));
  built.seconds.insert(built.seconds.begin(), seconds.begin(), seconds.end());
  return std::move(built);
}

Result<Built> build_opened(OpenedModel model, const BuildRequest& request) {
  Built built;
  Stages stages(built.seconds);
  built.model = std::move(model);
  built.options = compile_options(built.model, request.compile);
  const auto dump = [&](std::string_view pass, const Module& module) {
    if (request.for_folder) built.dumps.push_back({std::string(pass), print_module(module)});
  };
  dump("input", built.model.module);
  SINTER_LET(frozen, frozen_module(built.model, request.compile, dump));
  if (request.embed) {
    if (!built.model.tensors && !file_tensors(built.model.module).empty())
      return fail("the model has no weights to embed", built.model.origin,
                  "say where they are: --weights embed=PATH");
    built.weights = frozen.weights;
    embed_weights(frozen);
    dump("embed_weights", frozen);
  }
  stages.done("passes");
  if (request.for_folder) {
    SINTER_LET(unfused, unfused_plan(frozen, built.options));
    built.unfused = std::move(unfused);
    stages.done("unfused plan");
  }
  SINTER_LET(compiled, compile_opened(built.model, std::move(frozen), built.options));
  built.compiled = std::move(compiled);
  if (const auto& plan = built.model.plan;
      plan && write_plan(*built.compiled.program) != plan->text())
    return fail("this sinter makes another plan of the folder's module", built.model.origin,
                "compile the model again, or give --recompile");
  stages.done("fused plan");
  return built;
}

std::string model_line(const Built& built) {
  const Program& program = *built.compiled.program;
  std::string text = printable(program.name);
  if (const auto& spec = built.model.spec)
    text += fmt::format(": {}, {} of {}, vocabulary of {}", to_string(spec->dtype),
                        counted(static_cast<uint64_t>(spec->layers), "layer"), spec->hidden,
                        spec->vocabulary);
  return text + fmt::format(" → {}, {}{}", program.target, to_string(program.numerics),
                            program.invariant ? ", invariant" : "");
}

}  // namespace sinter
