// Misused handles, sizes, names and files give an error, not a crash.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "handles.h"

namespace fs = std::filesystem;

TEST_CASE("handles are freed in every order, and a call goes on without the others") {
  const Handles reference;
  ok(sinter_call_run(reference.call));
  std::vector<int> order = {0, 1, 2, 3, 4, 5, 6};
  for (int orders = 0; std::next_permutation(order.begin(), order.end()); ++orders) {
    if (orders % 199 != 0) continue;
    Handles handles;
    for (const int kind : order) {
      handles.free(kind);
      if (!handles.call) break;
      std::fill(std::begin(handles.y), std::end(handles.y), 0.0f);
      ok(sinter_call_run(handles.call));
      CHECK(std::equal(std::begin(handles.y), std::end(handles.y), std::begin(reference.y)));
    }
  }
}

TEST_CASE("a null handle has no name, no items and no error") {
  CHECK(sinter_error_code(nullptr) == SINTER_CODE_NONE);
  CHECK(std::string(sinter_error_message(nullptr)).empty());
  CHECK(std::string(sinter_error_hint(nullptr)).empty());
  CHECK(sinter_model_name(nullptr) == nullptr);
  CHECK(sinter_model_tensor_count(nullptr) == 0);
  CHECK(sinter_model_tensor_name(nullptr, 0) == nullptr);
  CHECK(sinter_plan_target(nullptr) == nullptr);
  CHECK(sinter_plan_symbol_name(nullptr, 0) == nullptr);
  int64_t low = 7;
  sinter_plan_symbol_range(nullptr, 0, &low, nullptr, nullptr);
  CHECK(low == 7);
  CHECK(sinter_plan_entry_count(nullptr) == 0);
  CHECK(sinter_plan_state_count(nullptr) == 0);
  CHECK(sinter_plan_state_type(nullptr, 0) == nullptr);
  CHECK(sinter_plan_input_name(nullptr, 0, 0) == nullptr);
  CHECK(sinter_plan_output_type(nullptr, 0, 0) == nullptr);
  CHECK(sinter_plan_step_kind(nullptr, 0, 0) == nullptr);
  CHECK(sinter_plan_step_values(nullptr, 0, 0) == nullptr);
  CHECK(sinter_plan_step_kernel(nullptr, 0, 0) == -1);
  CHECK(sinter_plan_kernel_source(nullptr, 0) == nullptr);
  CHECK(sinter_plan_decision(nullptr, 0, 0) == nullptr);
  CHECK(sinter_decision_reason(nullptr) == nullptr);
  CHECK(sinter_decision_path(nullptr, 0) == nullptr);
  CHECK(sinter_decision_change(nullptr) == nullptr);
  CHECK(sinter_decision_savings(nullptr) == nullptr);
  CHECK(sinter_decision_launch(nullptr, 0) == -1);
  CHECK(sinter_decision_path_launch(nullptr, 0) == -1);
  CHECK(sinter_decision_first_refusal(nullptr) == nullptr);
  CHECK(sinter_costs_launches(nullptr) == 0);
  CHECK(sinter_costs_predicted_seconds(nullptr) == -1);
  CHECK(sinter_device_name(nullptr) == nullptr);
  CHECK(sinter_session_stream(nullptr) == nullptr);
  CHECK(sinter_report_passed(nullptr) == 0);
  CHECK(sinter_report_fused_error(nullptr) == -1);
  CHECK(sinter_evaluation_rank(nullptr, 0) == 0);
  CHECK(sinter_evaluation_result(nullptr) == nullptr);
  sinter_options_progress(nullptr, nullptr, nullptr);
  sinter_kernel_launch(nullptr, 256, 1, 0);
  sinter_kernel_open_result(nullptr);
  sinter_kernel_numbers(nullptr, 1);
  sinter_kernel_evaluation(nullptr, nullptr, nullptr, 0);
}

TEST_CASE("no other devices have names") {
  for (const std::string name : {"gpu", "cuda:", "cuda:-1", "cuda:99999999999"}) {
    sinter_device* device = nullptr;
    sinter_error* error = sinter_device_open(name.c_str(), &device);
    CHECK(device == nullptr);
    CHECK(sinter_error_code(error) == SINTER_CODE_USAGE);
    CHECK(sinter_error_message(error) ==
          "device: no device is called \"" + name + "\"; give auto, cpu, cuda or cuda:N");
    sinter_error_free(error);
  }
}

TEST_CASE("a decision of the plan's stays where it is when somebody frees it") {
  const Handles handles;
  size_t count = 0;
  ok(sinter_plan_decision_count(handles.plan, 0, &count));
  REQUIRE(count > 0);
  const sinter_decision* decision = sinter_plan_decision(handles.plan, 0, 0);
  sinter_decision_free(const_cast<sinter_decision*>(decision));
  CHECK(std::string(sinter_decision_reason(decision)) == "fused");
  CHECK(sinter_decision_launch(decision, 1) >= 0);
  CHECK(sinter_decision_launch(decision, 2) == -1);
}

TEST_CASE("extents and strides that no memory has are errors that show them") {
  const Handles handles;
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  float memory[64] = {};
  const auto input = [&](std::vector<int64_t> dims, std::vector<int64_t> strides) {
    return Outcome(sinter_call_input(handles.call, "r", "f32", dims.size(), dims.data(),
                                     strides.empty() ? nullptr : strides.data(), memory));
  };
  const auto output = [&](std::vector<int64_t> strides, float* data) {
    const int64_t dims[] = {3, 8};
    return Outcome(sinter_call_output(handles.call, "y", "f32", 2, dims, strides.data(), data));
  };
  CHECK(input({kMax, 8}, {}).says("9223372036854775807"));
  CHECK(input({kMin, 8}, {}).says("-9223372036854775808"));
  CHECK(input({int64_t{1} << 40, int64_t{1} << 40}, {}).code == SINTER_CODE_USAGE);
  CHECK(input({3, 8}, {kMax, kMax}).says("leaves the address space"));
  CHECK(input({3, 8}, {kMin, 1}).says("leaves the address space"));
  CHECK(input({1, 1, 1, 1, 1, 1, 1, 1, 1}, {}).code == SINTER_CODE_USAGE);
  CHECK(output({1, 1}, memory).says("one address"));
  CHECK(output({0, 1}, memory).says("one address"));
  // Rows from the last to the first are as good as any.
  CHECK(output({-8, 1}, memory + 16).code == SINTER_CODE_NONE);
  ok(sinter_call_run(handles.call));
  CHECK(Outcome(sinter_call_addresses(handles.call, nullptr, 2, nullptr, 1)).says("inputs"));
  CHECK(Outcome(sinter_call_addresses(nullptr, nullptr, 0, nullptr, 0)).code == SINTER_CODE_USAGE);
  const int64_t state_dims[] = {3, 8};
  CHECK(Outcome(sinter_call_state(handles.call, "s", "f32", 2, state_dims, nullptr, memory))
            .says("no state is called"));
  CHECK(Outcome(sinter_call_symbol(handles.call, "N", kMin)).says("-9223372036854775808"));
  const char* const symbols[] = {"N"};
  sinter_costs* costs = nullptr;
  CHECK(Outcome(sinter_plan_costs(handles.plan, 0, symbols, &kMax, 1, &costs)).says("N is"));
}

TEST_CASE("tensors without elements need no memory") {
  const std::string text =
      "module @none { symbol N in [0, 8] entry @main(%x: f32[N, 4]) -> (%y) "
      "{ %y = neg %x : f32[N, 4] } }";
  sinter_model* model = nullptr;
  sinter_plan* plan = nullptr;
  sinter_device* device = nullptr;
  sinter_executable* executable = nullptr;
  sinter_session* session = nullptr;
  sinter_call* call = nullptr;
  ok(sinter_model_parse(text.data(), text.size(), "none", &model));
  ok(sinter_compile(model, nullptr, &plan));
  ok(sinter_device_open("cpu", &device));
  ok(sinter_load(plan, device, nullptr, nullptr, &executable));
  ok(sinter_session_create(executable, nullptr, nullptr, 0, &session));
  ok(sinter_call_create(session, "main", &call));
  const int64_t dims[] = {0, 4};
  ok(sinter_call_input(call, "x", "f32", 2, dims, nullptr, nullptr));
  ok(sinter_call_output(call, "y", "f32", 2, dims, nullptr, nullptr));
  ok(sinter_call_run(call));
  sinter_call_free(call);
  sinter_session_free(session);
  sinter_executable_free(executable);
  sinter_device_free(device);
  sinter_plan_free(plan);
  sinter_model_free(model);
}

TEST_CASE("names that are no text, or too long, are errors") {
  const std::string too_long(size_t{1} << 20, 'a');
  for (const char* name : {"\xff\xfe", "", too_long.c_str()}) {
    sinter_module* module = nullptr;
    sinter_graph* graph = nullptr;
    sinter_value value = 0;
    sinter_model* model = nullptr;
    ok(sinter_module_create("m", &module));
    ok(sinter_module_entry(module, "main", &graph));
    for (sinter_error* error :
         {sinter_module_symbol(module, name, 1, 4, 1, nullptr),
          sinter_module_weight(module, name, "f16[4]"), sinter_module_state(module, name, "f16[4]"),
          sinter_graph_input(graph, name, "f16[4]", &value), sinter_graph_use(graph, name, &value),
          sinter_graph_op(graph, name, nullptr, 0, nullptr, nullptr, &value)}) {
      const Outcome outcome(error);
      CHECK(outcome.code != SINTER_CODE_NONE);
      CHECK(outcome.code != SINTER_CODE_INTERNAL_ERROR);
      CHECK(outcome.message.size() < 1000);
    }
    sinter_module_free(module);
    sinter_module* named = nullptr;
    ok(sinter_module_create(name, &named));
    CHECK(Outcome(sinter_model_build(named, &model)).code == SINTER_CODE_BAD_INPUT);
    sinter_module_free(named);
  }
}

TEST_CASE("files that vanish or shrink while they are in use are errors") {
  const fs::path folder = fs::temp_directory_path() / "sinter-api-vanishing";
  fs::remove_all(folder);
  fs::copy(SINTER_SAMPLES_DIR "/tiny-llama", folder, fs::copy_options::recursive);
  sinter_device* device = nullptr;
  sinter_model* model = nullptr;
  sinter_plan* plan = nullptr;
  sinter_executable* executable = nullptr;
  sinter_language_model* language_model = nullptr;
  ok(sinter_device_open("cpu", &device));
  ok(sinter_model_open(folder.c_str(), nullptr, &model));
  ok(sinter_compile(model, nullptr, &plan));
  ok(sinter_language_model_open(folder.c_str(), device, nullptr, &language_model));
  fs::resize_file(folder / "model.safetensors", 5000);
  CHECK(Outcome(sinter_load(plan, device, nullptr, nullptr, &executable)).says("5000"));
  fs::remove_all(folder);
  CHECK(Outcome(sinter_load(plan, device, nullptr, nullptr, &executable)).code ==
        SINTER_CODE_BAD_INPUT);
  CHECK(Outcome(sinter_plan_save(plan, folder.c_str(), nullptr)).code == SINTER_CODE_BAD_INPUT);
  // The language model was loaded before and needs the files no more.
  const int32_t prompt[] = {1, 5, 9};
  const int32_t* const prompts[] = {prompt};
  const size_t lengths[] = {3};
  ok(sinter_language_model_generate(language_model, prompts, lengths, 1, nullptr, nullptr,
                                    nullptr));
  sinter_language_model_free(language_model);
  sinter_plan_free(plan);
  sinter_model_free(model);
  sinter_device_free(device);
}

TEST_CASE("errors name the options of this interface, not those of the program") {
  const Handles handles;
  sinter_report* report = nullptr;
  const Outcome outcome(sinter_verify(handles.model, handles.device, nullptr, nullptr, &report));
  CHECK(outcome.says("option weights"));
  CHECK_FALSE(outcome.says("--"));
  sinter_options* options = nullptr;
  ok(sinter_options_create(&options));
  ok(sinter_options_set(options, "dtype", "f64"));
  sinter_model* model = nullptr;
  const std::string path = SINTER_SAMPLES_DIR "/tiny-llama";
  const Outcome dtype(sinter_model_open(path.c_str(), options, &model));
  CHECK(dtype.message.starts_with("option dtype: "));
  sinter_options_free(options);
}
