// The scheduler: the warps of the blocks that run together take turns, each for as long as its
// threads wait for one another alone. The stacks of one warp stay in the caches meanwhile.
#include "shim/block_runner.h"

#include <llvm/ADT/ArrayRef.h>
#include <signal.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "shim/cluster.h"
#include "shim/tensor_cores.h"

namespace sinter {
namespace {

using sinter_shim::Context;
using sinter_shim::ExchangeKind;
using sinter_shim::Index3;
using sinter_shim::Site;

constexpr int64_t kDynamicSharedLimit = 227 * 1024;  // bytes
constexpr unsigned kThreadLimit = 1024;
constexpr unsigned kClusterLimit = sinter_shim::kMaxCluster;

uint64_t count(Index3 n) { return uint64_t{n.x} * n.y * n.z; }

std::vector<unsigned> turns(uint64_t n, ThreadOrder order) {
  std::vector<unsigned> result(n);
  std::iota(result.begin(), result.end(), 0u);
  if (order == ThreadOrder::descending) std::reverse(result.begin(), result.end());
  if (order == ThreadOrder::shuffled) {
    uint64_t state = 0x9E3779B97F4A7C15u;
    for (uint64_t i = n; i > 1; --i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      std::swap(result[i - 1], result[(state >> 33) % i]);
    }
  }
  return result;
}

/// The blocks and their threads' stacks serve all launches of the process.
class BlockRunner {
 public:
  Status run(std::string_view name, sinter_shim::KernelEntry kernel, const Grid& grid,
             void** arguments, ThreadOrder order);

  /// Whose fiber runs.
  Thread& thread() { return *current_; }
  Cluster& cluster() { return cluster_; }
  /// A thread's check of undefined behaviour has trapped; called in its fiber, if one runs.
  void trapped();

  Context context;

 private:
  /// A failure in the blocks from `first` to `last` of the launch.
  struct Failure {
    unsigned first = 0, last = 0;
    std::string what;
  };

  std::optional<Failure> run_cluster(const Grid& grid, unsigned first_block,
                                     llvm::ArrayRef<unsigned> warps,
                                     llvm::ArrayRef<unsigned> lanes);
  /// Runs a warp until each of its threads has returned or waits for another warp. Returns whether
  /// one ran; ends early where one fails, with its block's error set.
  bool run_warp(Block& block, unsigned first_thread, llvm::ArrayRef<unsigned> lanes);
  void switch_to(Thread& thread);

  Cluster cluster_;
  Thread* current_ = nullptr;
  const Block* block_ = nullptr;  // that the context is of
  // Among all blocks of the process, failed ones included: of the cluster that runs, and the next.
  unsigned long long first_number_ = 1, next_number_ = 1;
  bool in_fiber_ = false;
  sinter_shim::KernelEntry kernel_ = nullptr;
  void** arguments_ = nullptr;
};

BlockRunner& runner() {
  static BlockRunner instance;
  return instance;
}

void BlockRunner::trapped() {
  if (!in_fiber_) return;
  current_->block->set_error(
      fmt::format("thread {}: undefined behaviour; with SINTER_SHIM_FLAGS='-fsanitize=undefined "
                  "-fno-sanitize-recover=all' the compiler's library names the line",
                  current_->number));
  current_->fiber.leave();
}

/// While it lives, a trap in kernel text is an error of its launch. Any other is what it was.
class TrapHandler {
 public:
  TrapHandler() {
    struct sigaction action = {};
    action.sa_handler = [](int) {
      runner().trapped();
      signal(SIGILL, SIG_DFL);  // the instruction is run again, and ends the process
    };
    action.sa_flags = SA_NODEFER;  // the handler does not return when a fiber is abandoned
    sigaction(SIGILL, &action, &before_);
  }
  TrapHandler(const TrapHandler&) = delete;
  TrapHandler& operator=(const TrapHandler&) = delete;
  ~TrapHandler() { sigaction(SIGILL, &before_, nullptr); }

 private:
  struct sigaction before_;
};

void BlockRunner::switch_to(Thread& thread) {
  current_ = &thread;
  context.thread = thread.index;
  if (thread.block != block_) {
    block_ = thread.block;
    context.block = block_->index();
    context.rank = static_cast<int>(block_->number() % cluster_.size());
    context.block_number = first_number_ + static_cast<unsigned>(context.rank);
  }
  in_fiber_ = true;
  thread.fiber.resume();
  in_fiber_ = false;
}

bool BlockRunner::run_warp(Block& block, unsigned first_thread, llvm::ArrayRef<unsigned> lanes) {
  bool ran = false;
  do {
    for (unsigned lane : lanes) {
      const unsigned i = first_thread + lane;
      if (i >= block.thread_count() || block.thread(i).wait != Wait::none) continue;
      ran = true;
      switch_to(block.thread(i));
      if (!block.error().empty()) return ran;
    }
  } while (block.release_exchanges(first_thread) && block.error().empty());
  return ran;
}

std::optional<BlockRunner::Failure> BlockRunner::run_cluster(const Grid& grid, unsigned first_block,
                                                             llvm::ArrayRef<unsigned> warps,
                                                             llvm::ArrayRef<unsigned> lanes) {
  const auto body = [](void* self) {
    auto* runner = static_cast<BlockRunner*>(self);
    runner->kernel_(runner->arguments_);
    runner->cluster_.leave(*runner->current_);
  };
  const auto in_block = [](const Block& block) {
    return Failure{block.number(), block.number(), block.error()};
  };
  first_number_ = next_number_;
  next_number_ += grid.cluster;
  cluster_.begin(grid.cluster);
  for (unsigned rank = 0; rank < grid.cluster; ++rank) {
    const unsigned number = first_block + rank;
    cluster_.block(rank).begin(number, position(number, grid.blocks), grid.threads,
                               grid.shared_bytes, body, this);
  }
  block_ = nullptr;
  const unsigned block_warps = static_cast<unsigned>(warps.size()) / grid.cluster;
  const auto all_ended = [&] {
    for (unsigned rank = 0; rank < grid.cluster; ++rank)
      if (!cluster_.block(rank).has_ended()) return false;
    return true;
  };
  while (!all_ended()) {
    bool ran = false;
    for (unsigned warp : warps) {
      Block& block = cluster_.block(warp / block_warps);
      ran |= run_warp(block, warp % block_warps * kWarp, lanes);
      if (!block.error().empty()) return in_block(block);
    }
    for (unsigned rank = 0; rank < grid.cluster; ++rank) {
      Block& block = cluster_.block(rank);
      ran |= block.release();
      if (!block.error().empty()) return in_block(block);
    }
    if (!ran)
      return Failure{first_block, first_block + grid.cluster - 1, cluster_.describe_stall()};
  }
  for (unsigned rank = 0; rank < grid.cluster; ++rank)
    if (std::string damage = cluster_.block(rank).shared_damage(); !damage.empty())
      return Failure{first_block + rank, first_block + rank, damage};
  return std::nullopt;
}

Status BlockRunner::run(std::string_view name, sinter_shim::KernelEntry kernel, const Grid& grid,
                        void** arguments, ThreadOrder order) {
  const uint64_t threads = count(grid.threads), blocks = count(grid.blocks);
  if (threads == 0 || threads > kThreadLimit)
    return fail(fmt::format("{} threads in a block, at most {} are allowed", threads, kThreadLimit),
                std::string(name));
  if (grid.shared_bytes > kDynamicSharedLimit)
    return fail(fmt::format("{} bytes of shared memory, at most {} are allowed", grid.shared_bytes,
                            kDynamicSharedLimit),
                std::string(name));
  if (grid.cluster == 0 || grid.cluster > kClusterLimit || grid.blocks.x % grid.cluster != 0)
    return fail(fmt::format("{} blocks in clusters of {}; give whole clusters of at most {}",
                            grid.blocks.x, grid.cluster, kClusterLimit),
                std::string(name));
  kernel_ = kernel;
  arguments_ = arguments;
  context.block_dim = grid.threads;
  context.shared_bytes = grid.shared_bytes;
  context.grid_dim = grid.blocks;
  context.cluster = static_cast<int>(grid.cluster);
  const TrapHandler traps;
  const std::vector<unsigned> warps = turns(grid.cluster * ((threads + kWarp - 1) / kWarp), order);
  const std::vector<unsigned> lanes = turns(kWarp, order);
  for (unsigned cluster : turns(blocks / grid.cluster, order)) {
    const auto failure = run_cluster(grid, cluster * grid.cluster, warps, lanes);
    if (!failure) continue;
    const std::string where =
        failure->first == failure->last
            ? fmt::format("{}, block {} of {}", name, failure->first, blocks)
            : fmt::format("{}, blocks {}..{} of {}", name, failure->first, failure->last, blocks);
    return fail(failure->what, where, "", ExitCode::check_failed);
  }
  return {};
}

}  // namespace

const sinter_shim::Calls* runner_calls() {
  static const sinter_shim::Calls calls{
      &runner().context,
      [](Site site) { runner().thread().suspend(Wait::barrier, site); },
      [](ExchangeKind kind, unsigned mask, unsigned long long value, unsigned source, Site site) {
        return runner().thread().exchange(kind, mask, value, source, site);
      },
      [](const void* variable, unsigned long long bytes, Site site) -> void* {
        Thread& thread = runner().thread();
        return thread.block->shared_storage(variable, static_cast<int64_t>(bytes), site, thread);
      },
      [](const unsigned long long* barrier, unsigned parity, Site site) {
        runner().thread().wait_for_phase(barrier, parity, site);
      },
      [](int number, int threads, Site site) {
        runner().thread().named_barrier(number, threads, site);
      },
      [](bool shows, Site site) { runner().cluster().arrive(runner().thread(), shows, site); },
      [](Site site) { runner().cluster().wait(runner().thread(), site); },
      [](float* own, int rank, float value, Site site) {
        runner().cluster().give(runner().thread(), own, rank, value, site);
      },
      [](const void* own, unsigned long long bytes, int rank, Site site) -> void* {
        return runner().cluster().in_block(runner().thread(), own, bytes, rank, site);
      },
      [](const sinter_shim::WarpgroupProduct& product, Site site) {
        Thread& thread = runner().thread();
        if (!multiply_in_warpgroup(product, thread.number)) thread.fail(site, kOutsideMemory);
      },
      [](const sinter_shim::TensorMap& map, const int* coordinates, void* to, Site site) {
        if (!copy_box(map, coordinates, to)) runner().thread().fail(site, kOutsideMemory);
      },
  };
  return &calls;
}

Status run_grid(std::string_view name, sinter_shim::KernelEntry kernel, const Grid& grid,
                void** arguments, ThreadOrder order) {
  return runner().run(name, kernel, grid, arguments, order);
}

}  // namespace sinter
