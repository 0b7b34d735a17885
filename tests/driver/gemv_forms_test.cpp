// Forms of kernels that are chosen by timing: what they change in a plan, and how they are chosen.
#include <doctest/doctest.h>

#include <set>

#include "driver/small_models.h"
#include "driver/tune/form_search.h"
#include "driver/tune/form_tuner.h"
#include "kernels/gemv/schedule.h"

namespace sinter::gemv_forms_test {
namespace {

Module frozen_sample() {
  LoadOptions load;
  load.random_weights = 1;
  return value(freeze(value(load_model(SINTER_SAMPLES_DIR "/llama-3.2-1b.json", load)).module, {}));
}

std::optional<GemvProduct> product_of(const Kernel& kernel, llvm::ArrayRef<Symbol> symbols) {
  for (const Op& op : kernel.group.ops())
    if (order_of(op) == Order::gemv) return gemv_product(kernel.group, op, symbols);
  return std::nullopt;
}

std::map<std::string, GemvProduct> products_of(const Program& program) {
  std::map<std::string, GemvProduct> products;
  for (const Kernel& kernel : program.kernels)
    if (const auto product = product_of(kernel, program.symbols))
      products[product->key()] = *product;
  return products;
}

TEST_CASE("a record's forms change the kernels of their products in both plans, and nothing else") {
  const Module frozen = frozen_sample();
  for (const bool fuse : {true, false}) {
    CAPTURE(fuse);
    CompileOptions options;
    options.fusion.enabled = fuse;
    const Compiled usual = value(compile(frozen, options));
    const auto products = products_of(*usual.program);
    CHECK(products.size() == 5);
    const std::string chosen = "bf16[2048, 8192] splits=1 tokens=8";
    REQUIRE(products.contains(chosen));
    const auto forms = gemv_form_candidates(products.at(chosen), value(find_device("sm_90a")));
    for (const GemvForm& form : forms) {
      CAPTURE(to_string(to_form(form)));
      options.forms = {
          {"gemv", {{chosen, to_form(form)}, {"of no product here", to_form({8, 512, 8})}}}};
      const auto other = value(plan_with_forms(usual, options));
      const Compiled again = value(compile(frozen, options));
      REQUIRE(other->kernels.size() == usual.program->kernels.size());
      REQUIRE(again.program->kernels.size() == usual.program->kernels.size());
      size_t changed = 0;
      for (size_t i = 0; i < other->kernels.size(); ++i) {
        const Kernel &a = usual.program->kernels[i], &b = other->kernels[i];
        CHECK(again.program->kernels[i].source == b.source);
        changed += a.source != b.source;
        const auto product = product_of(a, usual.program->symbols);
        const bool named = product && product->key() == chosen && !(form == forms.front());
        CHECK((a.source != b.source) == named);
        CHECK((a.name != b.name) == named);
        if (named) continue;
        CHECK(a.launch.threads == b.launch.threads);
        CHECK(a.launch.wanted_shared_bytes == b.launch.wanted_shared_bytes);
      }
      CHECK((changed > 0) == !(form == forms.front()));
    }
  }
}

TEST_CASE("fused and unfused plans have the same products") {
  const Module frozen = frozen_sample();
  CompileOptions apart;
  apart.fusion.enabled = false;
  const auto keys = [](const Compiled& compiled) {
    std::set<std::string> set;
    for (const auto& [key, product] : products_of(*compiled.program)) set.insert(key);
    return set;
  };
  CHECK(keys(value(compile(frozen, {}))) == keys(value(compile(frozen, apart))));
}

TEST_CASE("a form that does not fit names the record's entry") {
  CompileOptions options;
  options.forms["gemv"]["bf16[2048, 8192] splits=1 tokens=8"] = to_form({16, 4096, 8});
  const auto compiled = compile(frozen_sample(), options);
  REQUIRE_FALSE(compiled.has_value());
  CHECK(compiled.error().code == ExitCode::bad_input);
  CHECK(compiled.error().message() ==
        "gemv bf16[2048, 8192] splits=1 tokens=8: the recorded form stage_bytes 4096, stages 8, "
        "warps 16 does not fit the product or the shared memory of sm_90a; make a record of these "
        "products, or run without one");
}

TunedForm form(int64_t bytes, int64_t stages) {
  return {{{"bytes", bytes}, {"stages", stages}}, 0};
}
const TunedForm kUsual = form(2048, 4), kShort = form(1024, 8), kLong = form(4096, 4),
                kDeep = form(2048, 6);
const std::vector<FormQuestion> kQuestions = {{"gemv", "a", {kUsual, kShort, kLong}},
                                              {"gemv", "b", {kUsual, kShort, kDeep}}};

/// A device on which a token takes 1 ms times the factors of its forms, which gets slower with
/// every run, and whose figures are off by up to `noise` one way or the other.
struct SlowingDevice {
  std::map<std::pair<std::string, int64_t>, double> factors;  // of a key and bytes + stages
  double noise = 0;
  int runs = 0;

  Result<double> operator()(const TunedForms& forms) {
    ++runs;
    double seconds = 1e-3 * (1 + 1e-4 * runs) * (runs % 3 == 0 ? 1 + noise : 1 - noise);
    for (const auto& [family, own] : forms)
      for (const auto& [key, form] : own)
        if (const auto it =
                factors.find({key, form.numbers.at("bytes") + form.numbers.at("stages")});
            it != factors.end())
          seconds *= it->second;
    return seconds;
  }
};

TEST_CASE("each product gets the fastest form, beside what the others have by then") {
  SlowingDevice device{{{{"a", 1032}, 0.98}, {{"a", 4100}, 0.95}, {{"b", 1032}, 1.02}}, 0.001};
  const FormSearch search = value(search_forms(kQuestions, std::ref(device)));
  REQUIRE(search.decisions.size() == 2);
  CHECK(search.decisions[0].chosen == kLong);
  CHECK(search.decisions[0].usual == kUsual);
  CHECK(search.decisions[0].chosen_s < 0.96 * search.decisions[0].usual_s);
  CHECK(search.decisions[1].chosen == kUsual);
  CHECK(search.decisions[1].chosen_s == search.decisions[1].usual_s);
  CHECK(search.chosen_s < 0.96 * search.usual_s);
  const auto forms = forms_of(search.decisions).at("gemv");
  REQUIRE(forms.size() == 2);  // what keeps its form is decided, too
  CHECK(forms.at("a").numbers == kLong.numbers);
  CHECK(forms.at("a").seconds == search.decisions[0].chosen_s);
  CHECK(forms.at("b").numbers == kUsual.numbers);
}

TEST_CASE("what is faster by less than the margin, or once alone, is not taken") {
  SlowingDevice device{{{{"a", 1032}, 0.997}, {{"b", 2054}, 0.998}}, 0};
  const FormSearch search = value(search_forms(kQuestions, std::ref(device)));
  CHECK(search.decisions[0].chosen == kUsual);
  CHECK(search.decisions[1].chosen == kUsual);
  // Two runs a candidate, and one a product for its figure.
  CHECK(device.runs == 2 * 4 + 2);
  int runs = 0;
  const auto lucky_once = [&](const TunedForms& forms) -> Result<double> {
    return ++runs <= 2 && !forms.empty() ? 0.9e-3 : 1e-3;
  };
  CHECK(value(search_forms({kQuestions[0]}, lucky_once)).decisions[0].chosen == kUsual);
}

TEST_CASE("forms that are no faster together are dropped") {
  bool last = false;
  int both = 0;
  const auto time = [&](const TunedForms& forms) -> Result<double> {
    const size_t named = forms.empty() ? 0 : forms.at("gemv").size();
    both += named == 2;
    last |= both > 3;  // only the last comparison has both that often
    return (last ? 1e-3 + 1e-5 * static_cast<double>(named)
                 : 1e-3 - 1e-5 * static_cast<double>(named));
  };
  const FormSearch search =
      value(search_forms({{{"gemv", "a", {kUsual, kLong}}, {"gemv", "b", {kUsual, kDeep}}}}, time));
  for (const FormDecision& decision : search.decisions) {
    CHECK(decision.chosen == kUsual);
    CHECK(decision.chosen_s == search.usual_s);
  }
  CHECK(search.chosen_s == search.usual_s);
}

TEST_CASE("a failed run ends the search") {
  int runs = 0;
  const auto time = [&](const TunedForms&) -> Result<double> {
    if (++runs == 3) return fail("the device is gone");
    return 1.0;
  };
  const auto search = search_forms(kQuestions, time);
  REQUIRE_FALSE(search.has_value());
  CHECK(search.error().what == "the device is gone");
  CHECK(runs == 3);
}

}  // namespace
}  // namespace sinter::gemv_forms_test
