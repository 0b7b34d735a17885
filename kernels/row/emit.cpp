// Which form a row kernel takes: trials of its text tell what would have to stay in registers.
#include "kernels/row/emit.h"

#include "codegen/emission/emit_row_kernel.h"
#include "codegen/emission/emit_scalar.h"
#include "kernels/row/schedule.h"

namespace sinter {
namespace {

/// The input of the schedule: values are counted between the passes that they live across.
RowProblem problem_of(const GroupForm& form, const std::map<std::string, KeptValue>& kept,
                      llvm::ArrayRef<Symbol> symbols, const BlockForm& block) {
  RowProblem problem;
  problem.min_threads = block.min_threads;
  problem.alone = block.alone;
  problem.rows = volume(form.prefix);
  problem.reductions = llvm::count_if(form.tasks, [](const Task& t) { return t.output < 0; });
  problem.wide_results = llvm::count_if(form.tasks, [&](const Task& t) {
    return t.output >= 0 && !form.stages[t.stage].axes.empty();
  });
  for (uint32_t s = 0; s < form.stages.size(); ++s) {
    const int64_t width = form.stages[s].width.upper_bound(symbols);
    RowProblem::Stage stage{.lanes = form.stages[s].lanes,
                            .chunks = ceil_div(width, 8),
                            .symbolic = !form.stages[s].width.is_constant()};
    for (uint32_t pass = 1; pass < form.passes(); ++pass) {
      int64_t bytes = 0;
      for (const auto& [key, value] : kept)
        if (value.stage == s && value.first < pass && pass <= value.last)
          bytes += is_narrow(value.dtype) ? 2 : std::max<int64_t>(4, whole_bytes(value.dtype));
      stage.kept_bytes = std::max(stage.kept_bytes, bytes);
    }
    problem.stages.push_back(stage);
  }
  return problem;
}

/// A configuration, and what stays in registers with it.
struct RowPlan {
  RowConfig config;
  std::optional<Residents> residents;  // absent: looped
};

Result<RowPlan> plan_rows(const GroupForm& form, llvm::ArrayRef<Symbol> symbols,
                          llvm::ArrayRef<SymbolId> parameters, const BlockForm& block,
                          RowScheduler schedule) {
  // Trials of the text tell what would stay in registers: as little as possible, or with early
  // loads.
  const RowConfig trial;
  Residents needed, all;
  RowKernel first(form, symbols, parameters, trial, block, &needed);
  SINTER_TRY(first.emit());
  all.early = first.early_loads();
  // Loads that all rows share hit a cache by then: not worth registers where rows are many.
  if (has_many_rows(volume(form.prefix), symbols))
    llvm::erase_if(all.early, [](const ValueEmitter::EarlyLoad& load) { return !load.of_row; });
  SINTER_TRY(RowKernel(form, symbols, parameters, trial, block, &all).emit());

  Residents* residents = &all;
  auto config = schedule(problem_of(form, all.kept, symbols, block));
  if (config && !config->on_chip) {
    residents = &needed;
    config = schedule(problem_of(form, needed.kept, symbols, block));
  }
  if (!config)
    return fail("no configuration of a row kernel fits the device", {},
                "compute the ops in separate kernels", ExitCode::internal_error);
  RowPlan plan{*config, {}};
  if (config->on_chip) plan.residents = std::move(*residents);
  return plan;
}

}  // namespace

Result<KernelBody> emit_rows_in(const GroupForm& form, llvm::ArrayRef<Symbol> symbols,
                                llvm::ArrayRef<SymbolId> parameters, const BlockForm& block,
                                RowScheduler schedule) {
  SINTER_LET(plan, plan_rows(form, symbols, parameters, block, schedule));
  Residents* residents = plan.residents ? &*plan.residents : nullptr;
  return RowKernel(form, symbols, parameters, plan.config, block, residents).emit();
}

Result<KernelBody> emit_rows(const EmitContext& context) {
  SINTER_LET(form, analyze_group(context.group, context.prefix_rank, context.symbols));
  return emit_rows_in(form, context.symbols, context.parameters, context.block,
                      [&](const RowProblem& problem) {
                        return schedule_rows(problem, context.symbols, context.device);
                      });
}

Result<KernelBody> emit_rows_in_block(const GroupForm& form, llvm::ArrayRef<Symbol> symbols,
                                      llvm::ArrayRef<SymbolId> parameters, int64_t threads,
                                      int64_t rows, std::string_view when_read,
                                      const DeviceDescription& device) {
  const BlockForm block{
      .number = "0", .alone = false, .side_guard = "blockIdx.x == 0", .when_read = when_read};
  return emit_rows_in(form, symbols, parameters, block, [&](const RowProblem& problem) {
    return std::optional(schedule_rows_in_block(problem, threads, rows, device));
  });
}

}  // namespace sinter
