// A module, compiled and loaded on the CPU through the C interface, for tests that misuse it.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "sinter_c.h"

/// Takes over an error; what it says, with its code.
struct Outcome {
  explicit Outcome(sinter_error* error)
      : code(sinter_error_code(error)), message(sinter_error_message(error)) {
    sinter_error_free(error);
  }
  bool says(const std::string& part) const { return message.find(part) != std::string::npos; }

  sinter_code code;
  std::string message;
};

inline void ok(sinter_error* error) {
  const Outcome outcome(error);
  if (outcome.code != SINTER_CODE_NONE) FAIL(outcome.message);
}

/// The weights of kBlock; `code`: of the first error.
inline bool load_weights(sinter_weights* weights, sinter_code& code) {
  static const std::vector<float> table(80, 0.5f), w(8, 1.5f);
  const int64_t table_dims[] = {10, 8}, w_dims[] = {8};
  sinter_error* error =
      sinter_weights_add(weights, "table", "f32", 2, table_dims, nullptr, table.data(), 0);
  if (!error) error = sinter_weights_add(weights, "w", "f32", 1, w_dims, nullptr, w.data(), 0);
  code = sinter_error_code(error);
  sinter_error_free(error);
  return code == SINTER_CODE_NONE;
}

inline const std::string kBlock = R"(
module @block {
  symbol N in [1, 64]
  weight %table : f32[10, 8] = file {tensor = "table"}
  weight %w : f32[8] = file {tensor = "w"}
  entry @main(%ids: i32[N], %r: f32[N, 8]) -> (%y) {
    %e = embedding %table, %ids : f32[N, 8]
    %s = add %e, %r : f32[N, 8]
    %n = rms_norm %s, %w {eps = 1e-5} : f32[N, 8]
    %m = reduce_sum %n {axes = [0]} : f32[1, 8]
    %y = add %n, %m : f32[N, 8]
  }
})";

/// Handles of a call of three rows. A test may free some; what it sets to null stays freed.
struct Handles {
  Handles() {
    ok(sinter_model_parse(kBlock.data(), kBlock.size(), "block", &model));
    ok(sinter_compile(model, nullptr, &plan));
    ok(sinter_device_open("cpu", &device));
    ok(sinter_weights_create(&weights));
    sinter_code code = SINTER_CODE_NONE;
    REQUIRE(load_weights(weights, code));
    ok(sinter_load(plan, device, weights, nullptr, &executable));
    ok(sinter_session_create(executable, nullptr, nullptr, 0, &session));
    ok(sinter_call_create(session, "main", &call));
    const int64_t rows[] = {3}, matrix[] = {3, 8};
    ok(sinter_call_input(call, "ids", "i32", 1, rows, nullptr, ids));
    ok(sinter_call_input(call, "r", "f32", 2, matrix, nullptr, r));
    ok(sinter_call_output(call, "y", "f32", 2, matrix, nullptr, y));
  }
  ~Handles() {
    for (int kind = 0; kind < kKinds; ++kind) free(kind);
  }
  Handles(const Handles&) = delete;

  static constexpr int kKinds = 7;
  /// Frees one handle, if it is there: 0 the model … 6 the call.
  void free(int kind) {
    const auto give = [](auto*& handle, auto release) { release(std::exchange(handle, nullptr)); };
    if (kind == 0) give(model, sinter_model_free);
    if (kind == 1) give(plan, sinter_plan_free);
    if (kind == 2) give(device, sinter_device_free);
    if (kind == 3) give(weights, sinter_weights_free);
    if (kind == 4) give(executable, sinter_executable_free);
    if (kind == 5) give(session, sinter_session_free);
    if (kind == 6) give(call, sinter_call_free);
  }

  sinter_model* model = nullptr;
  sinter_plan* plan = nullptr;
  sinter_device* device = nullptr;
  sinter_weights* weights = nullptr;
  sinter_executable* executable = nullptr;
  sinter_session* session = nullptr;
  sinter_call* call = nullptr;
  int32_t ids[3] = {3, 0, 9};
  float r[24] = {}, y[24] = {};
};
