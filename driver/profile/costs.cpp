#include "driver/profile/costs.h"

#include <algorithm>

#include "driver/compile/plan_summary.h"
#include "ir/op_flops.h"
#include "ir/op_roles.h"
#include "ir/type_sizes.h"

namespace sinter {
namespace {

class Sizes {
 public:
  explicit Sizes(llvm::ArrayRef<int64_t> values) : values_(values) {}

  double of(const SymExpr& expression) const {
    const std::optional<int64_t> value = expression.evaluate(values_);
    return value ? static_cast<double>(*value) : static_cast<double>(INT64_MAX);
  }

 private:
  llvm::ArrayRef<int64_t> values_;
};

/// Bytes of a cache that StepTraffic counts and the op does not see.
double unseen_bytes(const Op& op, const TensorType& cache, const CallSizes& call,
                    int64_t sequences) {
  const TypeSizes sizes(call.symbol_values);
  const double rows = sizes.extent(cache.dims[cache.rank() - 2]);
  const double seen = rows_seen(op, cache, call) * static_cast<double>(sequences);
  return rows > 0 ? sizes.bytes(cache) / rows * (rows - std::min(seen, rows)) : 0;
}

/// The kernel's operations; of what StepTraffic counts as read, takes back what is not seen.
void add_kernel(const Kernel& kernel, const CallSizes& call, int64_t sequences, StepCost& cost) {
  const Graph& graph = kernel.group;
  for (const Op& op : graph.ops()) {
    for (ValueId cache : operands_with(op, OperandRole::cache))
      cost.read_bytes -= unseen_bytes(op, graph[cache].type, call, sequences);
    if (has_matrix(op) || reads_cache(op)) cost.flops += flops(graph, op, call);
  }
}

double repeats(const GemmStep& step, const Sizes& sizes) {
  double product = 1;
  for (const GemmStep::Loop& loop : step.loops) product *= sizes.of(loop.count);
  return product;
}

}  // namespace

StepCosts::StepCosts(const Program& program, llvm::ArrayRef<int64_t> sizes, VisibleRows visible)
    : program_(program),
      sizes_(sizes.begin(), sizes.end()),
      visible_(visible),
      traffic_(program, sizes) {}

StepCost StepCosts::of(const EntryPlan& entry, const Step& step) const {
  const Sizes values(sizes_);
  const Bytes moved = traffic_.of(entry, step);
  StepCost cost{moved.read, moved.written, 0};
  visit(
      step,
      [&](const KernelStep& run) {
        add_kernel(program_.kernels[run.kernel], {program_.symbols, sizes_, visible_.each},
                   visible_.sequences, cost);
      },
      [&](const GemmStep& gemm) {
        cost.flops =
            2 * values.of(gemm.m) * values.of(gemm.n) * repeats(gemm, values) * values.of(gemm.k);
      },
      [](const CopyStep&) {}, [](const CollectiveStep&) {});
  cost.read_bytes = std::max(cost.read_bytes, 0.0);
  return cost;
}

std::string step_title(const Program& program, const EntryPlan& entry, const Step& step,
                       llvm::ArrayRef<int64_t> sizes) {
  const Sizes values(sizes);
  return visit(
      step, [&](const KernelStep& run) { return program.kernels[run.kernel].name; },
      [&](const GemmStep& gemm) {
        const double times = repeats(gemm, values);
        return fmt::format("gemm {}{:.0f}x{:.0f}x{:.0f} {}",
                           times == 1 ? "" : fmt::format("{:.0f} of ", times), values.of(gemm.m),
                           values.of(gemm.n), values.of(gemm.k),
                           to_string(entry.buffers[gemm.a.buffer].type.dtype));
      },
      [&](const CopyStep& copy) {
        const TensorType& type = entry.buffers[copy.from].type;
        return fmt::format("copy {:.0f} {}", TypeSizes(sizes).elements(type),
                           to_string(type.dtype));
      },
      [&](const CollectiveStep& run) {
        const TensorType& type = entry.buffers[run.from].type;
        return fmt::format("{} {:.0f} {}", to_string(run.kind), TypeSizes(sizes).elements(type),
                           to_string(type.dtype));
      });
}

}  // namespace sinter
