// Row numbers that a module computes: the fused and the unfused plan leave the same memory and say
// the same of one that names no row, on the host and on a device.
#include <doctest/doctest.h>

#include <array>

#include "driver/compile/compile.h"
#include "driver/host_kernels.h"
#include "ir/row_numbers.h"
#include "ir/text.h"
#include "plan/checker.h"
#include "plan/plan_file.h"
#include "runtime/host/executable.h"
#include "runtime/random_inputs.h"
#include "support/result.h"

namespace sinter::row_checks_test {
namespace {

constexpr int64_t kTokens = 3, kRows = 24;

/// An entry of `ops`, with inputs %n and %x, a table of 10 rows, and caches of R.
Module module_of(const std::string& ops, const std::string& results) {
  const std::string text = R"(
module @computed {
  symbol N in [1, 8]
  symbol M in [9, 200]
  symbol R in [8, 64] step 8
  weight %table : f32[10, 16] = { %i = iota {axis = 0} : i32[10, 16]
    %f = cast %i {dtype = f32} : f32[10, 16]
    return %f
  }
  weight %large : f32[12, 2] = constant {value = 2}
  weight %numbers : i32[4] = literal {values = [3, 7, 2, 11]}
  state %keys : f32[R, 16]
  state %values : f32[R, 16]
  state %kept : i32[R, 1]
  entry @main(%n: i32[N], %m: i32[M], %x: f32[N, 16], %q: f32[M, 16]) -> ()" +
                           results + ") {\n" + ops + "\n  }\n}\n";
  return value(parse_module(text, "computed.sir"));
}

Compiled compiled(const Module& module, bool fuse) {
  CompileOptions options;
  options.fusion.enabled = fuse;
  return value(compile(value(freeze(module, {})), options));
}

const FakeDriver& driver() {
  static const FakeDriver fake(SINTER_FAKE_DRIVER);
  return fake;
}

/// The message of a call. Both plans, on both devices, must agree in it, in outputs and in states.
std::string said_of(const Module& module, const std::vector<int32_t>& n, int32_t m = 0) {
  const std::vector<int64_t> symbols = {kTokens, 12, kRows};
  std::vector<HostTensor> inputs = {i32_tensor(n), i32_tensor(std::vector<int32_t>(12, m)),
                                    value(random_tensor(DType::f32, {kTokens, 16}, 1)),
                                    value(random_tensor(DType::f32, {12, 16}, 2))};
  driver();
  CallOptions poison;
  poison.poison_freed = true;
  std::optional<std::string> said;
  std::vector<HostTensor> outputs, states;
  for (bool fuse : {true, false})
    for (bool on_device : {false, true}) {
      CAPTURE(fuse);
      CAPTURE(on_device);
      const Compiled plan = compiled(module, fuse);
      const std::shared_ptr<const Executable> model =
          on_device ? value(load_on_fake(plan.program, nullptr))
                    : std::make_shared<const HostExecutable>(
                          value(HostExecutable::load(plan.program, nullptr)));
      const auto session = value(model->new_session(symbols));
      const EntryPlan& entry = plan.program->entries[0];
      std::vector<const HostTensor*> given;
      for (uint32_t id : entry.inputs)
        for (size_t i = 0; i < inputs.size(); ++i)
          if (entry.buffers[id].value == std::vector<std::string>{"n", "m", "x", "q"}[i])
            given.push_back(&inputs[i]);
      const auto result = session->run("main", symbols, given, poison);
      const std::string message = result ? "fine" : result.error().message();
      if (!result) CHECK(result.error().code == ExitCode::bad_input);
      const bool is_first = !said;
      if (is_first) said = message;
      CHECK(message == *said);
      for (size_t i = 0; result && i < result->outputs.size(); ++i) {
        if (is_first) outputs.push_back(result->outputs[i]);
        CHECK(result->outputs[i].bytes == outputs[i].bytes);
      }
      for (size_t i = 0; i < plan.program->states.size(); ++i) {
        if (is_first) states.push_back(value(session->state(i)));
        CHECK(value(session->state(i)).bytes == states[i].bytes);
      }
    }
  return *said;
}

std::string outside(std::string_view op, std::string_view value, int64_t at, int64_t number,
                    int64_t rows) {
  return fmt::format(
      "entry main, %{}: %{}[{}] is {}{}, outside the 0 .. {} that it points into; the module "
      "computes it: check the module and the inputs",
      op, value, at, number,
      number == INT32_MAX   ? " or more"
      : number == INT32_MIN ? " or less"
                            : "",
      rows - 1);
}

/// Every way to say the numbers of rows that %i is made of.
struct Spelling {
  const char* ops;      // define %i from %n
  const char* checked;  // the value that is looked at
};
constexpr Spelling kSpellings[] = {
    {"%i = add %n, %n : i32[N]", "i"},
    {"%z = sub %n, %n : i32[N]\n%i = maximum %n, %z : i32[N]", "i"},
    {"%i = copy %n : i32[N]", "i"},
    {"%c = cumulative_sum %n {axis = 0} : i32[N]\n%i = sub %c, %n : i32[N]", "i"},
    {"%i = cumulative_sum %n {axis = 0} : i32[N]", "i"},
    {"%d = add %n, %n : i32[N]\n%t = reshape %d {dims = [N, 1]} : i32[N, 1]\n"
     "%i = reshape %t {dims = [N]} : i32[N]",
     "d"},
    {"%d = add %n, %n : i32[N]\n%flat = reshape %d {dims = [1, N]} : i32[1, N]\n"
     "%two = concat %flat, %flat {axis = 0} : i32[2, N]\n"
     "%row = slice %two {axis = 0, begin = 1, size = 1} : i32[1, N]\n"
     "%i = reshape %row {dims = [N]} : i32[N]",
     "i"},
    {"%one = constant {value = 1} : i32[]\n%less = less %n, %one : i1[N]\n"
     "%i = where %less, %one, %n : i32[N]",
     "i"},
};

TEST_CASE("a constant names the row that its value is rounded to") {
  for (const auto& [number, is_row] : {std::pair("9.4", true), {"9.6", false}}) {
    CAPTURE(number);
    const Graph graph = value(parse_graph(
        fmt::format("graph(%t: f32[10, 16]) -> (%y) {{\n  %i = constant {{value = {}}} : i32[3]\n"
                    "  %y = embedding %t, %i : f32[3, 16]\n}}\n",
                    number),
        "graph", {}));
    CHECK(are_known(graph, graph.find("i"), Dim(10), false, {}) == is_row);
  }
}

constexpr const char* kRuns = R"(module @runs {
  symbol N in [0, 64]
  weight %w : bf16[3, 8, 16] = constant {value = 1}
  entry @main(%x: bf16[N, 16], %lengths: i32[3]) -> (%y) {
    %ends = cumulative_sum %lengths {axis = 0} : i32[3]
    %y = grouped_linear %x, %w, %ends : bf16[N, 8]
  }
}
)";

TEST_CASE("ends of runs that a module computes are looked at after the call") {
  const Module module = value(parse_module(kRuns, "runs.sir"));
  for (const bool fuse : {true, false}) {
    const Compiled plan = compiled(module, fuse);
    const auto model =
        std::make_shared<const HostExecutable>(value(HostExecutable::load(plan.program, nullptr)));
    const auto said = [&](const std::vector<int32_t>& lengths) {
      const std::vector<int64_t> symbols = {5};
      const HostTensor x = value(random_tensor(DType::bf16, {5, 16}, 1)), l = i32_tensor(lengths);
      const auto result =
          value(model->new_session(symbols))->run("main", symbols, std::vector{&x, &l}, {});
      return result ? "fine" : result.error().message();
    };
    CHECK(said({0, 2, 3}) == "fine");
    CHECK(said({1, 0, 1}) == "fine");
    const std::string tail =
        "; ends of runs of 5 rows ascend from 0 to 5; the module computes it: check the module and "
        "the inputs";
    CHECK(said({4, -1, 2}) == "entry main, %y: %ends[1] is 3" + tail);
    CHECK(said({4, 0, 2}) == "entry main, %y: %ends[2] is 6" + tail);
    CHECK(said({-1, 2, 2}) == "entry main, %y: %ends[0] is -1" + tail);
  }
}

TEST_CASE("ends of runs that nothing looks at as such are refused") {
  Program program = *compiled(value(parse_module(kRuns, "runs.sir")), true).program;
  CHECK(check(program));
  program.entries[0].row_checks[0].ends = false;
  const Status refused = check(program);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message().find("that nothing looks at after the call") !=
        std::string::npos);
}

TEST_CASE("ids of every spelling: an embedding of numbers outside its table is an error") {
  for (const Spelling& spelling : kSpellings) {
    CAPTURE(spelling.ops);
    const Module module = module_of(std::string(spelling.ops) +
                                        "\n%e = embedding %table, %i : f32[N, 16]\n"
                                        "%y = add %e, %x : f32[N, 16]",
                                    "%y");
    CHECK(said_of(module, {0, 2, 1}) == "fine");
    CHECK(said_of(module, {4, 0, 0}) == "fine");
    const std::string said = said_of(module, {1, 1000, 0});
    CAPTURE(said);
    CHECK(said.find(fmt::format("%{}[", spelling.checked)) != std::string::npos);
    CHECK(said.find("outside the 0 .. 9 that it points into") != std::string::npos);
  }
}

TEST_CASE("the first number that is outside is named, with its place and the op") {
  const Module module = module_of(
      "%one = constant {value = 1} : i32[]\n%i = add %n, %one : i32[N]\n"
      "%e = embedding %table, %i : f32[N, 16]\n%y = add %e, %x : f32[N, 16]",
      "%y");
  CHECK(said_of(module, {0, 8, 1}) == "fine");
  CHECK(said_of(module, {0, 9, 9}) == outside("e", "i", 1, 10, 10));
  CHECK(said_of(module, {-2, 9, 1}) == outside("e", "i", 0, -1, 10));
  CHECK(said_of(module, {0, 0, INT32_MAX}) == outside("e", "i", 2, INT32_MIN, 10));
  CHECK(said_of(module, {0, INT32_MAX - 1, 0}) == outside("e", "i", 1, INT32_MAX, 10));
}

TEST_CASE("an append drops the rows of computed slots outside its cache") {
  const Module module = module_of(
      "%one = constant {value = 1} : i32[]\n%i = sub %n, %one : i32[N]\n"
      "%v = exp %x : f32[N, 16]\n"
      "%k = kv_append %keys, %v, %i : f32[R, 16]\n"
      "%y = exp %k : f32[R, 16]",
      "%y");
  CHECK(said_of(module, {1, 24, 3}) == "fine");
  CHECK(said_of(module, {1, 0, 3}) == outside("k", "i", 1, -1, kRows));
  CHECK(said_of(module, {1, 25, 3}) == outside("k", "i", 1, kRows, kRows));
  CHECK(said_of(module, {1, INT32_MIN, 3}) == outside("k", "i", 1, INT32_MAX, kRows));
  CHECK(said_of(module, {INT32_MIN + 1, 2, 3}) == outside("k", "i", 0, INT32_MIN, kRows));
}

TEST_CASE("a gather of computed places outside of its axis gives zeros and is an error") {
  const Module module = module_of(
      "%two = add %n, %n : i32[N]\n%i = reshape %two {dims = [N, 1]} : i32[N, 1]\n"
      "%g = gather %x, %i {axis = 1} : f32[N, 1]\n%y = exp %g : f32[N, 1]",
      "%y");
  CHECK(said_of(module, {1, 7, 3}) == "fine");
  CHECK(said_of(module, {1, 8, 3}) == outside("g", "i", 1, 16, 16));
  CHECK(said_of(module, {-1, 0, 3}) == outside("g", "i", 0, -2, 16));
}

TEST_CASE("a gather of given places outside of its axis is refused before the call") {
  const Module module = module_of(
      "%i = reshape %n {dims = [N, 1]} : i32[N, 1]\n%g = gather %x, %i {axis = 1} : f32[N, 1]",
      "%g");
  CHECK(said_of(module, {0, 15, 3}) == "fine");
  CHECK(said_of(module, {0, 16, 3}) ==
        "entry main: %n[1] is 16, outside the 0 .. 15 that it points into; check the inputs");
}

TEST_CASE("an i64 outside of i32 names no row where it is made an i32") {
  const Module module = module_of(
      "%wide = cast %n {dtype = i64} : i64[N]\n%big = constant {value = 0x1p+32} : i64[]\n"
      "%more = mul %wide, %big : i64[N]\n%i = cast %more {dtype = i32} : i32[N]\n"
      "%e = embedding %table, %i : f32[N, 16]",
      "%e");
  CHECK(said_of(module, {0, 0, 0}) == "fine");
  CHECK(said_of(module, {0, 1, 0}) == outside("e", "i", 1, INT32_MAX, 10));
  CHECK(said_of(module, {0, 0, -1}) == outside("e", "i", 2, INT32_MIN, 10));
}

TEST_CASE("an id of an i64 input that i32 has no number for is reported as it is") {
  const Module module = value(parse_module(R"(
module @wide {
  symbol N in [1, 8]
  weight %table : f32[10, 16] = constant {value = 2}
  entry @main(%ids: i64[N]) -> (%e) {
    %i = cast %ids {dtype = i32} : i32[N]
    %e = embedding %table, %i : f32[N, 16]
  }
})",
                                           "wide.sir"));
  driver();
  for (bool fuse : {true, false})
    for (bool on_device : {false, true})
      for (const int64_t id : {int64_t{1} << 40, -(int64_t{1} << 50), int64_t{INT32_MAX},
                               int64_t{INT32_MIN}, int64_t{INT32_MAX} + 1, int64_t{10}}) {
        CAPTURE(fuse);
        CAPTURE(on_device);
        const Compiled plan = compiled(module, fuse);
        const std::shared_ptr<const Executable> model =
            on_device ? value(load_on_fake(plan.program, nullptr))
                      : std::make_shared<const HostExecutable>(
                            value(HostExecutable::load(plan.program, nullptr)));
        const auto session = value(model->new_session({kTokens}));
        HostTensor ids = value(make_tensor(DType::i64, {kTokens}));
        std::copy_n(std::array{int64_t{9}, id, int64_t{0}}.begin(), kTokens, ids.data<int64_t>());
        const auto result = session->run("main", {kTokens}, {&ids}, {});
        REQUIRE_FALSE(result);
        CHECK(result.error().message() ==
              fmt::format("entry main, %e: %i[1] is {}, outside the 0 .. 9 that it points into; "
                          "the module computes it: check the module and the inputs",
                          id));
      }
}

TEST_CASE("updates of computed rows that are not there are added nowhere, and are an error") {
  const Module module = module_of(
      "%i = add %n, %n : i32[N]\n%v = exp %x : f32[N, 16]\n"
      "%s = scatter_add %i, %v {rows = R} : f32[R, 16]\n%y = abs %s : f32[R, 16]",
      "%y");
  CHECK(said_of(module, {1, 11, 1}) == "fine");
  CHECK(said_of(module, {1, 12, 1}) == outside("s", "i", 1, kRows, kRows));
  CHECK(said_of(module, {1, 0, -1}) == outside("s", "i", 2, -2, kRows));
  const Module given = module_of("%s = scatter_add %n, %x {rows = 9} : f32[9, 16]", "%s");
  CHECK(said_of(given, {8, 0, 8}) == "fine");
  CHECK(said_of(given, {8, 9, 8}) ==
        "entry main: %n[1] is 9, outside the 0 .. 8 that it points into; check the inputs");
}

TEST_CASE("attention of few tokens sees those of its computed rows that are there") {
  const Module module = module_of(
      "%one = constant {value = 1} : i32[]\n%f = sub %n, %one : i32[N]\n"
      "%l = add %n, %one : i32[N]\n"
      "%k = kv_append %keys, %x, %n : f32[R, 16]\n"
      "%v = kv_append %values, %x, %n : f32[R, 16]\n"
      "%y = attention %x, %k, %v, %f, %l {heads = 2, kv_heads = 2, scale = 0.25} : "
      "f32[N, 16]",
      "%y");
  CHECK(said_of(module, {1, 22, 3}) == "fine");
  CHECK(said_of(module, {1, 0, 3}) == outside("y", "f", 1, -1, kRows));
  CHECK(said_of(module, {1, 23, 3}) == outside("y", "l", 1, kRows, kRows));
  // Inputs are checked before the call, as ever.
  CHECK(said_of(module, {1, 24, 3}) ==
        "entry main: %n[1] is 24, outside the 0 .. 23 that it points into; check the inputs");
}

TEST_CASE("attention of many tokens: a range that is computed and leaves the rows is an error") {
  const Module module = module_of(
      "%c = constant {value = 1000} : i32[]\n%z = div_floor %m, %c : i32[M]\n"
      "%y = attention %q, %q, %q, %m, %m {heads = 2, kv_heads = 2, scale = 0.25} : "
      "f32[M, 16]\n"
      "%w = attention %q, %q, %q, %z, %m {heads = 2, kv_heads = 2, scale = 0.25} : "
      "f32[M, 16]\n"
      "%one = constant {value = 1} : i32[]\n%l = add %m, %one : i32[M]\n"
      "%a = attention %q, %q, %q, %z, %l {heads = 2, kv_heads = 2, scale = 0.25} : "
      "f32[M, 16]",
      "%y, %w, %a");
  for (bool fuse : {true, false}) {
    const Compiled plan = compiled(module, fuse);
    const auto& checks = plan.program->entries[0].row_checks;
    REQUIRE(checks.size() == 2);
    CHECK(plan.program->entries[0].buffers[checks[0].buffer].value == "z");
    CHECK(plan.program->entries[0].buffers[checks[1].buffer].value == "l");
    auto model = value(HostExecutable::load(plan.program, nullptr));
    auto session = value(model.new_session({kTokens, 12, kRows}));
    const HostTensor q = value(random_tensor(DType::f32, {12, 16}, 2));
    const auto run = [&](int32_t m) {
      const HostTensor numbers = i32_tensor(std::vector<int32_t>(12, m));
      const HostTensor n = i32_tensor({0, 0, 0}), x = value(random_tensor(DType::f32, {3, 16}, 1));
      const auto result = session->run("main", {kTokens, 12, kRows}, {&n, &numbers, &x, &q});
      return result ? "fine" : result.error().message();
    };
    CHECK(run(10) == "fine");
    CHECK(run(11) == outside("a", "l", 0, 12, 12));
    CHECK(run(-2) ==
          "entry main: %m[0] is -2, outside the 0 .. 11 that it points into; check the inputs");
  }
}

TEST_CASE("numbers in a weight, a state and a generator are looked at too") {
  const std::string use = "\n%e = embedding %table, %i : f32[4, 16]\n%y = exp %e : f32[4, 16]";
  CHECK(said_of(module_of("%i = copy %numbers : i32[4]" + use, "%y"), {0, 1, 2}) ==
        outside("e", "i", 3, 11, 10));
  const Module weight =
      module_of("%e = embedding %table, %numbers : f32[4, 16]\n%y = exp %e : f32[4, 16]", "%y");
  CHECK(said_of(weight, {0, 1, 2}) == outside("e", "numbers", 3, 11, 10));
  CHECK(said_of(module_of("%i = slice %numbers {axis = 0, begin = 0, size = 3} : i32[3]\n"
                          "%e = embedding %table, %i : f32[3, 16]\n%y = exp %e : f32[3, 16]",
                          "%y"),
                {0, 1, 2}) == "fine");
  // The version that the embedding reads, not the one that follows.
  const Module state = module_of(
      "%flat = reshape %kept {dims = [R]} : i32[R]\n"
      "%i = slice %flat {axis = 0, begin = 0, size = 3} : i32[3]\n"
      "%e = embedding %table, %i : f32[3, 16]\n%y = exp %e : f32[3, 16]\n"
      "%rows = reshape %n {dims = [N, 1]} : i32[N, 1]\n"
      "%next = kv_append %kept, %rows, %n : i32[R, 1]",
      "%y");
  CHECK(said_of(state, {0, 1, 20}) == "fine");
  const Module iota = module_of(
      "%i = iota {axis = 0} : i32[12]\n"
      "%e = embedding %table, %i : f32[12, 16]\n"
      "%y = exp %e : f32[12, 16]",
      "%y");
  CHECK(said_of(iota, {0, 1, 2}) == outside("e", "i", 10, 10, 10));
}

TEST_CASE("an op that the text has checked") {
  // Inputs are checked before the call all the same; numbers in memory are looked at, though known.
  CHECK(said_of(module_of("%y = embedding %table, %n {checked = 1} : f32[N, 16]", "%y"),
                {0, 10, 2}) ==
        "entry main: %n[1] is 10, outside the 0 .. 9 that it points into; check the inputs");
  for (const char* ops :
       {"%i = slice %numbers {axis = 0, begin = 0, size = 3} : i32[3]\n"
        "%s = embedding %large, %i {checked = 1} : f32[3, 2]\n%y = exp %s : f32[3, 2]",
        "%i = iota {axis = 0} : i32[10]\n%y = embedding %table, %i {checked = 1} : f32[10, 16]",
        "%d = add %n, %n : i32[N]\n%i = copy %d : i32[N]\n"
        "%y = embedding %table, %i {checked = 1} : f32[N, 16]"})
    CHECK(said_of(module_of(ops, "%y"), {0, 1, 2}) == "fine");
}

TEST_CASE("plans whose row numbers are inputs or known have no checks and unchanged ops") {
  for (const char* ops :
       {"%y = embedding %table, %n : f32[N, 16]",
        "%t = reshape %n {dims = [N, 1]} : i32[N, 1]\n%i = reshape %t {dims = [N]} : i32[N]\n"
        "%y = embedding %table, %i : f32[N, 16]",
        "%i = iota {axis = 0} : i32[N]\n%y = embedding %table, %i : f32[N, 16]",
        "%i = constant {value = 9} : i32[N]\n%y = embedding %table, %i : f32[N, 16]",
        "%i = literal {values = [3, 9, 0]} : i32[3]\n%y = embedding %table, %i : f32[3, 16]",
        "%i = slice %numbers {axis = 0, begin = 0, size = 3} : i32[3]\n%s = embedding %large, %i : "
        "f32[3, 2]\n%y = exp %s : f32[3, 2]",
        "%i = iota {axis = 0} : i32[10]\n%y = embedding %table, %i : f32[10, 16]",
        "%k = kv_append %keys, %x, %n : f32[R, 16]\n%y = exp %k : f32[R, 16]"}) {
    CAPTURE(ops);
    const Compiled plan = compiled(module_of(ops, "%y"), true);
    CHECK(plan.program->entries[0].row_checks.empty());
    CHECK(write_plan(*plan.program).find("check") == std::string::npos);
    for (const Op& op : plan.module.entries[0].graph.ops()) CHECK_FALSE(is_checked(op));
  }
}

}  // namespace
}  // namespace sinter::row_checks_test
