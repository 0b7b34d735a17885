// Every allocation of a process may fail, once or from one on: each function of the interface then
// returns an error, or does without. This file replaces the allocator, so its program is its own.
#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "handles.h"

extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
}

namespace {

std::atomic<long> allocations = 0;
std::atomic<long> first_failure = -1, failures = 0;  // of the allocations by their number

bool fails() {
  const long first = first_failure, number = allocations++;
  return first >= 0 && number >= first && number - first < failures;
}

/// All functions from a text to the result of a call; the code of the first error.
sinter_code build_and_run() {
  sinter_module* module = nullptr;
  sinter_graph* graph = nullptr;
  sinter_value value = 0;
  sinter_options* options = nullptr;
  sinter_model* model = nullptr;
  sinter_plan* plan = nullptr;
  sinter_device* device = nullptr;
  sinter_weights* weights = nullptr;
  sinter_executable* executable = nullptr;
  sinter_session* session = nullptr;
  sinter_call* call = nullptr;
  sinter_report* report = nullptr;
  char* text = nullptr;
  size_t count = 0;
  const int64_t rows[] = {3}, matrix[] = {3, 8};
  const int32_t ids[] = {3, 0, 9};
  const float r[24] = {};
  float y[24] = {};
  sinter_code code = SINTER_CODE_NONE;
  const auto good = [&](sinter_error* error) {
    code = sinter_error_code(error);
    sinter_error_free(error);
    return code == SINTER_CODE_NONE;
  };
  (void)(good(sinter_module_create("m", &module)) &&
         good(sinter_module_entry(module, "main", &graph)) &&
         good(sinter_graph_input(graph, "x", "f32[4]", &value)) &&
         good(sinter_graph_op(graph, "softmax", &value, 1, nullptr, nullptr, &value)) &&
         good(sinter_graph_output(graph, value)) && good(sinter_module_text(module, &text)) &&
         good(sinter_model_parse(kBlock.data(), kBlock.size(), "block", &model)) &&
         good(sinter_options_create(&options)) &&
         good(sinter_options_set(options, "numerics", "strict")) &&
         good(sinter_compile(model, options, &plan)) &&
         good(sinter_plan_decision_count(plan, 0, &count)) &&
         good(sinter_device_open("cpu", &device)) && good(sinter_weights_create(&weights)) &&
         load_weights(weights, code) &&
         good(sinter_load(plan, device, weights, nullptr, &executable)) &&
         good(sinter_session_create(executable, nullptr, nullptr, 0, &session)) &&
         good(sinter_call_create(session, "main", &call)) &&
         good(sinter_call_input(call, "ids", "i32", 1, rows, nullptr, ids)) &&
         good(sinter_call_input(call, "r", "f32", 2, matrix, nullptr, r)) &&
         good(sinter_call_output(call, "y", "f32", 2, matrix, nullptr, y)) &&
         good(sinter_call_run(call)) &&
         good(sinter_verify(model, device, weights, nullptr, &report)));
  sinter_free(text);
  sinter_report_free(report);
  sinter_call_free(call);
  sinter_session_free(session);
  sinter_executable_free(executable);
  sinter_weights_free(weights);
  sinter_device_free(device);
  sinter_plan_free(plan);
  sinter_model_free(model);
  sinter_options_free(options);
  sinter_module_free(module);
  return code;
}

}  // namespace

extern "C" {
void* malloc(size_t bytes) { return fails() ? nullptr : __libc_malloc(bytes); }
void* calloc(size_t count, size_t bytes) { return fails() ? nullptr : __libc_calloc(count, bytes); }
void* realloc(void* memory, size_t bytes) {
  return fails() ? nullptr : __libc_realloc(memory, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return fails() ? nullptr : __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  if (fails()) return ENOMEM;
  *memory = __libc_memalign(alignment, bytes);
  return 0;
}
}

TEST_CASE("memory that runs out anywhere is an error, and the process goes on") {
  REQUIRE(build_and_run() == SINTER_CODE_NONE);  // what is made once is made
  allocations = 0;
  REQUIRE(build_and_run() == SINTER_CODE_NONE);
  const long total = allocations;
  REQUIRE(total > 1000);
  constexpr long kSteps = 120;
  for (const long many : {1L, total})
    for (long step = 0; step < kSteps; ++step) {
      const long first = total * step / kSteps;
      CAPTURE(first);
      CAPTURE(many);
      failures = many;
      allocations = 0;
      first_failure = first;
      const sinter_code code = build_and_run();
      first_failure = -1;
      // One allocation may be one that its function does without.
      CHECK((code == SINTER_CODE_OUT_OF_MEMORY || (code == SINTER_CODE_NONE && many == 1)));
    }
  CHECK(build_and_run() == SINTER_CODE_NONE);
}
