// A plan's folder: plan.json, which is run on the host if the checker lets it pass, and
// manifest.json, whose hash is made to fit.
#include "driver/compile/compile.h"
#include "driver/stored_plan/manifest.h"
#include "fuzz/reading.h"
#include "ir/text.h"
#include "plan/plan_file.h"
#include "support/run_plan.h"

namespace sinter::fuzz {
namespace {

constexpr double kMaxElements = 1 << 20;

Program compiled(std::string_view text) {
  auto module = parse_module(text, "seed.sir");
  if (!module) std::abort();
  auto frozen = freeze(std::move(*module), {});
  auto plan = compile(std::move(*frozen), {});
  if (!plan) std::abort();
  return *plan->program;
}

constexpr std::string_view kModules[] = {R"(module @m {
  symbol N in [1, 8]
  symbol R in [8, 64] step 8
  weight %w : f32[16, 16] = file {tensor = "w"}
  weight %t : f16[12, 16] = file {tensor = "t"}
  state %c : f16[R, 16]
  entry @main(%i: i32[N], %slot: i32[N]) -> (%y, %next) {
    %e = embedding %t, %i : f16[N, 16]
    %next = kv_append %c, %e, %slot : f16[R, 16]
    %f = cast %e : f32[N, 16]
    %l = linear %f, %w : f32[N, 16]
    %y = softmax %l : f32[N, 16]
  }
}
)",
                                         R"(module @n {
  symbol N in [2, 20]
  entry @a(%x: f32[N, 4], %w: f32[N, 4, 3], %n: i32[5]) -> (%z, %r) {
    %z = einsum %x, %w {spec = "na,nab->nb"} : f32[N, 3]
    %m = add %n, %n : i32[5]
    %r = embedding %x, %m : f32[5, 4]
  }
  entry @b(%x: f32[N]) -> (%s) {
    %s = cumulative_sum %x {axis = 0} : f32[N]
  }
}
)"};

}  // namespace

Outcome read_plan_json(std::string_view bytes) {
  auto program = read_plan(bytes, "plan.json");
  if (!program) return refused(std::move(program.error()));
  std::string read = write_plan(*program);
  const auto again = read_plan(read, "plan.json");
  if (!again) return {std::move(read), again.error().message()};
  if (write_plan(*again) != read) return {std::move(read), "a plan that was read prints otherwise"};
  read += test::outcome_on_host(std::make_shared<const Program>(std::move(*program)), kMaxElements);
  return read_as(std::move(read));
}

std::vector<std::string> plan_seeds() {
  std::vector<std::string> seeds;
  for (std::string_view text : kModules) seeds.push_back(write_plan(compiled(text)));
  return seeds;
}

Outcome read_manifest_json(std::string_view bytes) {
  auto manifest = read_manifest(with_hash(std::string(bytes)), "manifest.json");
  if (!manifest) return refused(std::move(manifest.error()));
  std::string read = write_manifest(*manifest);
  if (const auto again = read_manifest(read, "manifest.json"); !again)
    return {std::move(read), again.error().message()};
  return read_as(std::move(read));
}

std::vector<std::string> manifest_seeds() {
  Manifest manifest;
  manifest.writer = "0.1.0";
  manifest.kernel_library = content_hash("library");
  manifest.origin = "m";
  manifest.module = "ir/00-input.sir";
  manifest.files = {{"plan.json", content_hash("plan")},
                    {"ir/00-input.sir", content_hash("module")},
                    {"kernels/k.sm_90a.cubin", content_hash("code")}};
  manifest.machine_code["sm_90a"][content_hash("text")] = "kernels/k.sm_90a.cubin";
  manifest.compile.fusion.required = {{"a", "b"}};
  manifest.weights = EmbeddedWeights{{{"w", content_hash("w")}}};
  std::vector<std::string> seeds = {write_manifest(manifest)};
  manifest.weights = WeightFiles{{"/m/model.safetensors"}, {content_hash("w")}, {{"a", "b"}}, "{}"};
  seeds.push_back(write_manifest(manifest));
  manifest.weights = SeededWeights{7};
  seeds.push_back(write_manifest(manifest));
  return seeds;
}

}  // namespace sinter::fuzz
