#include "plan/step_traffic.h"

#include "ir/grouping.h"

namespace sinter {
namespace {

Bytes launch_bytes(const Graph& group, llvm::ArrayRef<Symbol> symbols,
                   llvm::ArrayRef<int64_t> symbol_values) {
  const Traffic traffic(group, symbols, symbol_values);
  std::vector<ValueId> ops;
  for (uint32_t i = 0; i < group.size(); ++i)
    if (computes(group.ops()[i])) ops.push_back({i});
  Bytes bytes{traffic.read(ops), 0};
  for (ValueId output : group.outputs) bytes.written += traffic.written(output);
  return bytes;
}

}  // namespace

StepTraffic::StepTraffic(const Program& program, llvm::ArrayRef<int64_t> symbol_values)
    : values_(symbol_values.begin(), symbol_values.end()) {
  for (const Kernel& kernel : program.kernels)
    kernels_.push_back(launch_bytes(kernel.group, program.symbols, values_));
}

double StepTraffic::value(const SymExpr& expression) const {
  return static_cast<double>(expression.evaluate(values_).value_or(INT64_MAX));
}

Bytes StepTraffic::of_call(const EntryPlan& entry, const GemmStep& gemm) const {
  const auto element_bytes = [&](int64_t buffer) {
    return average_bytes(entry.buffers[static_cast<size_t>(buffer)].type.dtype);
  };
  const double m = value(gemm.m), n = value(gemm.n), k = value(gemm.k);
  double a = m * k, b = k * n, c = m * n;
  for (const GemmStep::Loop& loop : gemm.loops) {
    const double count = value(loop.count);
    // An operand without a stride is shared by all repetitions.
    if (!loop.a_stride.is(0)) a *= count;
    if (!loop.b_stride.is(0)) b *= count;
    if (!loop.c_stride.is(0)) c *= count;
  }
  Bytes bytes{a * element_bytes(gemm.a.buffer) + b * element_bytes(gemm.b.buffer),
              c * element_bytes(gemm.c.buffer)};
  if (gemm.bias >= 0) bytes.read += n * element_bytes(gemm.bias);
  if (gemm.residual >= 0) bytes.read += c * element_bytes(gemm.residual);
  return bytes;
}

Bytes StepTraffic::of(const EntryPlan& entry, const Step& step) const {
  return visit(
      step, [&](const KernelStep& run) { return kernels_[run.kernel]; },
      [&](const GemmStep& gemm) { return of_call(entry, gemm); },
      [&](const CopyStep& copy) {
        const double bytes = value(storage_bytes(entry.buffers[copy.from].type));
        return Bytes{bytes, bytes};
      },
      [&](const CollectiveStep& run) {
        // Through the exchange buffer; what other ranks read is not counted.
        const double bytes = value(storage_bytes(entry.buffers[run.from].type));
        return Bytes{2 * bytes, 2 * bytes};
      });
}

}  // namespace sinter
