// Kernels of rows that also sum down their columns: a loop over the rows of a lane around the text
// of a row.
//
//   const int thread = threadIdx.x % 32;
//   const long long lane = blockIdx.x * 8ll + threadIdx.x / 32;
//   ColumnLane<Sum> sums1_0[3], sums1_1[3];
//   for (int step = 0; step < 32; ++step) {
//     const long long row = row_of_lane<1024>(lane, step);
//     ... the row, as kernels/row has it, with sums1_0[j].take(e, v7) for each element
//   }
//   __shared__ float joined[3072];
//   store_run<32, 32, 8, 768>(sums1_0, joined, y1 + ...);
#include "kernels/row/emit.h"

#include "codegen/emission/config_text.h"
#include "codegen/emission/emit_context.h"
#include "codegen/emission/emit_scope.h"
#include "codegen/emission/emit_value.h"
#include "codegen/emission/kernel_body.h"
#include "ir/column_runs.h"
#include "ir/fault.h"
#include "ir/integers.h"
#include "kernels/run_sums/schedule.h"

namespace sinter {
namespace {

/// The extents in which all run_sums of a group agree.
struct Runs {
  int64_t rows = 0, lanes = 0, count = 0;
  int64_t lanes_of_run() const { return lanes / count; }
  friend bool operator==(const Runs&, const Runs&) = default;
};

Runs runs_of(const Graph& graph, const Op& op) {
  const Dims& dims = graph[op.operands[0]].type.dims;
  return {volume(DimsRef(dims).drop_back()).constant(), column_lanes(dims),
          op.attrs.get<int64_t>(AttrName::runs)};
}

class RunSumsKernel {
 public:
  RunSumsKernel(const EmitContext& context, const GroupForm& form)
      : context_(context), form_(form) {
    for (const Task& task : form.tasks) {
      if (task.output < 0 || op_class(op(task)) != OpClass::run_sums) continue;
      tasks_.push_back(task);
      problem_.sums += static_cast<int64_t>(op(task).operands.size());
    }
    runs_ = runs_of(form.graph, op(tasks_[0]));
    problem_.lanes = runs_.lanes_of_run();
  }

  Result<KernelBody> emit() {
    for (const Task& task : tasks_)
      if (!(runs_of(form_.graph, op(task)) == runs_))
        return fail("the sums of runs in a group have different runs", {},
                    "compute the ops in separate kernels", ExitCode::internal_error);
    BlockForm block = context_.block;
    block.in_loop = true;
    bool must = false;
    const auto schedule = [&](const RowProblem& rows) {
      problem_.rows = rows;
      auto config = schedule_run_sums(problem_, context_.device);
      if (!config) return config;
      config->on_chip |= must;  // the sums are in registers, whatever else is
      must = true;
      config_ = *config;
      return config;
    };
    SINTER_LET(body, emit_rows_in(form_, context_.symbols, context_.parameters, block, schedule));
    body.includes += "#include \"kernels/run_sums/run_sums.cuh\"\n";
    body.text = walk(body.text) + results();
    body.launch = Launch{};
    body.launch.rows = SymExpr(runs_.count);
    body.launch.threads = config_.threads;
    body.takes_registers = true;
    return body;
  }

 private:
  const Op& op(const Task& task) const { return form_.graph[task.value]; }
  const Stage& stage(const Task& task) const { return form_.stages[task.stage]; }
  int64_t chunks(const Task& task) const {
    return config_.chunks_per_thread(
        {.lanes = stage(task).lanes, .chunks = stage(task).width.constant() / kChunk});
  }

  std::string walk(const std::string& row) const {
    std::string text = fmt::format(
        "const int thread = threadIdx.x % {0};\n"
        "const long long lane = {1} * {2}ll + threadIdx.x / {0};\n",
        config_.threads_per_row, context_.block.number, problem_.lanes);
    for (const Task& task : tasks_)
      for (size_t k = 0; k < op(task).operands.size(); ++k)
        text +=
            fmt::format("ColumnLane<Sum> {}[{}];\n", run_sums_name(task.output, k), chunks(task));
    const std::string own = fmt::format("row_of_lane<{}>(lane, {})", runs_.lanes,
                                        fault(Fault::other_reduction_tree) ? "step ^ 1" : "step");
    std::string step =
        runs_.rows % (kChunk * runs_.lanes) == 0
            ? fmt::format("constexpr bool live = true;\nconst long long row = {};\n", own)
            : fmt::format(
                  "const long long own_row = {0};\nconst bool live = own_row < {1};\n"
                  "const long long row = live ? own_row : {1} - 1;\n",
                  own, runs_.rows);
    step += row;
    // The next row's reductions take the same shared memory.
    if (config_.threads_per_row > 32) step += "__syncthreads();\n";
    return text + fmt::format("#pragma unroll 1\nfor (int step = 0; step < {}; ++step) {{\n{}}}\n",
                              rows_of_lane(runs_.rows), indented(step));
  }

  std::string results() const {
    int64_t floats = 0;
    for (const Task& task : tasks_)
      floats = std::max(floats, problem_.lanes / 2 * stage(task).width.constant());
    std::string text = floats == 0 ? "" : fmt::format("__shared__ float joined[{}];\n", floats);
    for (const Task& task : tasks_) {
      const int64_t count = static_cast<int64_t>(op(task).operands.size());
      const int64_t width = stage(task).width.constant();
      for (int64_t k = 0; k < count; ++k)
        text += call_text(fmt::format("store_run<{}, {}, {}, {}>", config_.threads_per_row,
                                      config_.owners(stage(task).lanes), problem_.lanes, width),
                          {run_sums_name(task.output, k), floats == 0 ? "nullptr" : "joined",
                           fmt::format("{} + ({} * {}ll + {}) * {}", form_.output_name(task.output),
                                       context_.block.number, count, k, width)});
    }
    return text;
  }

  const EmitContext& context_;
  const GroupForm& form_;
  std::vector<Task> tasks_;  // of run_sums
  Runs runs_;
  RunSumsProblem problem_{.rows = {}, .lanes = 1, .sums = 0};
  RowConfig config_;
};

}  // namespace

Result<KernelBody> emit_run_sums(const EmitContext& context) {
  SINTER_LET(form, analyze_group(context.group, context.prefix_rank, context.symbols, true));
  return RunSumsKernel(context, form).emit();
}

}  // namespace sinter
