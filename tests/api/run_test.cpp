// Plans asked, saved, loaded and run through the interface, and what it says of bad calls.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "sinter.h"

using namespace sinter;

namespace {

constexpr const char* kModule = R"(
module @block {
  symbol N in [1, 64]
  weight %table : f32[10, 8] = file {tensor = "table"}
  weight %w : f32[8] = file {tensor = "w"}
  entry @main(%ids: i32[N], %r: f32[N, 8]) -> (%y, %n) {
    %e = embedding %table, %ids : f32[N, 8]
    %s = add %e, %r : f32[N, 8]
    %n = rms_norm %s, %w {eps = 1e-5} : f32[N, 8]
    %m = reduce_sum %n {axes = [0]} : f32[1, 8]
    %y = add %n, %m : f32[N, 8]
  }
})";

template <typename T>
T take(Result<T> result) {
  if (!result) FAIL(result.error().message);
  return std::move(*result);
}
void ok(const Status& done) {
  if (!done) FAIL(done.error().message);
}

struct Loaded {
  Model model = take(Model::parse(kModule));
  Plan plan = take(Plan::compile(model));
  Device device = take(Device::open("cpu"));
  std::vector<float> table, w;
  Weights weights;
  Loaded() : table(80), w(8, 1.5f) {
    for (size_t i = 0; i < table.size(); ++i) table[i] = std::sin(static_cast<float>(i));
    weights.add("table", {DType::f32, {10, 8}, table.data()});
    weights.add("w", {DType::f32, {8}, w.data()});
  }
  Executable executable(const Plan& from) const {
    return take(Executable::load(from, device, weights));
  }
};

struct Outcome {
  std::vector<float> y, n;
};

/// A call of three rows; `ids` of a table of ten.
Result<Outcome> call(const Executable& executable, std::vector<std::int32_t> ids) {
  Session session = take(Session::create(executable));
  Call call = take(Call::create(session, "main"));
  const auto rows = static_cast<std::int64_t>(ids.size());
  Outcome outcome{std::vector<float>(ids.size() * 8), std::vector<float>(ids.size() * 8)};
  std::vector<float> r(ids.size() * 8, 0.25f);
  ok(call.input("ids", {DType::i32, {rows}, ids.data()}));
  ok(call.input("r", {DType::f32, {rows, 8}, r.data()}));
  CHECK(take(call.output_dims("y")) == std::vector<std::int64_t>{rows, 8});
  ok(call.output("y", {DType::f32, {rows, 8}, outcome.y.data()}));
  ok(call.output("n", {DType::f32, {rows, 8}, outcome.n.data()}));
  if (Status done = call.run(); !done) return done.error();
  return outcome;
}

std::string folder(const char* name) {
  const auto path = std::filesystem::temp_directory_path() / ("sinter-api-" + std::string(name));
  std::filesystem::remove_all(path);
  return path.string();
}

}  // namespace

TEST_CASE("a plan says its entries, steps, verdicts and costs") {
  const Loaded loaded;
  const Plan& plan = loaded.plan;
  REQUIRE(plan.entries() == std::vector<std::string>{"main"});
  REQUIRE(plan.inputs().size() == 2);
  CHECK(plan.inputs()[0].name == "ids");
  CHECK(plan.inputs()[1].type == "f32[N, 8]");
  REQUIRE(plan.outputs().size() == 2);
  CHECK(plan.outputs()[1].name == "n");
  CHECK(plan.target() == "sm_90a");
  const auto steps = plan.steps();
  const Costs costs = take(plan.costs(0, {{"N", 16}}));
  CHECK(costs.launches == static_cast<std::int64_t>(steps.size()));
  CHECK(costs.products == 0);
  CHECK(costs.moved_bytes > 16 * 8 * 4);
  CHECK(costs.predicted_seconds > 0);
  CHECK(plan.states().empty());
  const auto kernels = plan.kernels();
  REQUIRE(steps[0].kernel >= 0);
  CHECK(kernels[static_cast<size_t>(steps[0].kernel)].source.find("__global__") !=
        std::string::npos);

  const Decision fused = take(plan.why("main", "s", "n"));
  CHECK(fused.fused);
  CHECK(fused.reason == "fused");
  CHECK_FALSE(fused.savings.empty());
  CHECK(fused.change.empty());
  CHECK(fused.launches == std::array<std::int64_t, 2>{0, 0});
  const Decision refused = take(plan.why("main", "n", "m"));
  CHECK_FALSE(refused.fused);
  CHECK(refused.savings.empty());
  CHECK_FALSE(refused.change.empty());
  CHECK(refused.launches[0] != refused.launches[1]);
  CHECK(refused.path.empty());
  CHECK(refused.path_launches.empty());
  CHECK(refused.first_refusal == nullptr);
  const Decision parted = take(plan.why("main", "s", "y"));
  CHECK(parted.path_launches.size() == parted.path.size());
  REQUIRE(parted.first_refusal != nullptr);
  CHECK(parted.first_refusal->b == "m");
  const auto decisions = take(plan.decisions());
  CHECK(std::any_of(decisions.begin(), decisions.end(), [](const Decision& d) { return d.fused; }));
  for (const char* what : {"plan.json", "module", "ledger.json", "ledger.txt", "ledger.html"})
    CHECK(take(plan.text(what)).size() > 100);
  CHECK(plan.text("poem").error().code == Code::usage);
  CHECK(plan.why("main", "s", "nothing").error().message.find("nothing") != std::string::npos);
  CHECK(plan.why("side", "s", "n").error().message.find("side") != std::string::npos);
  CHECK(plan.costs(0, {{"N", 65}}).error().message.find("65") != std::string::npos);
  CHECK(plan.costs(7).error().message.find("7") != std::string::npos);
}

TEST_CASE("a plan that was saved and loaded computes the same bits") {
  const Loaded loaded;
  const std::vector<std::int32_t> ids = {3, 0, 9};
  const Outcome before = take(call(loaded.executable(loaded.plan), ids));
  for (size_t i = 0; i < before.n.size(); ++i) CHECK(std::isfinite(before.n[i]));
  const std::string path = folder("saved");
  ok(loaded.plan.save(path));
  const Plan opened = take(Plan::open(path));
  const Outcome after = take(call(loaded.executable(opened), ids));
  CHECK(after.y == before.y);
  CHECK(after.n == before.n);
  CHECK(take(opened.why("main", "s", "n")).fused);
  CHECK(take(opened.costs()).predicted_seconds == -1);
  CHECK(take(opened.text("plan.json")) == take(loaded.plan.text("plan.json")));
  CHECK(opened.save(folder("again")).error().code == Code::usage);
  std::ofstream(path + "/plan.json", std::ios::app) << " ";
  CHECK(Plan::open(path).error().code == Code::bad_input);
  std::filesystem::remove_all(path);
}

TEST_CASE("integers are exact from the builder and the text to the results of a plan") {
  constexpr std::int64_t kOdd = (std::int64_t{1} << 53) + 1;
  const std::vector<std::int64_t> values = {kOdd, -kOdd, (std::int64_t{1} << 62) + 1, INT64_MAX,
                                            INT64_MIN};
  ModuleBuilder module("exact");
  Graph graph = module.entry("main");
  const Value x = graph.input("x", DType::i64, {5});
  graph.output(graph.add(x, graph.constant(kOdd, DType::i64), "odd"));
  graph.output(graph.add(x, graph.literal(values, DType::i64, {5}), "all"));
  const char* text = "dims = [5], dtype = i64, value = -9223372036854775807";
  graph.output(graph.add(x, graph.op("constant", {}, text), "text"));
  graph.output(graph.constant(2, DType::f32, {5}, "two"));
  graph.output(graph.constant(0.5, DType::f32, {5}, "half"));
  const Model model = take(module.build());
  const Plan plan = take(Plan::compile(model));
  const std::string path = folder("exact");
  ok(plan.save(path));
  const Plan opened = take(Plan::open(path));
  std::filesystem::remove_all(path);
  const Device device = take(Device::open("cpu"));
  for (const Plan* from : {&plan, &opened}) {
    const Executable executable = take(Executable::load(*from, device, Weights()));
    Session session = take(Session::create(executable));
    Call call = take(Call::create(session, "main"));
    const std::vector<std::int64_t> zeros(5);
    std::vector<std::int64_t> odd(5), all(5), least(5);
    std::vector<float> two(5), half(5);
    ok(call.input("x", {DType::i64, {5}, zeros.data()}));
    ok(call.output("odd", {DType::i64, {5}, odd.data()}));
    ok(call.output("all", {DType::i64, {5}, all.data()}));
    ok(call.output("text", {DType::i64, {5}, least.data()}));
    ok(call.output("two", {DType::f32, {5}, two.data()}));
    ok(call.output("half", {DType::f32, {5}, half.data()}));
    ok(call.run());
    CHECK(odd == std::vector<std::int64_t>(5, kOdd));
    CHECK(all == values);
    CHECK(least == std::vector<std::int64_t>(5, -INT64_MAX));
    CHECK(two == std::vector<float>(5, 2.0f));
    CHECK(half == std::vector<float>(5, 0.5f));
  }
}

TEST_CASE("unfused plans and fused plans give the same bits") {
  const Loaded loaded;
  CompileOptions separate;
  separate.fuse = false;
  const Plan unfused = take(Plan::compile(loaded.model, separate));
  CHECK(unfused.steps().size() > loaded.plan.steps().size());
  const std::vector<std::int32_t> ids = {1, 1, 4, 7};
  CHECK(take(call(loaded.executable(unfused), ids)).y ==
        take(call(loaded.executable(loaded.plan), ids)).y);
  VerifyOptions options;
  options.symbols = {{"N", 12}};
  const Report report = take(verify(loaded.model, loaded.device, loaded.weights, options));
  CHECK(report.passed);
  CHECK(report.difference.empty());
  CHECK(report.elements > 0);
  CHECK(report.fused_launches < report.unfused_launches);
  CHECK(report.fused_error >= 0);
  CHECK(report.fused_error < 1e-5);
}

TEST_CASE("strides are followed, in inputs and in outputs") {
  const Loaded loaded;
  const Executable executable = loaded.executable(loaded.plan);
  Session session = take(Session::create(executable));
  Call strided = take(Call::create(session, "main"));
  // Every second id, rows of r repeated by a stride of 0, y column by column.
  std::vector<std::int32_t> ids = {2, -1, 5, -1, 8, -1};
  std::vector<float> r(8, 0.25f), y(24), n(24);
  ok(strided.input("ids", {DType::i32, {3}, ids.data(), {2}}));
  ok(strided.input("r", {DType::f32, {3, 8}, r.data(), {0, 1}}));
  ok(strided.output("y", {DType::f32, {3, 8}, y.data(), {1, 3}}));
  ok(strided.output("n", {DType::f32, {3, 8}, n.data()}));
  ok(strided.run());
  const Outcome dense = take(call(executable, {2, 5, 8}));
  CHECK(n == dense.n);
  for (size_t row = 0; row < 3; ++row)
    for (size_t i = 0; i < 8; ++i) CHECK(y[i * 3 + row] == dense.y[row * 8 + i]);
}

TEST_CASE("a call moves to other memory of the same shapes") {
  const Loaded loaded;
  const Executable executable = loaded.executable(loaded.plan);
  Session session = take(Session::create(executable));
  Call moved = take(Call::create(session, "main"));
  std::vector<std::int32_t> ids[] = {{3, 0, 9}, {2, 5, 8}};
  std::vector<float> r(24, 0.25f), y[] = {std::vector<float>(24), std::vector<float>(24)}, n(24);
  ok(moved.input("ids", {DType::i32, {3}, ids[0].data()}));
  CHECK(moved.addresses({ids[1].data(), r.data()}, {y[1].data(), n.data()}).error().where ==
        "entry main, input r");
  ok(moved.input("r", {DType::f32, {3, 8}, r.data()}));
  ok(moved.output("y", {DType::f32, {3, 8}, y[0].data()}));
  ok(moved.output("n", {DType::f32, {3, 8}, n.data()}));
  ok(moved.run());
  CHECK(y[0] == take(call(executable, ids[0])).y);
  ok(moved.addresses({ids[1].data(), r.data()}, {y[1].data(), n.data()}));
  ok(moved.run());
  CHECK(y[1] == take(call(executable, ids[1])).y);
  CHECK(y[0] == take(call(executable, ids[0])).y);
  CHECK(moved.addresses({r.data()}, {n.data()}).error().code == Code::usage);
  CHECK(moved.addresses({ids[1].data(), nullptr}, {y[1].data(), n.data()}).error().where ==
        "entry main, input r");
}

TEST_CASE("what does not fit is an error that says both") {
  const Loaded loaded;
  const Executable executable = loaded.executable(loaded.plan);
  CHECK(call(executable, {3, 10}).error().message.find("10") != std::string::npos);
  Session session = take(Session::create(executable));
  Call bad = take(Call::create(session, "main"));
  float memory[64] = {};
  CHECK(bad.input("ids", {DType::f32, {3}, memory}).error().message.find("ids") !=
        std::string::npos);
  CHECK(bad.input("idz", {DType::i32, {3}, memory}).error().message.find("idz") !=
        std::string::npos);
  CHECK_FALSE(bad.run());
  CHECK(Call::create(session, "side").error().message.find("side") != std::string::npos);
  CHECK(bad.symbol("N", 100).has_value() == false);
  CHECK_FALSE(Session::create(executable, {{"N", 3}}));
  CHECK_FALSE(Session::create(executable, {}, memory));
  CHECK(Device::open("tpu").error().code == Code::usage);
  CHECK(Model::open("/no/such/model").error().code == Code::bad_input);
  CHECK(Model::parse("module @m {").error().where.find("module:1") != std::string::npos);
  // Weights that are missing, of another type, of no use.
  CHECK(Executable::load(loaded.plan, loaded.device).error().message.find("table") !=
        std::string::npos);
  Weights other;
  other.add("table", {DType::f32, {10, 9}, memory});
  other.add("w", {DType::f32, {8}, memory});
  CHECK(Executable::load(loaded.plan, loaded.device, other).error().message.find("[10, 9]") !=
        std::string::npos);
  Weights twice;
  twice.add("w", {DType::f32, {8}, memory});
  twice.add("w", {DType::f32, {8}, memory});
  CHECK(Executable::load(loaded.plan, loaded.device, twice).error().message.find("w") !=
        std::string::npos);
}

TEST_CASE("options that nobody reads are refused by name") {
  sinter_options* options = nullptr;
  REQUIRE(sinter_options_create(&options) == nullptr);
  REQUIRE(sinter_options_set(options, "fuze", "true") == nullptr);
  const Loaded loaded;
  sinter_plan* plan = nullptr;
  sinter_error* error = sinter_compile(loaded.model.get(), options, &plan);
  REQUIRE(error != nullptr);
  CHECK(plan == nullptr);
  CHECK(sinter_error_code(error) == SINTER_CODE_USAGE);
  CHECK(std::string(sinter_error_message(error)).find("fuze") != std::string::npos);
  CHECK(std::string(sinter_error_hint(error)).find("fuse") != std::string::npos);
  sinter_error_free(error);
  sinter_options_free(options);
  CompileOptions compile;
  compile.target = "sm_1";
  CHECK(Plan::compile(loaded.model, compile).error().message.find("sm_1") != std::string::npos);
  compile = {};
  compile.required = {{"n", "m"}};
  CHECK(Plan::compile(loaded.model, compile).error().code == Code::check_failed);
  compile.required = {};
  compile.forbidden = {{"s", "n"}};
  CHECK_FALSE(take(take(Plan::compile(loaded.model, compile)).why("main", "s", "n")).fused);
}

TEST_CASE("null parameters are errors and do not end the process") {
  sinter_model* model = nullptr;
  sinter_error* errors[] = {sinter_model_open(nullptr, nullptr, &model),
                            sinter_compile(nullptr, nullptr, nullptr),
                            sinter_device_open("cpu", nullptr),
                            sinter_graph_output(nullptr, 0),
                            sinter_call_run(nullptr),
                            sinter_kernel_register(nullptr)};
  for (sinter_error* error : errors) {
    REQUIRE(error != nullptr);
    CHECK(sinter_error_code(error) == SINTER_CODE_USAGE);
    sinter_error_free(error);
  }
  sinter_model_free(nullptr);
  sinter_error_free(nullptr);
  sinter_free(nullptr);
}

TEST_CASE("a progress function cancels what it watches, and may throw") {
  const Loaded loaded;
  CompileOptions compile;
  int asked = 0;
  compile.progress = [&](std::string_view, std::int64_t, std::int64_t) { return ++asked < 2; };
  CHECK(Plan::compile(loaded.model, compile).error().code == Code::cancelled);
  CHECK(asked == 2);
  CHECK(Executable::load(loaded.plan, loaded.device, loaded.weights,
                         [](std::string_view stage, std::int64_t, std::int64_t) {
                           CHECK(stage == "weights");
                           return false;
                         })
            .error()
            .code == Code::cancelled);
  compile.progress = [](std::string_view, std::int64_t, std::int64_t) -> bool { throw 1; };
  CHECK(Plan::compile(loaded.model, compile).error().message.find("threw") != std::string::npos);
}

TEST_CASE("sessions on several threads keep states of their own") {
  const Model model = take(Model::parse(R"(
module @m {
  state %cache : f32[8, 4]
  entry @main(%x: f32[1, 4], %slot: i32[1]) -> (%sum) {
    %next = kv_append %cache, %x, %slot : f32[8, 4]
    %sum = reduce_sum %next {axes = [0]} : f32[1, 4]
  }
})"));
  const Plan plan = take(Plan::compile(model));
  REQUIRE(plan.states().size() == 1);
  CHECK(plan.states()[0].name == "cache");
  CHECK(plan.states()[0].type == "f32[8, 4]");
  const Executable executable = take(Executable::load(plan, take(Device::open("cpu"))));
  float sums[4] = {};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      auto session = Session::create(executable);
      auto call = Call::create(*session, "main");
      float x[4], sum[4];
      std::int32_t slot = 0;
      if (!call->input("x", {DType::f32, {1, 4}, x}) ||
          !call->input("slot", {DType::i32, {1}, &slot}) ||
          !call->output("sum", {DType::f32, {1, 4}, sum}))
        return;
      for (; slot < 8; ++slot) {
        for (float& element : x) element = static_cast<float>(t + 1);
        if (!call->run()) return;
      }
      float state[32];
      if (!session->read_state("cache", {DType::f32, {8, 4}, state}) || state[31] != x[3]) return;
      sums[t] = sum[0];
    });
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < 4; ++t) CHECK(sums[t] == 8.0f * static_cast<float>(t + 1));
}
