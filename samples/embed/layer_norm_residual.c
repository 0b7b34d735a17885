/* layer_norm_residual.cpp in C. */
#include <math.h>
#include <sinter/sinter_c.h>
#include <stdio.h>
#include <stdlib.h>

enum { kRows = 4, kWidth = 768 };

/* Ends the program at an error. */
static void check(sinter_error* error) {
  if (!error) return;
  fprintf(stderr, "%s\n", sinter_error_message(error));
  sinter_error_free(error);
  exit(1);
}

static sinter_model* build(void) {
  sinter_module* module;
  check(sinter_module_create("post_norm", &module));
  check(sinter_module_symbol(module, "N", 1, 4096, 1, NULL));
  check(sinter_module_weight(module, "weight", "f32[768]"));
  check(sinter_module_weight(module, "bias", "f32[768]"));
  sinter_graph* graph;
  check(sinter_module_entry(module, "main", &graph));
  sinter_value x, residual, sum, y, norm[3];
  check(sinter_graph_input(graph, "x", "f32[N, 768]", &x));
  check(sinter_graph_input(graph, "residual", "f32[N, 768]", &residual));
  const sinter_value terms[] = {x, residual};
  check(sinter_graph_op(graph, "add", terms, 2, NULL, "sum", &sum));
  norm[0] = sum;
  check(sinter_graph_use(graph, "weight", &norm[1]));
  check(sinter_graph_use(graph, "bias", &norm[2]));
  check(sinter_graph_op(graph, "layer_norm", norm, 3, "eps = 1e-5", "y", &y));
  check(sinter_graph_output(graph, y));
  sinter_model* model;
  check(sinter_model_build(module, &model));
  sinter_module_free(module);
  return model;
}

int main(void) {
  sinter_model* model = build();
  sinter_plan* plan;
  check(sinter_compile(model, NULL, &plan));
  sinter_decision* why;
  check(sinter_plan_why(plan, "main", "sum", "y", &why));
  printf("sum and y: %s\n", sinter_decision_reason(why));
  sinter_decision_free(why);

  static float weight[kWidth], bias[kWidth], x[kRows * kWidth], residual[kRows * kWidth],
      y[kRows * kWidth];
  for (int i = 0; i < kWidth; ++i) weight[i] = 2.0f, bias[i] = 0.5f;
  for (int i = 0; i < kRows * kWidth; ++i) {
    x[i] = sinf((float)i);
    residual[i] = 0.25f * (float)(i % 7);
  }
  const int64_t width[] = {kWidth}, shape[] = {kRows, kWidth};
  sinter_weights* weights;
  check(sinter_weights_create(&weights));
  check(sinter_weights_add(weights, "weight", "f32", 1, width, NULL, weight, 0));
  check(sinter_weights_add(weights, "bias", "f32", 1, width, NULL, bias, 0));

  sinter_device* device;
  sinter_executable* executable;
  sinter_session* session;
  sinter_call* call;
  check(sinter_device_open("cpu", &device));
  check(sinter_load(plan, device, weights, NULL, &executable));
  check(sinter_session_create(executable, NULL, NULL, 0, &session));
  check(sinter_call_create(session, "main", &call));
  check(sinter_call_input(call, "x", "f32", 2, shape, NULL, x));
  check(sinter_call_input(call, "residual", "f32", 2, shape, NULL, residual));
  check(sinter_call_output(call, "y", "f32", 2, shape, NULL, y));
  check(sinter_call_run(call));

  /* Row 0 in double. */
  double sum = 0, squares = 0, largest = 0;
  for (int i = 0; i < kWidth; ++i) sum += (double)x[i] + residual[i];
  const double mean = sum / kWidth;
  for (int i = 0; i < kWidth; ++i) squares += pow((double)x[i] + residual[i] - mean, 2);
  for (int i = 0; i < kWidth; ++i) {
    const double exact =
        ((double)x[i] + residual[i] - mean) / sqrt(squares / kWidth + 1e-5) * 2 + 0.5;
    largest = fmax(largest, fabs(exact - y[i]));
  }
  printf("largest error against double: %.1e\n", largest);

  sinter_call_free(call);
  sinter_session_free(session);
  sinter_executable_free(executable);
  sinter_weights_free(weights);
  sinter_device_free(device);
  sinter_plan_free(plan);
  sinter_model_free(model);
  return largest < 1e-5 ? 0 : 1;
}
