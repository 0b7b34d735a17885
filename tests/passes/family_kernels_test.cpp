// The kernels without a matrix product of one layer of every family, pinned in family_kernels.txt
// (SINTER_BLESS=1 rewrites it): what shares a kernel, by the names of the values.
#include <doctest/doctest.h>

#include <array>

#include "driver/compile/compile.h"
#include "frontends/load_model.h"
#include "support/check_text.h"
#include "support/result.h"

namespace sinter::test::family_kernels_test {
namespace {

constexpr const char* kModels[] = {"bert_post_ln",
                                   "falcon_multi_query",
                                   "falcon_new_two_norms",
                                   "gemma2",
                                   "gemma3_text",
                                   "granite",
                                   "granitemoe",
                                   "mistral_window",
                                   "mixtral",
                                   "modernbert",
                                   "mpnet",
                                   "olmo2",
                                   "opt",
                                   "opt_post_norm_projected",
                                   "phi",
                                   "phi3",
                                   "phi_qk_norm_grouped",
                                   "qwen2",
                                   "qwen2_moe",
                                   "qwen3"};

Model load(const std::string& name) {
  return value(load_model(fmt::format("{}/golden/{}", SINTER_TESTS_DIR, name)));
}

std::shared_ptr<const Program> plan_of(const Model& model, const std::string& entry) {
  return value(compile(value(freeze(model.module, {entry})), {})).program;
}

std::string kernels_of(const std::string& name) {
  const Model model = load(name);
  const std::string entry = model.spec->encoder ? "encode" : "decode";
  std::string text = fmt::format("{}, {}\n", name, entry);
  const auto program = plan_of(model, entry);
  for (const Step& step : program->entries[0].steps) {
    const auto shown = [](const std::string& value) {
      return !value.starts_with("l") || value.starts_with("l1.") || value.starts_with("logits");
    };
    if (step_facts(*program, step).kernel && llvm::any_of(step.values, shown))
      text += fmt::format("  {}\n", fmt::join(step.values, " "));
  }
  return text;
}

TEST_CASE("what shares a kernel in each family") {
  std::string text;
  for (const char* name : kModels) text += kernels_of(name);
  check_text_file(text, "passes/family_kernels.txt", "passes_families");
}

TEST_CASE("norms of queries and keys, rotation and the cache's new rows are one kernel") {
  for (const char* name : {"gemma3_text", "olmo2", "phi_qk_norm_grouped", "qwen3"})
    for (const char* entry : {"prefill", "decode"}) {
      CAPTURE(std::string(name));
      CAPTURE(std::string(entry));
      const std::vector<Step> steps = plan_of(load(name), entry)->entries[0].steps;
      const auto share = [&](std::initializer_list<const char*> values) {
        return llvm::any_of(steps, [&](const Step& step) {
          return llvm::all_of(
              values, [&](const char* value) { return llvm::is_contained(step.values, value); });
        });
      };
      CHECK(share({"l1.q_norm", "l1.k_norm", "l1.q_rot", "l1.k_rot", "l1.k_append"}));
      // Values need nothing but the product, after which they stand where it is a kernel.
      const bool beside_keys = share({"l1.v_append", "l1.k_append"});
      CHECK(beside_keys == (std::string_view(entry) == "prefill"));
    }
}

}  // namespace
}  // namespace sinter::test::family_kernels_test
