#include "device/schedule.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <bit>

#include "ir/matvec_layout.h"

namespace sinter {
namespace {

// Registers of a thread for elements that stay on chip; the rest is for addresses and arithmetic.
constexpr int64_t kKeptRegisters = 40;
// The same in blocks of at most half the threads that a multiprocessor holds.
constexpr int64_t kKeptRegistersOfFew = 96;
constexpr int64_t kWorkRegisters = 32;
// Unrolled chunks of one thread: more would make text, not speed.
constexpr int64_t kUnrolledChunks = 8;
// Threads of a block of single rows and of many short ones: enough warps to hide latency, few
// enough that a block waits for little at its barriers and the last one is not much idle.
constexpr int64_t kRowThreads = 128;
constexpr int64_t kShortRowThreads = 256;

// Shared memory of a matvec's block: static memory of the reductions in front and the system's own;
// the sums, the warps' sums of two tiles; barriers and rings, where the device has bulk copies.
constexpr int64_t kOtherBytes = 2048;
constexpr int64_t kMostSumBytes = 32 * 1024;
constexpr int64_t kTileBytes = 2048;     // for each token
constexpr int64_t kBarrierBytes = 4096;  // and what alignment and an odd number of tokens take
constexpr int64_t kLeastRingBytes = 66 * 1024;

// Rows that fill a device need no threads beyond those that keep its memory busy: with several
// chunks in each, blocks are small, several share a multiprocessor, and one loads while another
// reduces. One H200, bf16, threads a row:
//   softmax [8192, 4096]               512: 48.4 us   128: 37.0    64: 40.2
//   softmax [8192, 16384]             1024: 159       512: 155    256: 133
//   LayerNorm(x) + r [16384, 4096]     512: 103       128: 95.1    64: 96.4
//   LayerNorm(x) + r [8192, 16384]    1024: 230       512: 228    256: 188
constexpr int64_t kManyRows = 64;
constexpr int64_t kChunksOfManyRows = 4;
constexpr int64_t kThreadsOfManyRows = 256;

bool fits_on_chip(const RowProblem& problem, const RowConfig& config,
                  const DeviceDescription& device) {
  int64_t kept = 0;  // registers
  for (const RowProblem::Stage& stage : problem.stages) {
    if (config.chunks_per_thread(stage) > kUnrolledChunks) return false;
    kept += 2 * config.chunks_per_thread(stage) * stage.kept_bytes;
  }
  const int64_t per_thread = device.registers_per_block / config.threads;
  const bool few = 2 * config.threads <= device.max_threads_per_block;
  return kept <= std::min(few ? kKeptRegistersOfFew : kKeptRegisters, per_thread - kWorkRegisters);
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
  const auto fits = [&](int64_t threads) {
    RowConfig trial;
    trial.threads_per_row = threads;
    trial.threads = std::max(threads, std::min(kRowThreads, limit));
    return fits_on_chip(problem, trial, device);
  };
  config.threads_per_row = most;
  if (!has_many_rows(problem.rows, symbols)) {
    if (most > 1 && !fits(most) && fits(most / 2)) config.threads_per_row /= 2;
  } else if (symbolic) {  // of a row of unknown length a warp leaves few threads idle
    config.threads_per_row = std::min<int64_t>(most, 32);
  } else {
    const auto wanted = static_cast<int64_t>(
        std::bit_ceil(static_cast<uint64_t>(ceil_div(chunks, kChunksOfManyRows))));
    int64_t threads = std::clamp<int64_t>(wanted, 32, kThreadsOfManyRows);
    while (threads < most && !fits(threads)) threads *= 2;
    config.threads_per_row = std::min(threads, most);
  }
  int64_t most_lanes_per_thread = 1;
  for (const RowProblem::Stage& stage : problem.stages)
    most_lanes_per_thread = std::max(most_lanes_per_thread, stage.lanes / config.threads_per_row);

  const int64_t rows = std::clamp<int64_t>(problem.rows.upper_bound(symbols), 1, kShortRowThreads);
  const auto useful = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows)));
  const int64_t block =
      std::min(config.threads_per_row > 32 ? kRowThreads : kShortRowThreads, limit);
  config.threads = std::clamp(config.threads_per_row * useful, std::min<int64_t>(32, block), block);
  config.threads = std::max({config.threads, config.threads_per_row, problem.least_threads});
  config.rows_per_block = config.threads / config.threads_per_row;

  const int64_t shared_bytes =
      problem.reductions * most_lanes_per_thread * (config.threads / 32) * int64_t{sizeof(float)};
  if (shared_bytes > device.static_shared_bytes) return std::nullopt;
  config.on_chip = fits_on_chip(problem, config, device);
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
  config.on_chip = fits_on_chip(problem, config, half);
  return config;
}

namespace {

constexpr int64_t kUsualPieceBytes = 2048;

/// Pieces of a part of a row, which is so many times kPieceElements long: a multiple of those as
/// well. As near to `wanted` as divides the part well.
int64_t piece_of(int64_t part, int64_t wanted) {
  int64_t best = wanted, waste = ceil_div(part, wanted) * wanted - part;
  for (const int64_t steps : {wanted + 1, wanted - 1})
    if (steps > 0 && ceil_div(part, steps) * steps - part < waste)
      best = steps, waste = ceil_div(part, steps) * steps - part;
  return std::min(best, part);
}

int64_t part_of_row(int64_t length, int64_t splits) {
  return ceil_div(ceil_div(length, splits), kPieceElements);
}

MatvecRing usual_ring(int64_t length, int64_t element_bytes, int64_t splits) {
  const int64_t step_bytes = kPieceElements * element_bytes;
  return {.warps = kTileWarps,
          .piece_bytes =
              piece_of(part_of_row(length, splits), kUsualPieceBytes / step_bytes) * step_bytes,
          .stages = kMatvecStages};
}

/// Whether a kernel can have the form at all, whatever shared memory it takes.
bool is_possible(const MatvecRing& ring, int64_t length, int64_t element_bytes, int64_t splits,
                 const DeviceDescription& device) {
  const int64_t step_bytes = kPieceElements * element_bytes;
  return device.has.bulk_copy && (ring.warps == kTileWarps || ring.warps == kFewMatvecWarps) &&
         splits <= ring.warps && ring.stages >= kLeastMatvecStages &&
         ring.stages <= kMostMatvecStages && ring.piece_bytes > 0 &&
         ring.piece_bytes % step_bytes == 0 &&
         ring.piece_bytes <= part_of_row(length, splits) * step_bytes;
}

}  // namespace

int64_t matvec_operand_limit(const DeviceDescription& device) {
  const int64_t ring = device.has.bulk_copy ? kLeastRingBytes : 0;
  return device.max_shared_bytes - kOtherBytes - kMostSumBytes - kTileTokens * kTileBytes - ring;
}

std::optional<MatvecConfig> schedule_matvec(const MatvecProduct& product, int64_t units,
                                            const DeviceDescription& device,
                                            const MatvecRing* ring) {
  const int64_t rows = product.rows, length = product.length, splits = product.splits;
  const int64_t tokens = product.tokens, element_bytes = whole_bytes(product.dtype);
  if (ring && !is_possible(*ring, length, element_bytes, splits, device)) return std::nullopt;
  const MatvecRing form = ring ? *ring : usual_ring(length, element_bytes, splits);
  MatvecConfig config;
  config.operand_bytes = matvec_operand_limit(device);
  config.warps = form.warps;
  config.piece = form.piece_bytes / element_bytes;
  config.stages = form.stages;
  const int64_t results = rows / units;
  const auto sum_bytes = [&](int64_t blocks) {
    return ceil_div(results, blocks) * units * splits * tokens * int64_t{sizeof(float)};
  };
  config.blocks = std::min(device.multiprocessors, results);
  while (sum_bytes(config.blocks) > kMostSumBytes && config.blocks < results)
    config.blocks = std::min(config.blocks + device.multiprocessors, results);
  if (sum_bytes(config.blocks) > kMostSumBytes) return std::nullopt;
  // Not more than is of use: what is left of a multiprocessor lets the next kernel in. Of the
  // rings' sizes for one token and for several, the larger: two blocks of one launch must not stand
  // side by side.
  const bool rings = device.has.bulk_copy;
  const int64_t one = config.warps * form.stages * form.piece_bytes;
  const int64_t several = kTileWarps * 2 * kTileRows * kTilePiece * int64_t{2};
  config.ring_bytes = kBarrierBytes + (rings ? std::max(one, several) : 0);
  config.token_bytes = sum_bytes(config.blocks) / tokens + kTileBytes + length * element_bytes;
  config.shared_bytes = device.max_shared_bytes - kOtherBytes;
  for (int64_t n = 1; rings && n <= tokens; ++n) {
    const MatvecLayout layout = matvec_layout(
        {.warps = static_cast<int>(config.warps),
         .rows = static_cast<int>(ceil_div(results, config.blocks) * units),
         .splits = static_cast<int>(splits),
         .tokens = static_cast<int>(n),
         .operand_bytes = static_cast<int>(
             n * length * element_bytes <= config.operand_bytes ? length * element_bytes : 0),
         .element_bytes = static_cast<int>(element_bytes),
         .piece = static_cast<int>(config.piece),
         .tiles = n > 1 && element_bytes == 2,
         .ring = true,
         .stages = static_cast<int>(config.stages)});
    const int64_t bytes = std::min(config.shared_bytes, config.ring_bytes + n * config.token_bytes);
    // A form that was asked for is what one token gets.
    const int64_t least = ring && n == 1 ? form.stages : layout.together;
    if (layout.stages(static_cast<int>(bytes), static_cast<int>(config.warps)) < least)
      return std::nullopt;
  }
  return config;
}

std::vector<MatvecRing> matvec_ring_candidates(const MatvecProduct& product,
                                               const DeviceDescription& device) {
  const int64_t bytes = whole_bytes(product.dtype), step_bytes = kPieceElements * bytes;
  const int64_t part = part_of_row(product.length, product.splits);
  const MatvecRing usual = usual_ring(product.length, bytes, product.splits);
  const auto times = [&](int64_t numerator, int64_t denominator) {
    const int64_t steps = usual.piece_bytes / step_bytes * numerator / denominator;
    return piece_of(part, std::clamp<int64_t>(steps, 1, part)) * step_bytes;
  };
  const int64_t whole = usual.piece_bytes, twice = times(2, 1), half = times(1, 2);
  const MatvecRing all[] = {
      usual,
      // other depths, 96 to 192 KiB of a multiprocessor in flight where a piece has 2 KiB
      {kTileWarps, whole, 3},
      {kTileWarps, whole, 5},
      {kTileWarps, whole, 6},
      // longer and shorter pieces
      {kTileWarps, twice, 2},
      {kTileWarps, twice, 3},
      {kTileWarps, half, 6},
      {kTileWarps, half, 8},
      // half as many warps: fewer barriers, other rests of the division of rows
      {kFewMatvecWarps, whole, 8},
      {kFewMatvecWarps, twice, 3},
      {kFewMatvecWarps, twice, 4},
      {kFewMatvecWarps, twice, 5},
  };
  std::vector<MatvecRing> fitting;
  for (const MatvecRing& ring : all)
    if (!llvm::is_contained(fitting, ring) && schedule_matvec(product, 1, device, &ring))
      fitting.push_back(ring);
  if (fitting.empty() || !(fitting.front() == usual)) return {};
  return fitting;
}

}  // namespace sinter
