// Callbacks that throw, fail or call back, and threads that share a handle.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <thread>

#include "handles.h"

TEST_CASE("an exception that leaves a callback of C++ is an error") {
  const Handles handles;
  const sinter_progress progress[] = {
      [](void*, const char*, int64_t, int64_t) -> int { throw std::runtime_error("no time"); },
      [](void*, const char*, int64_t, int64_t) -> int { throw 42; }};
  for (const sinter_progress callback : progress) {
    sinter_options* options = nullptr;
    ok(sinter_options_create(&options));
    sinter_options_progress(options, callback, nullptr);
    sinter_plan* plan = nullptr;
    const Outcome outcome(sinter_compile(handles.model, options, &plan));
    CHECK(outcome.code == SINTER_CODE_CANCELLED);
    CHECK(outcome.says("the progress function threw"));
    sinter_executable* executable = nullptr;
    CHECK(Outcome(sinter_load(handles.plan, handles.device, handles.weights, options, &executable))
              .code == SINTER_CODE_CANCELLED);
    sinter_options_free(options);
  }
}

namespace {

/// A progress function that takes a while.
struct SlowProgress {
  static int call(void* user, const char*, int64_t, int64_t) {
    auto& slow = *static_cast<SlowProgress*>(user);
    slow.begun = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    slow.ended = true;
    return 0;
  }
  std::atomic<bool> begun = false, ended = false;
};

sinter_code compile_with(SlowProgress& progress, const Handles& handles) {
  sinter_options* options = nullptr;
  ok(sinter_options_create(&options));
  sinter_options_progress(options, SlowProgress::call, &progress);
  sinter_plan* plan = nullptr;
  const Outcome outcome(sinter_compile(handles.model, options, &plan));
  sinter_plan_free(plan);
  sinter_options_free(options);
  return outcome.code;
}

}  // namespace

TEST_CASE("once callbacks are forbidden those that have begun have ended, and none begins") {
  const Handles handles;
  SlowProgress before;
  sinter_code code = SINTER_CODE_NONE;
  std::thread thread([&] { code = compile_with(before, handles); });
  while (!before.begun) std::this_thread::yield();
  sinter_allow_callbacks(0);
  CHECK(before.ended);
  thread.join();
  CHECK(code == SINTER_CODE_CANCELLED);

  SlowProgress forbidden;
  CHECK(compile_with(forbidden, handles) == SINTER_CODE_CANCELLED);
  CHECK_FALSE(forbidden.begun);
  sinter_allow_callbacks(1);
  SlowProgress allowed;
  CHECK(compile_with(allowed, handles) == SINTER_CODE_NONE);
  CHECK(allowed.ended);
}

namespace {

/// How the evaluation of the op below behaves.
struct Evaluation {
  enum { fails, throws, calls_back } way = fails;
  sinter_call* call = nullptr;
  std::string said;
};

int evaluate(void* user, const sinter_evaluation*) {
  auto& evaluation = *static_cast<Evaluation*>(user);
  if (evaluation.way == Evaluation::throws) throw 42;
  if (evaluation.way == Evaluation::fails) return 1;
  evaluation.said = Outcome(sinter_call_run(evaluation.call)).message;
  return 0;
}

sinter_error* register_kernel(const char* name, const std::string& source, Evaluation* user) {
  sinter_kernel* kernel = nullptr;
  ok(sinter_kernel_create(name, "x: float[N, D] -> x[N, D]", source.c_str(), "misused", &kernel));
  sinter_kernel_evaluation(kernel, evaluate, user, 0);
  sinter_error* error = sinter_kernel_register(kernel);
  sinter_kernel_free(kernel);
  return error;
}

}  // namespace

TEST_CASE("a kernel stays as it was registered, and its evaluation may fail in every way") {
  static Evaluation evaluation;
  const std::string source =
      "template <typename X, typename Y>\n"
      "__device__ void misused(X x, Y y, const SinterCustom& at) {}\n";
  ok(register_kernel("test.misused", source, &evaluation));
  ok(register_kernel("test.misused", source, &evaluation));
  CHECK(Outcome(register_kernel("test.misused", source + "\n", &evaluation)).says("different op"));

  const std::string text =
      "module @m { entry @main(%x: f32[2, 4]) -> (%y) "
      "{ %y = custom %x {op = \"test.misused\"} : f32[2, 4] } }";
  Handles handles;  // its plan and what was made of it give way
  for (const int kind : {0, 1, 4, 5, 6}) handles.free(kind);
  ok(sinter_model_parse(text.data(), text.size(), "m", &handles.model));
  ok(sinter_compile(handles.model, nullptr, &handles.plan));
  ok(sinter_load(handles.plan, handles.device, nullptr, nullptr, &handles.executable));
  ok(sinter_session_create(handles.executable, nullptr, nullptr, 0, &handles.session));
  ok(sinter_call_create(handles.session, "main", &handles.call));
  const int64_t dims[] = {2, 4};
  ok(sinter_call_input(handles.call, "x", "f32", 2, dims, nullptr, handles.r));
  ok(sinter_call_output(handles.call, "y", "f32", 2, dims, nullptr, handles.y));
  for (const auto way : {Evaluation::fails, Evaluation::throws}) {
    evaluation.way = way;
    CHECK(Outcome(sinter_call_run(handles.call)).says("test.misused"));
  }
  // The session is in use while it calls back.
  evaluation.way = Evaluation::calls_back;
  evaluation.call = handles.call;
  ok(sinter_call_run(handles.call));
  CHECK(evaluation.said.find("in use") != std::string::npos);
}

namespace {

/// Calls on two threads, `count` on each, that begin together: those that are not done are refused.
int done_by_two_threads(int count, const std::function<sinter_error*()>& call) {
  std::atomic<int> begun = 0, done = 0, refused = 0, other = 0;
  const auto run = [&] {
    for (++begun; begun < 2;) std::this_thread::yield();
    for (int i = 0; i < count; ++i) {
      const Outcome outcome(call());
      if (outcome.code == SINTER_CODE_NONE)
        ++done;
      else
        ++(outcome.says("in use") ? refused : other);
    }
  };
  std::thread first(run), second(run);
  first.join();
  second.join();
  CHECK(other == 0);
  CHECK(done + refused == 2 * count);
  return done;
}

}  // namespace

TEST_CASE("threads that share a session are told so, and no call runs beside another") {
  const Handles handles;
  CHECK(done_by_two_threads(500, [&] { return sinter_call_run(handles.call); }) > 0);
}

TEST_CASE("threads that share a module are told so, and each op that was added is there") {
  sinter_module* module = nullptr;
  sinter_graph* graph = nullptr;
  sinter_value x = 0;
  ok(sinter_module_create("shared", &module));
  ok(sinter_module_entry(module, "main", &graph));
  ok(sinter_graph_input(graph, "x", "f32[8]", &x));
  const int done = done_by_two_threads(5000, [&] {
    sinter_value value = 0;
    const sinter_value operands[] = {x, x};
    return sinter_graph_op(graph, "add", operands, 2, nullptr, nullptr, &value);
  });
  char* text = nullptr;
  ok(sinter_module_text(module, &text));
  const std::string lines = text;
  CHECK(std::count(lines.begin(), lines.end(), '=') == done);
  sinter_free(text);
  sinter_module_free(module);
}
