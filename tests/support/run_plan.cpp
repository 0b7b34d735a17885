#include "support/run_plan.h"

#include <algorithm>

#include "driver/generate/decoder.h"
#include "frontends/check_tensors.h"
#include "frontends/files/random_tensors.h"
#include "plan/plan_file.h"
#include "runtime/host/executable.h"

namespace sinter::test {
namespace {

constexpr int64_t kSize = 3;

double elements(const TensorType& type, llvm::ArrayRef<int64_t> sizes) {
  double count = 1;
  for (int64_t extent : concrete_dims(type, sizes)) count *= static_cast<double>(extent);
  return count;
}

/// Elements of the largest operand or result in a graph; of an op that sums products, no fewer than
/// its products.
double largest_op(const Graph& graph, llvm::ArrayRef<int64_t> sizes) {
  double largest = 0;
  for (const Op& op : graph.ops()) {
    double operands = 1;
    for (ValueId operand : op.operands)
      operands = std::max(operands, elements(graph[operand].type, sizes));
    const bool sums = op_class(op) == OpClass::contraction || op_class(op) == OpClass::anchor;
    const double result = elements(op.type, sizes);
    largest = std::max(largest, sums ? result * operands : std::max(result, operands));
  }
  return largest;
}

}  // namespace

double largest_of(const Program& program, llvm::ArrayRef<int64_t> sizes) {
  double largest = 0;
  const std::vector<int64_t> greatest = greatest_symbol_values(program.symbols);
  for (const Weight& weight : program.weights)
    largest = std::max(largest, largest_op(weight.init, greatest));
  for (const State& state : program.states)
    largest = std::max(largest, elements(state.type, sizes));
  for (const Kernel& kernel : program.kernels)
    largest = std::max(largest, largest_op(kernel.group, sizes));
  for (const EntryPlan& entry : program.entries) {
    const auto layout = arena_layout(entry, sizes);
    largest = std::max(largest, layout ? static_cast<double>(layout->bytes) : 1e30);
    for (const Buffer& buffer : entry.buffers)
      largest = std::max(largest, elements(buffer.type, sizes));
    for (const Step& step : entry.steps)
      visit(
          step, [](const KernelStep&) {},
          [&](const GemmStep& gemm) {
            double products = 1;
            const auto times = [&](const SymExpr& size) {
              const auto value = size.evaluate(sizes);
              products *= value ? static_cast<double>(std::max<int64_t>(*value, 1)) : 1e30;
            };
            for (const SymExpr* size : {&gemm.m, &gemm.n, &gemm.k}) times(*size);
            for (const GemmStep::Loop& loop : gemm.loops) times(loop.count);
            largest = std::max(largest, products);
          },
          [](const CopyStep&) {}, [](const CollectiveStep&) {});
  }
  return largest;
}

namespace {

std::string run_entries(const std::shared_ptr<const Program>& program,
                        llvm::ArrayRef<int64_t> sizes) {
  const Module tables{program->name, program->symbols, program->weights, {}, {}};
  const RandomTensorSource source(1, file_tensors(tables));
  const auto model = HostExecutable::load(program, &source);
  if (!model) return model.error().message();
  std::string outcome;
  for (const EntryPlan& entry : program->entries) {
    auto session = HostSession::create(*model, sizes);
    if (!session) return session.error().message();
    std::vector<HostTensor> inputs;
    for (uint32_t id : entry.inputs) {
      const TensorType& type = entry.buffers[id].type;
      auto input = make_tensor(type.dtype, concrete_dims(type, sizes));
      if (!input) return input.error().message();
      std::fill(input->bytes.begin(), input->bytes.end(), std::byte{0});
      inputs.push_back(std::move(*input));
    }
    const auto result = session->run(entry.name, sizes, addresses_of(inputs), {});
    if (!result) return result.error().message();
    for (const HostTensor& output : result->outputs)
      outcome +=
          content_hash({reinterpret_cast<const char*>(output.bytes.data()), output.bytes.size()});
  }
  return outcome;
}

}  // namespace

std::string outcome_on_host(const std::shared_ptr<const Program>& program, double most) {
  const std::vector<int64_t> sizes = symbol_values_near(program->symbols, kSize);
  if (largest_of(*program, sizes) > most) return {};
  return run_entries(program, sizes);
}

}  // namespace sinter::test
