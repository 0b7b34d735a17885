#include "driver/profile/costs.h"

#include <algorithm>

#include "driver/compile/plan_summary.h"

namespace sinter {
namespace {

class Sizes {
 public:
  explicit Sizes(llvm::ArrayRef<int64_t> values) : values_(values) {}

  double of(const SymExpr& expression) const {
    const std::optional<int64_t> value = expression.evaluate(values_);
    return value ? static_cast<double>(*value) : static_cast<double>(INT64_MAX);
  }
  double of(Dim dim) const { return of(SymExpr(dim)); }
  double elements(const TensorType& type) const {
    double product = 1;
    for (Dim dim : type.dims) product *= of(dim);
    return product;
  }
  double bytes(const TensorType& type) const {
    return elements(type) * static_cast<double>(size_bytes(type.dtype));
  }

 private:
  llvm::ArrayRef<int64_t> values_;
};

bool is_attention(const Op& op) {
  return op.kind == OpKind::attention || op.kind == OpKind::attention_few;
}

/// Rows of the cache that the op reads for one sequence.
double rows_seen(const Op& op, const VisibleRows& visible, double rows) {
  auto each = static_cast<double>(visible.each);
  if (op.attrs.has(AttrName::window))
    each = std::min(each, static_cast<double>(op.attrs.get<int64_t>(AttrName::window)));
  return std::min(each, rows);
}

/// Bytes of keys and values that bytes_moved() counts and the op does not see.
double unseen_bytes(const Graph& graph, const Op& op, const Sizes& sizes,
                    const VisibleRows& visible) {
  double total = 0;
  for (size_t i : {size_t{1}, size_t{2}}) {
    const TensorType& cache = graph[op.operands[i]].type;
    const double rows = sizes.of(cache.dims[0]);
    const double seen = rows_seen(op, visible, rows) * static_cast<double>(visible.sequences);
    if (rows > 0) total += sizes.bytes(cache) / rows * (rows - std::min(seen, rows));
  }
  return total;
}

/// Two for each multiplication: queries with keys, weights with values.
double attention_flops(const Graph& graph, const Op& op, const Sizes& sizes,
                       const VisibleRows& visible) {
  const TensorType& queries = graph[op.operands[0]].type;
  const TensorType& keys = graph[op.operands[1]].type;
  const TensorType& values = graph[op.operands[2]].type;
  const double key_width = sizes.of(keys.dims.back());
  if (key_width == 0) return 0;
  const double seen = rows_seen(op, visible, sizes.of(keys.dims[0]));
  // A token's queries are as wide for values as they are for keys, head by head.
  return 2 * seen * sizes.elements(queries) * (1 + sizes.of(values.dims.back()) / key_width);
}

void add_kernel(const Kernel& kernel, const Sizes& sizes, const VisibleRows& visible,
                StepCost& cost) {
  const Graph& graph = kernel.group;
  for (const Op& op : graph.ops()) {
    if (is_attention(op)) {
      cost.read_bytes -= unseen_bytes(graph, op, sizes, visible);
      cost.flops += attention_flops(graph, op, sizes, visible);
    } else if (op.kind == OpKind::linear || op.kind == OpKind::matvec) {
      cost.flops += 2 * sizes.elements(op.type) * sizes.of(graph[op.operands[0]].type.dims.back());
    }
  }
  for (ValueId output : graph.outputs) {
    const Op& op = graph[output];
    cost.written_bytes +=
        sizes.bytes(op_class(op) == OpClass::append ? graph[op.operands[1]].type : op.type);
  }
}

double repeats(const GemmStep& step, const Sizes& sizes) {
  double product = 1;
  for (const GemmStep::Loop& loop : step.loops) product *= sizes.of(loop.count);
  return product;
}

}  // namespace

StepCost step_cost(const Program& program, const EntryPlan& entry, const Step& step,
                   llvm::ArrayRef<int64_t> sizes, VisibleRows visible) {
  const Sizes values(sizes);
  StepCost cost;
  if (const auto* run = std::get_if<KernelStep>(&step.run)) {
    add_kernel(program.kernels[run->kernel], values, visible, cost);
  } else {
    const GemmStep& gemm = std::get<GemmStep>(step.run);
    const double results = values.of(gemm.m) * values.of(gemm.n) * repeats(gemm, values);
    cost.written_bytes =
        results * static_cast<double>(size_bytes(entry.buffers[gemm.c.buffer].type.dtype));
    cost.flops = 2 * results * values.of(gemm.k);
  }
  cost.read_bytes += step_bytes(program, entry, step, sizes) - cost.written_bytes;
  cost.read_bytes = std::max(cost.read_bytes, 0.0);
  return cost;
}

std::string step_title(const Program& program, const EntryPlan& entry, const Step& step,
                       llvm::ArrayRef<int64_t> sizes) {
  if (const auto* run = std::get_if<KernelStep>(&step.run))
    return program.kernels[run->kernel].name;
  const Sizes values(sizes);
  const GemmStep& gemm = std::get<GemmStep>(step.run);
  const double times = repeats(gemm, values);
  return fmt::format("gemm {}{:.0f}x{:.0f}x{:.0f} {}",
                     times == 1 ? "" : fmt::format("{:.0f} of ", times), values.of(gemm.m),
                     values.of(gemm.n), values.of(gemm.k),
                     to_string(entry.buffers[gemm.a.buffer].type.dtype));
}

}  // namespace sinter
