#include "kernels/column/schedule.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "ir/integers.h"

namespace sinter {
namespace {

constexpr int64_t kUsualThreads = 256;
constexpr int64_t kMaxThreads = 1024;
// Several sums of 8 columns, and what is pending of them, need more than the 64 registers of
// threads of full blocks.
constexpr int64_t kMaxThreadsOfSeveral = 512;
constexpr int64_t kResidentThreads = 768, kResidentThreadsOfSeveral = 512;
constexpr int64_t kLineBytes = 128, kSectorBytes = 32;
constexpr int64_t kMaxSegments = 8;  // of a portable cluster
constexpr int64_t kMinThreads = 128;
// The share of the places of blocks that clusters of more than two find.
constexpr double kPlacesOfClusters = 10.0 / 11;

int64_t power_of_two_from(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}

/// One sum of operands that are narrow together.
bool is_narrow_sum(const ColumnProblem& problem) {
  return problem.reductions == 1 && problem.operand_bytes <= 4;
}

/// The threads of a grid, as a part of those that run at once.
double filled(const ColumnProblem& problem, const ColumnConfig& config,
              llvm::ArrayRef<Symbol> symbols, const DeviceDescription& device) {
  return column_tiles(problem, config, symbols) *
         static_cast<double>(config.segments * config.threads()) /
         static_cast<double>(config.resident_threads * device.multiprocessors);
}

/// The form for few rows that are also stored: clusters with the most blocks, one or two lanes a
/// thread, tiles of a line.
std::optional<ColumnConfig> config_of_few_rows(const ColumnProblem& problem) {
  ColumnConfig config;
  config.resident_threads = kResidentThreads;
  config.chunks = std::max<int64_t>(kLineBytes / (8 * problem.element_bytes), 1);
  config.segments = kMaxSegments;
  config.runs = std::max(kMinThreads / config.chunks, problem.lanes / (2 * kMaxSegments));
  if (config.runs * config.segments > problem.lanes || config.threads() > kUsualThreads)
    return std::nullopt;
  config.lanes = problem.lanes / (config.runs * config.segments);
  return config;
}

}  // namespace

double column_tiles(const ColumnProblem& problem, const ColumnConfig& config,
                    llvm::ArrayRef<Symbol> symbols) {
  return static_cast<double>(problem.outer.upper_bound(symbols)) *
         static_cast<double>(ceil_div(problem.width.upper_bound(symbols), config.tile()));
}

std::optional<ColumnConfig> schedule_columns(const ColumnProblem& problem,
                                             llvm::ArrayRef<Symbol> symbols,
                                             const DeviceDescription& device) {
  if (device.max_threads_per_block < 32) return std::nullopt;
  const auto limit = std::min<int64_t>(
      problem.reductions > 1 || problem.stores_elements ? kMaxThreadsOfSeveral : kMaxThreads,
      static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(device.max_threads_per_block))));
  const bool stores = problem.stores_elements;
  const int64_t usual = std::min(stores ? kMaxThreadsOfSeveral : kUsualThreads, limit);
  const int64_t all_chunks =
      power_of_two_from(std::min<int64_t>(ceil_div(problem.width.upper_bound(symbols), 8), usual));
  const auto chunk_bytes = 8 * problem.element_bytes;

  ColumnConfig config;
  config.resident_threads =
      is_narrow_sum(problem) && !stores ? kResidentThreads : kResidentThreadsOfSeveral;
  config.chunks =
      std::min(std::max<int64_t>((stores ? 2 : 1) * kLineBytes / chunk_bytes, 1), all_chunks);
  config.runs = std::min(problem.lanes, usual / config.chunks);
  // With few lanes a block takes more columns; threads beyond the last columns are idle.
  config.chunks = std::max(std::min(all_chunks, usual / config.runs), config.chunks);
  config.chunks = std::max(config.chunks, 32 / config.runs);

  const bool at_once = stores || config.resident_threads == kResidentThreads;
  const double wanted = static_cast<double>((at_once ? config.resident_threads : kResidentThreads) *
                                            device.multiprocessors);
  const auto too_few = [&](bool in_clusters) {
    const double threads = column_tiles(problem, config, symbols) *
                           static_cast<double>(config.segments * config.threads());
    if (!at_once) return threads < wanted;
    const bool of_many = (in_clusters ? 2 : 1) * config.segments > 2;
    return 2 * threads <= wanted * (of_many ? kPlacesOfClusters : 1);
  };
  const auto lanes_left = [&] { return 2 * config.runs * config.segments <= problem.lanes; };
  while (device.has.clusters && too_few(true) && lanes_left() && config.segments < kMaxSegments)
    config.segments *= 2;
  while (too_few(false) && lanes_left() && 2 * config.threads() <= limit) config.runs *= 2;
  while (too_few(false) && lanes_left() && config.chunks * chunk_bytes > kSectorBytes &&
         config.chunks > 1) {
    config.chunks /= 2;
    config.runs *= 2;
  }
  config.lanes = problem.lanes / (config.runs * config.segments);
  if (config.lanes == 1 && config.threads() > kMinThreads &&
      config.chunks * chunk_bytes > 2 * kSectorBytes && config.runs >= 2 * 32 / config.chunks &&
      column_tiles(problem, config, symbols) *
              static_cast<double>(config.segments * config.threads()) <
          static_cast<double>(kResidentThreadsOfSeveral * device.multiprocessors))
    config.chunks /= 2;
  if (stores && is_narrow_sum(problem) && device.has.clusters && limit >= kUsualThreads) {
    const auto few = config_of_few_rows(problem);
    const double places = few ? filled(problem, *few, symbols, device) : 0;
    if (places <= kPlacesOfClusters && places > filled(problem, config, symbols, device))
      config = *few;
  }

  const int64_t floats = config.handed() + problem.reductions * config.segments * config.tile();
  if (floats * int64_t{sizeof(float)} > device.static_shared_bytes) return std::nullopt;
  return config;
}

}  // namespace sinter
