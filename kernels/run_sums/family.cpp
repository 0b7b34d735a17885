// Kernels of rows that also sum down their columns, runs of virtual lanes apart.
#include "kernels/family.h"

#include "codegen/emission/kernel_body.h"
#include "ir/column_runs.h"
#include "ir/sym_expr.h"

namespace sinter {

EmitKernel emit_run_sums;
std::optional<KernelCost> run_sums_cost(const GroupView& group, int64_t min_threads);

namespace {

// A lane walks at least 8 rows one after the other, whatever the number of rows is.
constexpr int64_t kMinRows = 4096;
// A lane walks the same number of rows, whatever their width, and waits for each. (One H200, the
// gradient of a norm of heads: 16384 x 64 takes 40 us in one kernel. The limit between 64 and 512
// is the cost model's, not measured.)
constexpr int64_t kMinColumns = 512;
// Runs that occupy the multiprocessors of the reference machine.
constexpr int64_t kRunsThatFill = 128;
// Lanes of a run times columns: with more, a block of threads keeps them and its rows no longer in
// registers, and reads the rows twice (32768 x 2048, one H100: 579 us where the two kernels take
// 511).
constexpr int64_t kSumsInRegisters = 8192;

/// `op` adds all rows of constant numbers of rows and columns, which are enough.
bool sums_columns(const Graph& graph, const Op& op) {
  if (op.kind != OpKind::reduce_sum || !is_float(op.type.dtype)) return false;
  const DimsRef dims = graph[op.operands[0]].type.dims;
  if (dims.size() < 2 || !llvm::all_of(dims, [](Dim dim) { return dim.is_constant(); }))
    return false;
  const auto& axes = op.attrs.get<std::vector<int64_t>>(AttrName::axes);
  const SymExpr rows = volume(dims.drop_back());
  const int64_t width = dims.back().constant();
  return volume(op.type.dims).is(width) && axes.back() + 1 < static_cast<int64_t>(dims.size()) &&
         !rows.overflowed() && rows.constant() >= kMinRows && width >= kMinColumns &&
         width % kChunk == 0 && width <= kMaxColumnsOfRuns;
}

std::optional<SideResult> runs_of_columns(const Graph& graph, const Op& op, SideKind kind) {
  if (kind != SideKind::column_runs || !sums_columns(graph, op)) return std::nullopt;
  const Dims& dims = graph[op.operands[0]].type.dims;
  const int64_t lanes = column_lanes(dims), width = dims.back().constant();
  int64_t of_run = 1;
  while (2 * of_run <= kMaxLanesOfRun && 2 * of_run * width <= kSumsInRegisters &&
         lanes / (2 * of_run) >= kRunsThatFill)
    of_run *= 2;
  return SideResult{.size = lanes / of_run};
}

bool any_sums_runs(llvm::ArrayRef<const OpFacts*> facts) {
  return llvm::any_of(facts, [](const OpFacts* one) { return one->sums_runs; });
}

}  // namespace

extern const KernelFamily run_sums_family;
constinit const KernelFamily run_sums_family{
    .name = "run_sums",
    .kind = KernelFamily::Kind::rows,
    .make = emit_run_sums,
    .cost = run_sums_cost,
    .claims = any_sums_runs,
    .side_result = runs_of_columns,
};

}  // namespace sinter
