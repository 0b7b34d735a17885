#include "driver/compile/build.h"

#include <chrono>

#include "driver/text_table.h"
#include "ir/text.h"

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

}  // namespace

Result<Built> build(const BuildRequest& request) {
  Built built;
  Stages stages(built.seconds);
  SINTER_LET(model, load_model(request.path, request.load));
  built.spec = std::move(model.spec);
  stages.done("load");
  built.dumps.push_back({"input", print_module(model.module)});
  SINTER_LET(frozen, freeze(std::move(model.module), request.compile.entries,
                            [&](std::string_view pass, const Module& module) {
                              built.dumps.push_back({std::string(pass), print_module(module)});
                            }));
  stages.done("passes");
  CompileOptions unfused = request.compile;
  unfused.fusion = {};
  unfused.fusion.enabled = false;
  SINTER_LET(apart, compile(frozen, unfused));
  built.unfused = apart.program;
  stages.done("unfused plan");
  SINTER_LET(compiled, compile(std::move(frozen), request.compile));
  built.compiled = std::move(compiled);
  stages.done("fused plan");
  return built;
}

std::string model_line(const Built& built) {
  const Program& program = *built.compiled.program;
  std::string text = printable(program.name);
  if (const auto& spec = built.spec)
    text += fmt::format(": {}, {} of {}, vocabulary of {}", to_string(spec->dtype),
                        counted(static_cast<uint64_t>(spec->layers), "layer"), spec->hidden,
                        spec->vocabulary);
  return text + fmt::format(" → {}, {}", program.target, to_string(program.numerics));
}

}  // namespace sinter
