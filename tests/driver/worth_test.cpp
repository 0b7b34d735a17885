// The worths of refusals: differences of the costs of plans.
#include "driver/explain/worth.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "driver/build.h"
#include "driver/explain/joined_costs.h"
#include "driver/explain/layers.h"
#include "golden/models.h"
#include "runtime/temporary_directory.h"

namespace sinter::worth_test {
namespace {

Compiled plan_of(const std::string& path, const CompileOptions& options = {}) {
  BuildRequest request;
  request.path = path;
  request.compile = options;
  Result<Built> built = build(request);
  REQUIRE_MESSAGE(built, path);
  return std::move(built->compiled);
}

std::vector<std::string> models() {
  std::vector<std::string> paths;
  for (const char* name : {"gpt2", "llama", "gpt_neox_parallel", "qwen3", "bert_post_ln"})
    paths.push_back(std::string(SINTER_TESTS_DIR "/golden/") + name);
  for (const char* name : {"pre_ln_block.sir", "two_experts.sir", "attention_cache.sir"})
    paths.push_back(std::string(SINTER_SAMPLES_DIR "/") + name);
  return paths;
}

/// The seconds of the plan in which the kernels of each pair are one, counted kernel by kernel.
double cost_of_plan(const Fusion& fusion, const JoinedCosts& costs,
                    const std::vector<const LedgerEntry*>& lifted) {
  const std::vector<uint32_t>& group_of = fusion.grouping.group_of;
  std::vector<uint32_t> label(fusion.grouping.groups.size());
  for (uint32_t i = 0; i < label.size(); ++i) label[i] = i;
  for (const LedgerEntry* refusal : lifted) {
    const uint32_t from = label[group_of[refusal->b.index]], to = label[group_of[refusal->a.index]];
    for (uint32_t& one : label)
      if (one == from) one = to;
  }
  double seconds = 0;
  for (uint32_t name = 0; name < label.size(); ++name) {
    std::vector<uint32_t> kernels;
    double apart = 0;
    for (uint32_t i = 0; i < label.size(); ++i)
      if (label[i] == name) {
        kernels.push_back(i);
        apart += costs.seconds(i);
      }
    if (!kernels.empty()) seconds += std::min(apart, costs.seconds(kernels));
  }
  return seconds;
}

TEST_CASE("launches, bytes and times by class add up to those of the entry") {
  for (const std::string& path : models()) {
    CAPTURE(path);
    bool multiplies = false;
    for (const EntryLedger& entry : ledger(plan_of(path), {}, {.advice = false})) {
      size_t launches = 0;
      double bytes = 0, of_steps = 0, seconds = 0, before = INFINITY;
      std::set<StepClass> seen;
      for (const ClassCosts& one : entry.classes()) {
        CHECK(seen.insert(one.step_class).second);
        CHECK(one.seconds <= before);
        before = one.seconds;
        launches += one.launches;
        bytes += one.bytes.total();
        seconds += one.predicted_s;
      }
      for (const LedgerStep& step : entry.steps) {
        CHECK(seen.contains(step.step_class));
        of_steps += step.bytes.total();
      }
      CHECK(launches == entry.steps.size());
      CHECK(bytes == of_steps);
      CHECK(seconds == doctest::Approx(entry.predicted_s()).epsilon(1e-12));
      multiplies = multiplies || seen.contains(StepClass::products);
    }
    CHECK(multiplies);
  }
}

TEST_CASE("sums of worths are differences of plans' costs, no edge counted twice") {
  size_t kinds = 0, paying = 0;
  for (const std::string& path : models()) {
    CAPTURE(path);
    const Compiled plan = plan_of(path);
    for (const EntryLedger& entry : ledger(plan)) {
      CAPTURE(entry.title);
      const Fusion& fusion = plan.fusions[entry.entry];
      const FusionCosts costs(fusion, plan.sizes_of(entry.entry));
      const JoinedCosts joined(fusion, costs);
      const double now = cost_of_plan(fusion, joined, {});
      CHECK(now == doctest::Approx(entry.predicted_s()).epsilon(1e-9));
      const auto less = [&](const std::vector<const LedgerEntry*>& lifted) {
        return now - cost_of_plan(fusion, joined, lifted);
      };
      const auto asked = [&](const LedgerDecision* d) {
        return &fusion.ledger[d - entry.decisions.data()];
      };
      const std::vector<DecisionReason> reasons = decisions_by_reason(entry, false);
      REQUIRE(reasons.size() == entry.reasons.size());
      for (size_t r = 0; r < reasons.size(); ++r) {
        CAPTURE(entry.reasons[r].text);
        std::vector<const LedgerEntry*> of_reason;
        for (const DecisionKind& kind : reasons[r].kinds) {
          std::vector<const LedgerEntry*> lifted;
          for (const LedgerDecision* d : kind.all) lifted.push_back(asked(d));
          of_reason.insert(of_reason.end(), lifted.begin(), lifted.end());
          const auto worth = llvm::find_if(entry.worths, [&](const RefusalWorth& one) {
            return &entry.decisions[one.first] == &kind.first();
          });
          REQUIRE(worth != entry.worths.end());
          CHECK(worth->count == kind.count());
          CHECK(std::abs(worth->seconds - less(lifted)) <= 1e-9 * now);
          ++kinds;
          paying += worth->seconds > 0;
        }
        CHECK(std::abs(entry.reasons[r].seconds - less(of_reason)) <= 1e-9 * now);
      }
    }
  }
  CHECK(kinds > 100);
  CHECK(paying > kinds / 2);
}

TEST_CASE("a constraint is worth what the plan without it saves") {
  const std::string path = SINTER_SAMPLES_DIR "/pre_ln_block.sir";
  CompileOptions options;
  options.fusion.forbidden = {{"res1", "norm2"}};
  const EntryLedger with = ledger(plan_of(path, options))[0], without = ledger(plan_of(path))[0];
  const auto worth = llvm::find_if(with.worths, [&](const RefusalWorth& one) {
    return with.decisions[one.first].reason == "constraint.forbidden";
  });
  REQUIRE(worth != with.worths.end());
  const double saved = with.predicted_s() - without.predicted_s();
  CHECK(saved > 0);
  CHECK(worth->seconds == doctest::Approx(saved));
  CHECK(worth->option_s == doctest::Approx(saved));
  CHECK(option_text(*worth).starts_with("without --forbid"));
}

TEST_CASE("an option saves in the plan what its refusals say") {
  for (const char* model : {"llama", "gpt2", "qwen3"}) {
    CAPTURE(model);
    const std::string path = std::string(SINTER_TESTS_DIR "/golden/") + model;
    CompileOptions fast;
    fast.fusion.numerics = Numerics::fast;
    const EntryLedger strict = ledger(plan_of(path), "prefill")[0],
                      relaxed = ledger(plan_of(path, fast), "prefill")[0];
    double promised = 0;
    std::set<std::pair<uint32_t, uint32_t>> counted;
    for (const RefusalWorth& worth : strict.worths)
      if (worth.option == "--numerics fast" && counted.insert(worth.kernels).second)
        promised += worth.option_s;
    CHECK(promised > 0);
    CHECK(promised == doctest::Approx(strict.predicted_s() - relaxed.predicted_s()));
  }
}

TEST_CASE("an option that lifts a refusal puts the two values in one kernel") {
  CompileOptions own;
  own.recipe.products = Recipe::Products::own;
  const std::string path = SINTER_SAMPLES_DIR "/llama-3.2-1b.json";
  const EntryLedger library = ledger(plan_of(path), "prefill")[0],
                    tiled = ledger(plan_of(path, own), "prefill")[0];
  const auto step_of = [&](const std::string& name) {
    for (const LedgerValue& value : tiled.values)
      if (value.name == name) return value.step;
    return std::optional<size_t>();
  };
  size_t lifted = 0;
  for (const RefusalWorth& worth : library.worths) {
    if (worth.option != "--products own") continue;
    const LedgerDecision& d = library.decisions[worth.first];
    CAPTURE(d.a);
    CAPTURE(d.b);
    CHECK(step_of(d.a) == step_of(d.b));
    ++lifted;
  }
  CHECK(lifted >= 3);
}

TEST_CASE("what matters: no pair of kernels twice, nothing that no kernel can lift") {
  for (const std::string& path : models())
    for (const EntryLedger& entry : ledger(plan_of(path))) {
      std::set<std::pair<uint32_t, uint32_t>> pairs;
      std::pair<bool, double> last(true, INFINITY);
      for (const RefusalWorth* worth : worths_that_matter(entry)) {
        const LedgerDecision& d = entry.decisions[worth->first];
        CHECK(pairs.insert(worth->kernels).second);
        CHECK_FALSE(worth->unasked);
        CHECK_FALSE(is_final(d.reason));
        CHECK(stated_s(*worth) >= kMinShare * entry.seconds());
        const std::pair key(!worth->option.empty(), stated_s(*worth));
        CHECK(key <= last);
        last = key;
      }
      CHECK(pairs.size() <= kMaxShown);
    }
}

TEST_CASE("the rates of a board change times, not decisions") {
  const Compiled plan = plan_of(SINTER_TESTS_DIR "/golden/llama");
  ReportInputs inputs;
  inputs.board = *find_device("sm_90a");
  const std::vector<EntryLedger> usual = ledger(plan), same = ledger(plan, {}, inputs);
  inputs.board->launch_s *= 2;
  inputs.board->memory_bytes_per_s /= 2;
  const std::vector<EntryLedger> slow = ledger(plan, {}, inputs);
  for (size_t i = 0; i < usual.size(); ++i) {
    CHECK(usual[i].predicted_s() == same[i].predicted_s());
    CHECK(slow[i].predicted_s() > usual[i].predicted_s());
    CHECK(slow[i].decisions.size() == usual[i].decisions.size());
    CHECK(slow[i].steps.size() == usual[i].steps.size());
  }
}

TEST_CASE("a comparison needs no worths") {
  const Compiled plan = plan_of(SINTER_TESTS_DIR "/golden/llama");
  ReportInputs inputs;
  inputs.advice = false;
  for (const EntryLedger& entry : ledger(plan, {}, inputs)) {
    CHECK(entry.worths.empty());
    for (const LedgerDecision& d : entry.decisions) CHECK(d.change.empty());
  }
}

TEST_CASE("measured times stand in the place of predicted ones") {
  const Compiled plan = plan_of(SINTER_TESTS_DIR "/golden/llama");
  const EntryLedger predicted = ledger(plan, "decode")[0];
  const TemporaryDirectory place;
  const auto measured = [&](std::string_view text) {
    std::ofstream(place.path() + "/measured.json") << text;
    return read_measured(place.path() + "/measured.json");
  };
  // Every kernel takes twice its prediction.
  std::string rows, steps;
  for (const LedgerStep& step : predicted.steps) {
    const std::string comma = rows.empty() ? "" : ",", name = fmt::format("k{}", rows.size());
    rows += fmt::format("{}{{\"kernel\":\"{}\",\"seconds\":{},\"steps\":1}}", comma, name,
                        2 * step.predicted_s);
    steps += fmt::format("{}{{\"entry\":\"decode\",\"kernel\":\"{}\",\"computes\":[\"{}\"]}}",
                         comma, name, fmt::join(step.values, "\",\""));
  }
  const auto times = measured(fmt::format("{{\"rows\":[{}],\"steps\":[{}]}}", rows, steps));
  REQUIRE(times);
  CHECK(times->check(*plan.program, "file"));
  const EntryLedger own = ledger(plan, "decode", {{}, *times})[0];
  CHECK(own.seconds() == doctest::Approx(2 * predicted.predicted_s()));
  CHECK(own.predicted_s() == predicted.predicted_s());
  for (size_t i = 0; i < own.decisions.size(); ++i)
    CHECK(own.decisions[i].worth_s == doctest::Approx(2 * predicted.decisions[i].worth_s));

  // A benchmark's call is divided among its steps.
  const auto call = measured(R"({"cases":[{"name":"decode","fused":{"median_s":0.5}}]})");
  REQUIRE(call);
  CHECK(ledger(plan, "decode", {{}, *call})[0].seconds() == doctest::Approx(0.5));
  CHECK_FALSE(ledger(plan, "prefill", {{}, *call})[0].measured());

  for (const char* wrong :
       {"{}", "[]", "", R"({"cases":[{"name":"decode"}]})", R"({"rows":[],"steps":[{"entry":1}]})",
        R"({"rows":[{"kernel":"a","seconds":-1,"steps":1}],"steps":[]})"})
    CHECK_FALSE(measured(wrong));
  const auto other = measured(
      R"({"rows":[],"steps":[{"entry":"decode","kernel":"k","computes":["l0.nothing"]}]})");
  REQUIRE(other);
  const Status status = other->check(*plan.program, "file");
  REQUIRE_FALSE(status);
  CHECK(status.error().what.find("l0.nothing") != std::string::npos);
}

}  // namespace
}  // namespace sinter::worth_test
