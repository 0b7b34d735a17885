// A GPU through the C interface: a stored plan on the driver of the tests, in the caller's context,
// on the caller's stream, with the caller's allocator. What the driver was asked is logged.
#include <doctest/doctest.h>

#include <cstring>
#include <set>
#include <thread>

#include "api/sinter_c.h"
#include "driver/build.h"
#include "driver/host_kernels.h"
#include "driver/plan_folder/write.h"
#include "ir/text.h"
#include "plan/plan_file.h"
#include "runtime/temporary_directory.h"
#include "support/result.h"

namespace sinter {
namespace {

constexpr const char* kModule = R"(
module @called {
  symbol N in [1, 64]
  weight %table : f32[10, 32] = file {tensor = "table"}
  weight %w : f32[32] = file {tensor = "w"}
  entry @main(%ids: i32[N], %r: f32[N, 32]) -> (%y) {
    %e = embedding %table, %ids : f32[N, 32]
    %s = add %e, %r : f32[N, 32]
    %n = rms_norm %s, %w {eps = 1e-5} : f32[N, 32]
    %c = cumulative_sum %n {axis = 0} : f32[N, 32]
    %y = add %c, %n : f32[N, 32]
  }
})";
constexpr int64_t kRows = 12, kWidth = 32;

const FakeDriver& fake() {
  static const FakeDriver driver(SINTER_FAKE_DRIVER);
  return driver;
}

void ok(sinter_error* error) {
  if (!error) return;
  const std::string message = sinter_error_message(error);
  sinter_error_free(error);
  FAIL(message);
}

/// The folder of a plan whose machine code the driver of the tests evaluates on the host.
void write_folder(const std::string& folder, const std::string& arch) {
  OpenedModel model;
  model.module = value(parse_module(kModule, "called.sir"));
  model.origin = "called.sir";
  BuildRequest request;
  request.for_folder = true;
  request.compile.device_inputs = true;
  const Built built = value(build_opened(std::move(model), request));
  MachineCode code;
  code.arch = arch;
  const MachineCodeByText by_text = host_machine_code(built.compiled.program);
  for (const Kernel& kernel : built.compiled.program->kernels)
    code.kernels.push_back({kernel.name, text_hash(kernel), by_text.at(text_hash(kernel))});
  require(write_plan_folder(folder, {built, code, {}, {}, {}, false}));
}

/// Memory that the caller's allocator gave, which a test counts.
struct Allocator {
  std::set<void*> given;
  std::mutex mutex;
  size_t bytes = 0;
};
void* allocate(void* user, size_t bytes, void*) {
  auto& allocator = *static_cast<Allocator*>(user);
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  const std::lock_guard lock(allocator.mutex);
  allocator.given.insert(memory);
  allocator.bytes += bytes;
  return memory;
}
void release(void* user, void* memory, size_t, void*) {
  auto& allocator = *static_cast<Allocator*>(user);
  const std::lock_guard lock(allocator.mutex);
  CHECK(allocator.given.erase(memory) == 1);
  std::free(memory);
}

/// Floats at an address that kernels can read.
struct Floats {
  explicit Floats(size_t count)
      : data(static_cast<float*>(std::aligned_alloc(256, (count * 4 + 255) / 256 * 256))) {
    for (size_t i = 0; i < count; ++i) data[i] = static_cast<float>(i % 13) * 0.25f - 1.0f;
  }
  ~Floats() { std::free(data); }
  Floats(const Floats&) = delete;
  float* data;
};

struct Tensors {
  Floats table{10 * kWidth}, w{kWidth}, r{kRows * kWidth}, y{kRows * kWidth};
  Floats ids{64};  // i32
  Tensors() {
    auto* numbers = reinterpret_cast<int32_t*>(ids.data);
    for (int32_t i = 0; i < kRows; ++i) numbers[i] = i % 10;
  }
};

struct Handles {
  sinter_model* model = nullptr;
  sinter_plan* plan = nullptr;
  sinter_device* device = nullptr;
  sinter_weights* weights = nullptr;
  sinter_executable* executable = nullptr;
  ~Handles() {
    sinter_executable_free(executable);
    sinter_weights_free(weights);
    sinter_device_free(device);
    sinter_plan_free(plan);
    sinter_model_free(model);
  }
};

void load(Handles& handles, const std::string& folder, Tensors& tensors, bool on_device) {
  const int64_t table[] = {10, kWidth}, row[] = {kWidth};
  ok(sinter_model_open(folder.c_str(), nullptr, &handles.model));
  ok(sinter_compile(handles.model, nullptr, &handles.plan));
  ok(sinter_weights_create(&handles.weights));
  ok(sinter_weights_add(handles.weights, "table", "f32", 2, table, nullptr, tensors.table.data,
                        on_device));
  ok(sinter_weights_add(handles.weights, "w", "f32", 1, row, nullptr, tensors.w.data, on_device));
  ok(sinter_load(handles.plan, handles.device, handles.weights, nullptr, &handles.executable));
}

sinter_call* bind(sinter_session* session, Tensors& tensors) {
  sinter_call* call = nullptr;
  const int64_t ids[] = {kRows}, rows[] = {kRows, kWidth};
  ok(sinter_call_create(session, "main", &call));
  ok(sinter_call_input(call, "ids", "i32", 1, ids, nullptr, tensors.ids.data));
  ok(sinter_call_input(call, "r", "f32", 2, rows, nullptr, tensors.r.data));
  ok(sinter_call_output(call, "y", "f32", 2, rows, nullptr, tensors.y.data));
  return call;
}

std::vector<float> result(const Tensors& tensors) {
  return {tensors.y.data, tensors.y.data + kRows * kWidth};
}

std::vector<float> on_cpu(const std::string& folder) {
  Tensors tensors;
  Handles handles;
  ok(sinter_device_open("cpu", &handles.device));
  load(handles, folder, tensors, false);
  sinter_session* session = nullptr;
  ok(sinter_session_create(handles.executable, nullptr, nullptr, 0, &session));
  sinter_call* call = bind(session, tensors);
  ok(sinter_call_run(call));
  sinter_call_free(call);
  sinter_session_free(session);
  return result(tensors);
}

std::set<std::string> logged() {
  std::set<std::string> names;
  for (const FakeCall& call : fake().take_calls()) names.insert(call.name);
  return names;
}

TEST_CASE("a call launches and does nothing else, in the caller's context and on its stream") {
  fake();
  TemporaryDirectory directory;
  const std::string folder = directory.path() + "/plan";
  const CudaApi& driver = *value(load_cuda());
  void* context = fake().make_context(0);
  REQUIRE(driver.context_set(static_cast<CudaApi::Context>(context)) == 0);
  CudaApi::Stream stream = nullptr;
  REQUIRE(driver.stream_create(&stream, 1) == 0);
  Allocator allocator;
  const size_t before = fake().handles();
  {
    Tensors tensors;
    Handles handles;
    ok(sinter_device_open_cuda(0, context, allocate, release, &allocator, &handles.device));
    write_folder(folder, sinter_device_target(handles.device));
    load(handles, folder, tensors, true);
    const std::vector<float> expected = on_cpu(folder);
    sinter_session* session = nullptr;
    ok(sinter_session_create_on_stream(handles.executable, nullptr, nullptr, 0, stream, &session));
    CHECK(sinter_session_stream(session) == stream);
    sinter_call* call = bind(session, tensors);
    ok(sinter_call_run(call));
    ok(sinter_session_synchronize(session));
    CHECK(result(tensors) == expected);
    CHECK(allocator.bytes > 0);
    CHECK(allocator.bytes < 10 * kWidth * sizeof(float) + 64 * 1024);  // no copy of the weights

    std::memset(tensors.y.data, 0, kRows * kWidth * sizeof(float));
    logged();
    fake().take_launches();
    for (int i = 0; i < 3; ++i) ok(sinter_call_run(call));
    size_t launches = 0;
    for (const FakeCall& one : fake().take_calls()) {
      const std::string_view name = one.name;
      CAPTURE(name);
      CHECK((name == "cuLaunchKernelEx" || name == "cuStreamIsCapturing" ||
             name.starts_with("cuCtx")));
      if (name != "cuLaunchKernelEx") continue;
      CHECK(one.context == context);
      ++launches;
    }
    CHECK(launches == 3 * sinter_plan_step_count(handles.plan, 0));
    ok(sinter_call_check(call));
    CHECK(fake().take_launches().size() == launches);
    CHECK(result(tensors) == expected);

    // Captured, and replayed on a number that names no row.
    CudaApi::Graph graph = nullptr;
    CudaApi::GraphExec recorded = nullptr;
    REQUIRE(driver.stream_begin_capture(stream, 1) == 0);
    ok(sinter_call_run(call));
    REQUIRE(driver.stream_end_capture(stream, &graph) == 0);
    REQUIRE(driver.graph_instantiate(&recorded, graph, 0) == 0);
    CHECK(fake().take_launches().empty());
    std::memset(tensors.y.data, 0, kRows * kWidth * sizeof(float));
    REQUIRE(driver.graph_launch(recorded, stream) == 0);
    ok(sinter_call_check(call));
    CHECK(result(tensors) == expected);
    reinterpret_cast<int32_t*>(tensors.ids.data)[3] = 10;
    REQUIRE(driver.graph_launch(recorded, stream) == 0);
    sinter_error* outside = sinter_call_check(call);
    REQUIRE(outside != nullptr);
    CHECK(std::string(sinter_error_message(outside)).find("10") != std::string::npos);
    sinter_error_free(outside);
    driver.graph_exec_destroy(recorded);
    driver.graph_destroy(graph);
    sinter_call_free(call);
    sinter_session_free(session);
  }
  CHECK(fake().handles() == before);
  CHECK(allocator.given.empty());
  driver.stream_destroy(stream);
  driver.context_set(nullptr);
}

TEST_CASE("two sessions on two streams and two threads do not disturb each other") {
  fake();
  TemporaryDirectory directory;
  const std::string folder = directory.path() + "/plan";
  Tensors weights;
  Handles handles;
  ok(sinter_device_open("cuda:0", &handles.device));
  write_folder(folder, sinter_device_target(handles.device));
  load(handles, folder, weights, false);
  const std::vector<float> expected = on_cpu(folder);
  std::vector<float> results[2];
  std::vector<std::thread> threads;
  for (auto& own : results)
    threads.emplace_back([&] {
      Tensors tensors;
      sinter_session* session = nullptr;
      ok(sinter_session_create(handles.executable, nullptr, nullptr, 0, &session));
      sinter_call* call = bind(session, tensors);
      for (int i = 0; i < 20; ++i) ok(sinter_call_run(call));
      ok(sinter_session_synchronize(session));
      own = result(tensors);
      sinter_call_free(call);
      sinter_session_free(session);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(results[0] == expected);
  CHECK(results[1] == expected);
}

}  // namespace
}  // namespace sinter
