// Kernels of the caller: records of ir/custom_op.h.
#include "api/border.h"
#include "api/callbacks.h"
#include "ir/custom_op.h"

struct sinter_kernel {
  sinter::CustomOp op;
  sinter_evaluate evaluate = nullptr;
  void* user = nullptr;
};

struct sinter_evaluation {
  const sinter::CustomOpCall& call;
};

using namespace sinter;

sinter_error* sinter_kernel_create(const char* name, const char* signature, const char* source,
                                   const char* function, sinter_kernel** kernel) {
  return make_handle(kernel, [&]() -> Result<std::unique_ptr<sinter_kernel>> {
    SINTER_TRY(require(name, "name"));
    SINTER_TRY(require(signature, "signature"));
    SINTER_TRY(require(source, "source"));
    SINTER_TRY(require(function, "function"));
    auto made = std::make_unique<sinter_kernel>();
    made->op.name = name;
    made->op.signature = signature;
    made->op.source = source;
    made->op.function = function;
    return made;
  });
}

void sinter_kernel_launch(sinter_kernel* kernel, int64_t threads, int64_t row_axes,
                          int64_t shared_bytes) {
  if (!kernel) return;
  kernel->op.threads = threads;
  kernel->op.row_axes = row_axes;
  kernel->op.shared_bytes = shared_bytes;
}

sinter_error* sinter_kernel_open_operand(sinter_kernel* kernel, size_t operand) {
  constexpr size_t kMaxOperands = 8;
  return border([&]() -> Status {
    SINTER_TRY(require(kernel, "kernel"));
    if (operand >= kMaxOperands)
      return fail(fmt::format("operand {}, an op has at most {}", operand, kMaxOperands),
                  kernel->op.name, {}, ExitCode::usage);
    auto& open = kernel->op.open_operands;
    if (open.size() <= operand) open.resize(operand + 1);
    open[operand] = true;
    return {};
  });
}

void sinter_kernel_open_result(sinter_kernel* kernel) {
  if (kernel) kernel->op.open_result = true;
}

void sinter_kernel_numbers(sinter_kernel* kernel, size_t count) {
  if (kernel) kernel->op.number_count = static_cast<int64_t>(count);
}

void sinter_kernel_evaluation(sinter_kernel* kernel, sinter_evaluate evaluate, void* user,
                              double tolerance) {
  if (!kernel) return;
  kernel->evaluate = evaluate;
  kernel->user = user;
  kernel->op.exact = tolerance == 0;
  kernel->op.tolerance = tolerance;
}

sinter_error* sinter_kernel_register(const sinter_kernel* kernel) {
  return border([&]() -> Status {
    SINTER_TRY(require(kernel, "kernel"));
    CustomOp op = kernel->op;
    if (kernel->evaluate)
      op.evaluate = [evaluate = kernel->evaluate, user = kernel->user](const CustomOpCall& call) {
        const sinter_evaluation evaluation{call};
        const auto done = call_back("evaluation", [&] { return evaluate(user, &evaluation); });
        return done && *done == 0;
      };
    return register_custom_op(std::move(op));
  });
}

void sinter_kernel_free(sinter_kernel* kernel) { free_handle(kernel); }

int sinter_evaluation_precise(const sinter_evaluation* evaluation) {
  return evaluation && evaluation->call.precise ? 1 : 0;
}
size_t sinter_evaluation_operand_count(const sinter_evaluation* evaluation) {
  return evaluation ? evaluation->call.operands.size() : 0;
}
size_t sinter_evaluation_rank(const sinter_evaluation* evaluation, size_t index) {
  if (!evaluation) return 0;
  const CustomOpCall& call = evaluation->call;
  return index < call.operands.size() ? call.operands[index].dims.size() : call.result_dims.size();
}
const int64_t* sinter_evaluation_dims(const sinter_evaluation* evaluation, size_t index) {
  if (!evaluation) return nullptr;
  const CustomOpCall& call = evaluation->call;
  return index < call.operands.size() ? call.operands[index].dims.data() : call.result_dims.data();
}
const void* sinter_evaluation_operand(const sinter_evaluation* evaluation, size_t index) {
  if (!evaluation) return nullptr;
  const CustomOpCall& call = evaluation->call;
  return index < call.operands.size() ? call.operands[index].data : nullptr;
}
void* sinter_evaluation_result(const sinter_evaluation* evaluation) {
  return evaluation ? evaluation->call.result : nullptr;
}
double sinter_evaluation_number(const sinter_evaluation* evaluation, size_t index) {
  return evaluation && index < evaluation->call.numbers.size() ? evaluation->call.numbers[index]
                                                               : 0;
}
