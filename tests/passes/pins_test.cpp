// Kernels and launches of the samples, pinned in pins.txt (SINTER_BLESS=1 rewrites it), and what
// must hold of them whatever the numbers are.
#include <doctest/doctest.h>

#include "driver/compile/compile.h"
#include "frontends/load_model.h"
#include "frontends/model/build_model.h"
#include "support/check_text.h"
#include "support/result.h"

namespace sinter::test::pins_test {
namespace {

constexpr const char* kSamples[] = {"gpt2-124m.json", "llama-2-7b.json", "llama-3.2-1b.json",
                                    "pythia-2.8b.json", "small-llama"};

Model load_sample(const std::string& name) {
  return value(load_model(fmt::format("{}/{}", SINTER_SAMPLES_DIR, name)));
}

Module model_of(const ModelSpec& spec) {
  return value(build_model(spec, {WeightMap::identity(), {}}, nullptr, spec.name));
}

Compiled compile_entry(const Module& module, const std::string& entry, bool fuse) {
  CompileOptions options;
  options.fusion.enabled = fuse;
  return value(compile(value(freeze(module, {entry})), options));
}

struct Counts {
  size_t launches = 0, calls = 0, kernels = 0;
};

Counts count(const Compiled& compiled) {
  Counts counts{0, 0, compiled.program->kernels.size()};
  for (const EntryPlan& entry : compiled.program->entries)
    for (const Step& step : entry.steps)
      ++(step_facts(*compiled.program, step).kernel ? counts.launches : counts.calls);
  return counts;
}

TEST_CASE("kernels and launches of the samples") {
  std::string text = "// sample, entry, plan: launches of kernels, matrix products, kernels\n";
  for (const char* name : kSamples) {
    const Model model = load_sample(name);
    for (const char* entry : {"prefill", "decode", "sample"})
      for (bool fuse : {true, false}) {
        const Counts counts = count(compile_entry(model.module, entry, fuse));
        text +=
            fmt::format("{:16} {:8} {:8} {:5} {:5} {:5}\n", name, entry, fuse ? "fused" : "unfused",
                        counts.launches, counts.calls, counts.kernels);
      }
  }
  check_text_file(text, "passes/pins.txt", "passes_pins");
}

TEST_CASE("the number of kernels does not grow with depth") {
  for (const char* name : {"gpt2-124m.json", "llama-2-7b.json", "pythia-2.8b.json"}) {
    CAPTURE(name);
    ModelSpec spec = *load_sample(name).spec;
    for (bool fuse : {true, false}) {
      spec.layers = 3;  // the first, the last and one between
      const Counts shallow = count(compile_entry(model_of(spec), "decode", fuse));
      spec.layers = 32;
      const Counts deep = count(compile_entry(model_of(spec), "decode", fuse));
      CHECK(deep.kernels == shallow.kernels);
      // Every layer adds the same.
      CHECK((deep.launches - shallow.launches) % 29 == 0);
      CHECK((deep.calls - shallow.calls) % 29 == 0);
    }
  }
}

TEST_CASE("a Llama layer's decode plan has these five kernels and no call of a library") {
  const Model model = load_sample("llama-3.2-1b.json");
  const Compiled compiled = compile_entry(model.module, "decode", true);
  std::vector<std::string> kernels;
  for (const Step& step : compiled.program->entries[0].steps) {
    const auto of_layer = [](const std::string& value) { return value.starts_with("l5."); };
    if (!llvm::any_of(step.values, of_layer)) continue;
    CHECK(step_facts(*compiled.program, step).kind == "kernel");
    kernels.push_back(fmt::format("{}", fmt::join(step.values, " ")));
  }
  const std::vector<std::string> wanted = {
      // norm before a product, rotary and cache after it
      "l5.norm1 l5.qkv l5.q_rot l5.k_rot l5.k_append l5.v_append",
      "l5.attn",                                         // parts of the keys, joined
      "l5.attn_out l5.res1",                             // residual after a product
      "l5.norm2 l5.mlp.gate_up l5.mlp.silu l5.mlp.act",  // norm, both halves, SiLU and product
      "l5.mlp.down l5.res2",                             // residual
  };
  CHECK(fmt::format("{}", fmt::join(kernels, "\n")) == fmt::format("{}", fmt::join(wanted, "\n")));
}

}  // namespace
}  // namespace sinter::test::pins_test
