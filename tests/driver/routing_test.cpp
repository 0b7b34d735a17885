// Stated routings of models with experts: what is stated is what `top_k` chooses.
#include "driver/routing.h"

#include <set>

#include "driver/small_models.h"

namespace sinter::routing_test {
namespace {

constexpr ExpertRouting kStated[] = {ExpertRouting::uniform, ExpertRouting::skewed};

const Experts kQwen{.count = 128, .chosen = 8};

TEST_CASE("uniform: token t chooses the experts from t k + seed on") {
  const std::vector<int64_t> chosen =
      routed_experts({.count = 60, .chosen = 4}, ExpertRouting::uniform, 61);
  REQUIRE(chosen.size() == 2100 * 4);
  for (size_t i = 0; i < chosen.size(); ++i)
    REQUIRE(chosen[i] == static_cast<int64_t>((i + 1) % 60));
}

TEST_CASE("skewed: different experts, in proportion to 1 / (e + 1), by the seed") {
  const std::vector<int64_t> chosen = routed_experts(kQwen, ExpertRouting::skewed, 1);
  CHECK(chosen == routed_experts(kQwen, ExpertRouting::skewed, 1));
  CHECK(chosen != routed_experts(kQwen, ExpertRouting::skewed, 2));
  for (size_t i = 0; i < chosen.size(); i += 8)
    REQUIRE(std::set<int64_t>(chosen.begin() + i, chosen.begin() + i + 8).size() == 8);
  // The first draw of many tokens: shares of 1, 1/2 and 1/4 of the sum of 1 / (e + 1).
  const Experts one{.count = 128, .chosen = 1};
  double whole = 0;
  for (int e = 0; e < 128; ++e) whole += 1.0 / (e + 1);
  std::vector<double> counts(128);
  for (uint64_t seed = 0; seed < 20; ++seed)
    for (int64_t expert : routed_experts(one, ExpertRouting::skewed, seed)) ++counts[expert];
  for (int64_t e : {0, 1, 3, 100}) {
    CAPTURE(e);
    const double expected = 20 * 2048 / (whole * static_cast<double>(e + 1));
    CHECK(std::abs(counts[e] - expected) < 5 * std::sqrt(expected));
  }
}

TEST_CASE("experts that a step reads") {
  const auto read = [](ExpertRouting routing, int64_t tokens) {
    return step_experts(kQwen, routing, 1, tokens).read;
  };
  for (ExpertRouting routing : kStated) CHECK(read(routing, 1) == 8);
  CHECK(read(ExpertRouting::uniform, 5) == 40);
  CHECK(read(ExpertRouting::uniform, 16) == 128);
  CHECK(read(ExpertRouting::uniform, 5000) == 128);
  CHECK(read(ExpertRouting::random, 8) == doctest::Approx(51.6).epsilon(0.001));
  CHECK(read(ExpertRouting::skewed, 8) < read(ExpertRouting::random, 8));
  // The mean over steps that begin at each token of the period.
  const std::vector<int64_t> chosen = routed_experts(kQwen, ExpertRouting::skewed, 1);
  const int64_t period = routing_period(kQwen);
  for (int64_t tokens : {3, 70}) {
    size_t sum = 0;
    for (int64_t begin = 0; begin < period; ++begin) {
      std::set<int64_t> experts;
      for (int64_t i = 0; i < 8 * tokens; ++i)
        experts.insert(chosen[(8 * begin + i) % chosen.size()]);
      sum += experts.size();
    }
    CHECK(read(ExpertRouting::skewed, tokens) ==
          doctest::Approx(static_cast<double>(sum) / static_cast<double>(period)));
  }
  CHECK(step_experts_text(step_experts(kQwen, ExpertRouting::uniform, 1, 1)) ==
        "uniform; 1 token reads 8.0 of a layer's 128 experts");
}

/// The experts of each token, by layer.
std::vector<std::set<int64_t>> sets_of(const RunResult& result) {
  std::vector<std::set<int64_t>> sets;
  for (const auto& [name, tensor] : result.kept)
    for (int64_t n = 0; n < tensor.dims[0]; ++n) {
      const int32_t* row = tensor.data<int32_t>() + n * tensor.dims[1];
      sets.emplace_back(row, row + tensor.dims[1]);
    }
  return sets;
}

TEST_CASE("top_k chooses the stated experts, of a prompt, of several sequences and of a step") {
  for (const char* name : {"qwen3_moe", "granitemoe"})  // softmax first, choice first
    for (ExpertRouting routing : kStated)
      for (uint64_t seed : {1, 6}) {
        CAPTURE(name);
        CAPTURE(to_string(routing));
        OpenedModel model(load_golden(name, DType::f32));
        const Experts experts = *model.spec->experts;
        REQUIRE(set_routing(model, routing, seed).has_value());
        const std::vector<int64_t> stated = routed_experts(experts, routing, seed);
        CallOptions keep;
        for (int64_t layer = 0; layer < model.spec->layers; ++layer)
          if (model.spec->has_experts(layer))
            keep.keep.push_back(fmt::format("l{}.experts", layer));
        REQUIRE(!keep.keep.empty());
        // Row n of a call whose first token has position `first` is token n + first.
        const auto expected = [&](int64_t first, int64_t count) {
          std::vector<std::set<int64_t>> sets;
          for (size_t layer = 0; layer < keep.keep.size(); ++layer)
            for (int64_t n = first; n < first + count; ++n) {
              const auto row = stated.begin() + n * experts.chosen;
              sets.emplace_back(row, row + experts.chosen);
            }
          return sets;
        };
        Decoder decoder = value(Decoder::create(ready(model), 2, 32));
        CHECK(sets_of(value(decoder.prefill({some_tokens(12, 1), some_tokens(5, 2)}, keep))) ==
              expected(0, 17));
        CHECK(sets_of(value(decoder.decode({3, 4}, keep))) == expected(12, 2));
      }
}

TEST_CASE("no kernel more: the addition joins that of the softmax") {
  const OpenedModel plain(load_golden("qwen3_moe", DType::bf16));
  OpenedModel routed = plain;
  REQUIRE(set_routing(routed, ExpertRouting::skewed, 1).has_value());
  const ReadyPlan before = value(make_ready(plain, {}, *cpu())),
                  after = value(make_ready(routed, {}, *cpu()));
  for (const char* entry : {"prefill", "decode"})
    CHECK(after.compiled.program->find_entry(entry)->steps.size() ==
          before.compiled.program->find_entry(entry)->steps.size());
}

TEST_CASE("a routing of a model without experts is refused, and an unknown one") {
  OpenedModel llama(load_golden("llama", DType::f32));
  const Status without = set_routing(llama, ExpertRouting::skewed, 1);
  REQUIRE_FALSE(without.has_value());
  CHECK(without.error().what == "--routing skewed in a model without experts");
  CHECK(without.error().code == ExitCode::usage);
  CHECK(set_routing(llama, ExpertRouting::random, 1).has_value());
  const auto unknown = parse_expert_routing("even");
  REQUIRE_FALSE(unknown.has_value());
  CHECK(unknown.error().what == "no such routing: \"even\"");
}

}  // namespace
}  // namespace sinter::routing_test
