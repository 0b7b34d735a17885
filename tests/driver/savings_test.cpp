// The bytes that fusions save, over all samples and golden models: what reports add up to.
#include <doctest/doctest.h>

#include <filesystem>
#include <set>

#include "driver/build.h"
#include "driver/compile/plan_summary.h"
#include "driver/compile/predicted.h"
#include "driver/explain/ledger.h"
#include "driver/inspect/inspect.h"
#include "golden/models.h"
#include "passes/fusion/fusion_costs.h"
#include "plan/step_traffic.h"

namespace sinter::savings_test {
namespace {

std::set<std::string> all_models() {
  std::set<std::string> models;
  for (const auto& file : std::filesystem::directory_iterator(SINTER_SAMPLES_DIR))
    if (const std::string kind = file.path().extension(); kind == ".sir" || kind == ".json")
      models.insert(file.path());
  for (const std::string& name : golden_models()) models.insert(SINTER_TESTS_DIR "/golden/" + name);
  return models;
}

struct Plans {
  Compiled fused, unfused;
};

/// Both plans of a model, at sizes that are not the usual ones where `sizes` says so.
Plans plans_of(const std::string& path, Numerics numerics) {
  BuildRequest request;
  request.path = path;
  request.compile.fusion.numerics = numerics;
  request.for_folder = true;
  Result<Built> built = build(request);
  REQUIRE_MESSAGE(built, path);
  return {std::move(built->compiled), std::move(built->unfused)};
}

double bytes_of(const Compiled& plan, size_t entry) {
  return plan_costs(*plan.program, plan.program->entries[entry], plan.sizes).bytes;
}

TEST_CASE("savings add up to the unfused plan's bytes less the fused plan's") {
  size_t entries = 0;
  for (Numerics numerics : {Numerics::strict, Numerics::fast})
    for (const std::string& path : all_models()) {
      CAPTURE(path);
      const Plans plans = plans_of(path, numerics);
      const std::vector<EntryLedger> ledgers = ledger(plans.fused);
      for (size_t i = 0; i < ledgers.size(); ++i) {
        CAPTURE(ledgers[i].name);
        double saved = 0;
        for (const LedgerDecision& d : ledgers[i].decisions) {
          CHECK(d.saved_bytes >= 0);
          saved += d.saved_bytes;
        }
        CHECK(saved == bytes_of(plans.unfused, i) - bytes_of(plans.fused, i));
        ++entries;
      }
    }
  CHECK(entries > 100);
}

TEST_CASE("a step moves the bytes of its group") {
  for (Numerics numerics : {Numerics::strict, Numerics::fast})
    for (const std::string& path : all_models()) {
      CAPTURE(path);
      const Plans plans = plans_of(path, numerics);
      for (const Compiled* plan : {&plans.fused, &plans.unfused}) {
        const StepTraffic traffic(*plan->program, plan->sizes);
        for (size_t i = 0; i < plan->fusions.size(); ++i) {
          const Fusion& fusion = plan->fusions[i];
          const FusionCosts costs(fusion, plan->sizes);
          const EntryPlan& entry = plan->program->entries[i];
          REQUIRE(entry.steps.size() == fusion.grouping.groups.size());
          for (size_t k = 0; k < entry.steps.size(); ++k) {
            const Bytes step = traffic.of(entry, entry.steps[k]);
            const Bytes group = costs.bytes(fusion.grouping.groups[k]);
            CAPTURE(entry.steps[k].values[0]);
            CHECK(step.read == group.read);
            CHECK(step.written == group.written);
          }
        }
      }
    }
}

TEST_CASE("inspect and the summary of compile have the same bytes and predicted times") {
  for (const std::string& path : all_models()) {
    CAPTURE(path);
    const Compiled unfused = plans_of(path, Numerics::strict).unfused;
    const auto model = open_model(path, {});
    REQUIRE(model);
    const auto inspection = inspect(
        *model, {.device = unfused.program->target, .sizes = {}, .prompts = {}, .prefill = {}});
    REQUIRE(inspection);
    REQUIRE(inspection->entries.size() == unfused.program->entries.size());
    for (size_t i = 0; i < inspection->entries.size(); ++i) {
      const EntryCosts& costs = inspection->entries[i];
      CHECK(costs.total.bytes == bytes_of(unfused, i));
      CHECK(costs.total.predicted_s ==
            doctest::Approx(*predicted_seconds(unfused, costs.name, unfused.sizes)));
    }
  }
}

TEST_CASE("two halves save nothing, the whole read twice saves itself once") {
  const Plans plans = plans_of(SINTER_SAMPLES_DIR "/two_halves.sir", Numerics::strict);
  const std::vector<EntryLedger> ledgers = ledger(plans.fused);
  const auto saved = [&](size_t entry) {
    double bytes = 0;
    for (const LedgerDecision& d : ledgers[entry].decisions) bytes += d.saved_bytes;
    return bytes;
  };
  CHECK(saved(0) == 0);
  CHECK(saved(1) == 512 * 256 * 4);
}

}  // namespace
}  // namespace sinter::savings_test
