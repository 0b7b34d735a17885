#include "kernels/run_sums/schedule.h"

#include <algorithm>

#include "ir/column_runs.h"

namespace sinter {
namespace {

// Registers of a thread for addresses, arithmetic and loads under way; the most that it can have.
constexpr int64_t kOtherRegisters = 56, kMaxRegisters = 240;
// Unrolled chunks of one thread: more would make text, not speed.
constexpr int64_t kMaxChunks = 8;

int64_t registers_of(const RunSumsProblem& problem, const RowConfig& config) {
  int64_t kept = 0, chunks = 0;
  for (const RowProblem::Stage& stage : problem.rows.stages) {
    const int64_t own = config.chunks_per_thread(stage);
    kept += 2 * own * stage.kept_bytes;
    chunks = std::max(chunks, own);
  }
  return kOtherRegisters + kept + kChunk * chunks * problem.sums;
}

bool unrolls(const RunSumsProblem& problem, const RowConfig& config) {
  return llvm::all_of(problem.rows.stages, [&](const RowProblem::Stage& stage) {
    return config.chunks_per_thread(stage) <= kMaxChunks;
  });
}

}  // namespace

std::optional<RowConfig> schedule_run_sums(const RunSumsProblem& problem,
                                           const DeviceDescription& device) {
  std::optional<RowConfig> widest;
  for (int64_t threads = 32; threads * problem.lanes <= device.max_threads_per_block;
       threads *= 2) {
    RowConfig config;
    config.threads_per_row = threads;
    config.rows_per_block = problem.lanes;
    config.threads = threads * problem.lanes;
    config.on_chip = registers_of(problem, config) <=
                     std::min(kMaxRegisters, device.registers_per_block / config.threads);
    if (!unrolls(problem, config)) continue;
    if (config.on_chip) return config;
    widest = config;
  }
  return widest;
}

int64_t rows_of_lane(int64_t rows) {
  const int64_t chunks = ceil_div(rows, kChunk);
  return kChunk * ceil_div(chunks, virtual_lanes(rows));
}

}  // namespace sinter
