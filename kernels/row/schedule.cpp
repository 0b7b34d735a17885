#include "kernels/row/schedule.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <bit>

namespace sinter {
namespace {

// Registers of a thread for elements that stay on chip; the rest is for addresses and arithmetic.
constexpr int64_t kKeptRegisters = 40;
// The same in blocks of at most half the threads that a multiprocessor holds.
constexpr int64_t kKeptRegistersOfFew = 96;
constexpr int64_t kWorkRegisters = 32;
// Unrolled chunks of one thread: more would make text, not speed.
constexpr int64_t kUnrolledChunks = 8;
// The same where no result has elements, in a row of at least kBlocksOfSums blocks: half the
// threads, with twice as many loads under way in each. Log-sums of bf16 [32768, 50257] on one H200,
// four blocks of 256 and of 128: 1990 and 1507 us.
//
// Rows that this number of chunks keeps in one block have no cluster. Log-sums of bf16 [4096,
// 30522] on one H100, blocks x threads of a row: 1 x 256 131 us, 1 x 512 135, 4 x 128 139, 2 x 256
// 147 to 164.
constexpr int64_t kUnrolledChunksOfSums = 16, kBlocksOfSums = 4;
// The same of a row in a cluster with one result that has elements. Fewer blocks meet less often;
// two of them share a multiprocessor with this number of registers for elements, which the compiler
// is told: with 150 registers instead of 128 the loss below takes 3500 us. The loss of bf16 [32768,
// 50304] and its gradient on one H100, blocks x threads of a row; a copy takes 2231 us:
//   4 x 256: 2693 us   2 x 256: 2530   2 x 512: 3338   8 x 128: 2773
//   of 50,257 elements in rows of 50,264: 4 x 256 2791, 2 x 256 2628
constexpr int64_t kUnrolledChunksOfClusters = 13, kKeptRegistersOfClusters = 104;
// Threads of a block of single rows and of many short ones: enough warps to hide latency, few
// enough that a block waits for little at its barriers and the last one is not much idle.
constexpr int64_t kRowThreads = 128;
constexpr int64_t kShortRowThreads = 256;

// Rows that fill a device need no threads beyond those that keep its memory busy: with several
// chunks in each, blocks are small, several share a multiprocessor, and one loads while another
// reduces. One H200, bf16, threads a row:
//   softmax [8192, 4096]               512: 48.4 us   128: 37.0    64: 40.2
//   softmax [8192, 16384]             1024: 159       512: 155    256: 133
//   LayerNorm(x) + r [16384, 4096]     512: 103       128: 95.1    64: 96.4
//   LayerNorm(x) + r [8192, 16384]    1024: 230       512: 228    256: 188
constexpr int64_t kManyRows = 512;
constexpr int64_t kChunksOfManyRows = 4;
constexpr int64_t kThreadsOfManyRows = 256;

/// A row with a cluster of blocks and one result that has elements.
bool is_in_cluster(const RowProblem& problem, const RowConfig& config) {
  return config.blocks > 1 && problem.wide_results == 1;
}

/// Chunks that a thread of a row with blocks of its own may unroll.
int64_t unrolled_chunks(const RowProblem& problem, const RowConfig& config) {
  if (is_in_cluster(problem, config)) return kUnrolledChunksOfClusters;
  const bool sums = problem.wide_results == 0 && (config.blocks >= kBlocksOfSums ||
                                                  config.threads_per_row == kThreadsOfManyRows);
  return sums ? kUnrolledChunksOfSums : kUnrolledChunks;
}

bool fits_on_chip(const RowProblem& problem, const RowConfig& config,
                  const DeviceDescription& device, int64_t unrolled) {
  int64_t kept = 0;  // registers
  for (const RowProblem::Stage& stage : problem.stages) {
    if (config.chunks_per_thread(stage) > unrolled) return false;
    kept += 2 * config.chunks_per_thread(stage) * stage.kept_bytes;
  }
  const int64_t per_thread = device.registers_per_block / config.threads;
  const bool few = 2 * config.threads <= device.max_threads_per_block;
  const int64_t most = !few                             ? kKeptRegisters
                       : is_in_cluster(problem, config) ? kKeptRegistersOfClusters
                                                        : kKeptRegistersOfFew;
  return kept <= std::min(most, per_thread - kWorkRegisters);
}

/// Whether a row with this many threads may have a cluster of blocks of kThreadsOfManyRows: each of
/// its reductions is made by all threads of the row, or by each block for itself.
///
/// Several rows share a multiprocessor then. Softmax of bf16 [4096, 32768] on one H100, blocks x
/// threads of a row; a copy takes 179 us:
///   1 x 512: 206 us   2 x 256: 199   4 x 128: 207   4 x 256: 207
bool can_share(const RowProblem& problem, int64_t threads_per_row) {
  if (!problem.alone || problem.min_threads > kThreadsOfManyRows) return false;
  return llvm::all_of(problem.stages, [&](const RowProblem::Stage& stage) {
    return stage.lanes >= threads_per_row || stage.lanes <= kThreadsOfManyRows;
  });
}

/// How far ahead, in blocks, a block prefetches input into the second-level cache, so that the
/// block which reads it does not wait for memory. 0: it does not.
///
/// One H100, bf16, rows of 32,768 in clusters of two:
///   softmax [4096, 32768], distance 0, 66, 132, 198 and 264: 199, 191, 187, 191 and 197 us
///   [2048, 32768], distance 0 and 132:
///     RMSNorm(x) 94.6, 90.7 us   LayerNorm(x) + r 148, 140   softmax(x + m) 141, 138
///     x + r and its RMSNorm, which are two results: 186, 244
///   log-sums of [32768, 50257] without a wide result, one H200, distance 0, 33, 66 and 132: 1990,
///   1654, 1659 and 1656
/// Kernels whose rows have a single block gain at most 0.7 percent. They lose up to 7 percent with
/// two operands, and up to 34 with two results.
int64_t prefetch_distance(const RowProblem& problem, const RowConfig& config,
                          const DeviceDescription& device) {
  const bool gains = config.blocks > 1 && problem.wide_results <= 1;
  return gains && device.has.bulk_copy ? device.multiprocessors : 0;
}

}  // namespace

bool has_many_rows(const SymExpr& rows, llvm::ArrayRef<Symbol> symbols) {
  return rows.upper_bound(symbols) >= kManyRows;
}

std::optional<RowConfig> schedule_rows(const RowProblem& problem, llvm::ArrayRef<Symbol> symbols,
                                       const DeviceDescription& device) {
  if (device.max_threads_per_block < 32) return std::nullopt;
  RowConfig config;
  const auto limit =
      static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(device.max_threads_per_block)));
  int64_t most = 1, chunks = 1;
  bool symbolic = false;
  for (const RowProblem::Stage& stage : problem.stages) {
    most = std::max(most, std::min(stage.lanes, limit));
    if (stage.lanes > 1) chunks = std::max(chunks, stage.chunks);
    symbolic |= stage.symbolic;
  }
  // The blocks that share a row with this many threads.
  const auto blocks_of = [&](int64_t threads) -> int64_t {
    if (!device.has.clusters || !can_share(problem, threads)) return 1;
    return std::max<int64_t>(1, threads / kThreadsOfManyRows);
  };
  const auto fits = [&](int64_t threads, int64_t blocks) {
    RowConfig trial;
    trial.threads_per_row = threads;
    trial.threads = std::max(threads / blocks, std::min(kRowThreads, limit));
    trial.blocks = blocks;
    return fits_on_chip(problem, trial, device, unrolled_chunks(problem, trial));
  };
  config.threads_per_row = most;
  if (!has_many_rows(problem.rows, symbols)) {
    if (most > 1 && !fits(most, 1) && fits(most / 2, 1)) config.threads_per_row /= 2;
  } else if (symbolic) {  // of a row of unknown length a warp leaves few threads idle
    config.threads_per_row = std::min<int64_t>(most, 32);
  } else {
    const auto wanted = static_cast<int64_t>(
        std::bit_ceil(static_cast<uint64_t>(ceil_div(chunks, kChunksOfManyRows))));
    int64_t threads = std::clamp<int64_t>(wanted, 32, kThreadsOfManyRows);
    while (threads < most && !fits(threads, blocks_of(threads))) threads *= 2;
    config.threads_per_row = std::min(threads, most);
    const int64_t sharing = blocks_of(config.threads_per_row);
    if (fits(config.threads_per_row, sharing)) config.blocks = sharing;
    if (config.blocks >= kBlocksOfSums && problem.wide_results == 0 &&
        fits(config.threads_per_row / 2, config.blocks))
      config.threads_per_row /= 2;
  }
  int64_t max_lanes_per_thread = 1;
  for (const RowProblem::Stage& stage : problem.stages)
    max_lanes_per_thread = std::max(max_lanes_per_thread, stage.lanes / config.threads_per_row);

  const int64_t rows = std::clamp<int64_t>(problem.rows.upper_bound(symbols), 1, kShortRowThreads);
  const auto useful = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows)));
  const int64_t block =
      std::min(config.threads_per_row > 32 ? kRowThreads : kShortRowThreads, limit);
  config.threads = std::clamp(config.threads_per_row * useful, std::min<int64_t>(32, block), block);
  const int64_t threads_in_block = config.threads_per_row / config.blocks;
  config.threads = std::max({config.threads, threads_in_block, problem.min_threads});
  config.rows_per_block = config.blocks > 1 ? 1 : config.threads / config.threads_per_row;

  const int64_t shared_bytes = problem.reductions * max_lanes_per_thread * config.blocks *
                               (config.threads / 32) * int64_t{sizeof(float)};
  if (shared_bytes > device.static_shared_bytes) return std::nullopt;
  config.on_chip = fits_on_chip(problem, config, device, unrolled_chunks(problem, config));
  const bool has_many_chunks = llvm::any_of(problem.stages, [&](const RowProblem::Stage& stage) {
    return config.chunks_per_thread(stage) > kUnrolledChunks;
  });
  if (config.on_chip && is_in_cluster(problem, config) && has_many_chunks)
    config.resident_blocks = 2;
  config.prefetch_distance = prefetch_distance(problem, config, device);
  return config;
}

RowConfig schedule_rows_in_block(const RowProblem& problem, int64_t threads, int64_t rows,
                                 const DeviceDescription& device) {
  RowConfig config;
  config.threads = threads;
  config.rows_per_block = rows;
  config.threads_per_row = threads / rows;
  DeviceDescription half = device;
  half.registers_per_block /= 2;
  config.on_chip = fits_on_chip(problem, config, half, kUnrolledChunks);
  return config;
}

}  // namespace sinter
