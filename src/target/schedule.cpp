#include "target/schedule.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <bit>

namespace sinter {
namespace {

// A block of several short rows: enough warps to hide latency, small enough that the last block of
// a launch is not much idle.
constexpr int64_t kShortRowThreads = 256;
// Registers of a thread for elements that stay on chip; the rest is for addresses and arithmetic.
constexpr int64_t kKeptRegisters = 40;
// The same in blocks of at most half the threads that a multiprocessor holds.
constexpr int64_t kKeptRegistersOfFew = 96;
// A block of the most threads that keeps more has a multiprocessor for itself, and nothing to do
// while its row is reduced. LayerNorm(x) + r on [8192, 16384] bf16, one H200: 257 us with 1024
// threads that keep 32 registers each, 202 us with 512 that keep 64.
constexpr int64_t kFullBlock = 1024;
constexpr int64_t kKeptByFullBlocks = 24;
// A warp walks a row without barriers; of a length that is not known, a short one leaves few of its
// threads idle. Enough rows to fill a device are needed for that. Softmax of [32768, 1024] bf16, one
// H200: 58 us with 128 threads a row, 51 us with 32.
constexpr int64_t kWarpRows = 64;
constexpr int64_t kMostWarpLanes = 256;
constexpr int64_t kWorkRegisters = 32;
// Unrolled chunks of one thread: more would make text, not speed.
constexpr int64_t kUnrolledChunks = 8;

/// Registers of a thread for the elements it keeps.
int64_t kept_registers(const RowProblem& problem, const RowConfig& config) {
  int64_t registers = 0;
  for (const RowProblem::Stage& stage : problem.stages)
    registers += 8 * config.chunks_per_thread(stage) * stage.kept_values;
  return registers;
}

bool fits_on_chip(const RowProblem& problem, const RowConfig& config,
                  const DeviceDescription& device) {
  for (const RowProblem::Stage& stage : problem.stages)
    if (config.chunks_per_thread(stage) > kUnrolledChunks) return false;
  const int64_t per_thread = device.registers_per_block / config.threads;
  const int64_t most = 2 * config.threads <= device.max_threads_per_block ? kKeptRegistersOfFew : kKeptRegisters;
  return kept_registers(problem, config) <= std::min(most, per_thread - kWorkRegisters);
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
  const bool symbolic = llvm::any_of(problem.stages, [](const RowProblem::Stage& stage) { return stage.symbolic; });
  if (problem.rows.upper_bound(symbols) >= kWarpRows && config.threads_per_row <= kMostWarpLanes) {
    RowConfig warp = config;
    warp.threads_per_row = std::min<int64_t>(config.threads_per_row, 32);
    warp.threads = std::min(kShortRowThreads, limit);
    if (symbolic || fits_on_chip(problem, warp, device)) config.threads_per_row = warp.threads_per_row;
  }
  if (config.threads_per_row == kFullBlock && kept_registers(problem, config) > kKeptByFullBlocks)
    config.threads_per_row /= 2;
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
