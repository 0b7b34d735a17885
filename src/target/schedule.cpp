#include "target/schedule.h"

#include <algorithm>
#include <bit>

namespace sinter {
namespace {

// A block of several short rows: enough warps to hide latency, small enough that the last block of
// a launch is not much idle.
constexpr int64_t kShortRowThreads = 256;
// Registers of a thread for elements that stay on chip; the rest is for addresses and arithmetic.
constexpr int64_t kKeptRegisters = 40;
constexpr int64_t kWorkRegisters = 32;
// Unrolled chunks of one thread: more would make text, not speed.
constexpr int64_t kUnrolledChunks = 8;

bool fits_on_chip(const RowProblem& problem, const RowConfig& config,
                  const DeviceDescription& device) {
  int64_t registers = 0;
  for (const RowProblem::Stage& stage : problem.stages) {
    const int64_t chunks = config.chunks_per_thread(stage);
    if (chunks > kUnrolledChunks) return false;
    registers += 8 * chunks * stage.kept_values;
  }
  const int64_t per_thread = device.registers_per_block / config.threads;
  return registers <= std::min(kKeptRegisters, per_thread - kWorkRegisters);
}

}  // namespace

std::optional<RowConfig> schedule_rows(const RowProblem& problem, llvm::ArrayRef<Symbol> symbols,
                                       const DeviceDescription& device) {
  if (device.max_threads_per_block < 32) return std::nullopt;
  RowConfig config;
  int64_t most_lanes_per_thread = 1;
  for (const RowProblem::Stage& stage : problem.stages)
    config.threads_per_row = std::max(config.threads_per_row, stage.lanes);
  const auto limit =
      static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(device.max_threads_per_block)));
  config.threads_per_row = std::min(config.threads_per_row, limit);
  for (const RowProblem::Stage& stage : problem.stages)
    most_lanes_per_thread = std::max(most_lanes_per_thread, stage.lanes / config.threads_per_row);

  const int64_t rows = std::clamp<int64_t>(problem.rows.upper_bound(symbols), 1, kShortRowThreads);
  const auto useful = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows)));
  const int64_t block = std::min(kShortRowThreads, limit);
  config.threads = std::clamp(config.threads_per_row * useful, std::min<int64_t>(32, block), block);
  config.threads = std::max(config.threads, config.threads_per_row);
  config.rows_per_block = config.threads / config.threads_per_row;

  const int64_t shared_bytes =
      problem.reductions * most_lanes_per_thread * (config.threads / 32) * int64_t{sizeof(float)};
  if (shared_bytes > device.shared_bytes_per_block) return std::nullopt;
  config.on_chip = fits_on_chip(problem, config, device);
  return config;
}

}  // namespace sinter
