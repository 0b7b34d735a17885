// The scheduler of a block's threads. One file: every kind of wait (barrier, exchange, phase, named
// barrier) is entered, released and described from the same state of the threads.
#include "shim/block_runner.h"

#include <llvm/ADT/ArrayRef.h>
#include <signal.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "shim/fiber.h"
#include "shim/guarded_memory.h"

namespace sinter {
namespace {

using sinter_shim::Context;
using sinter_shim::ExchangeKind;
using sinter_shim::Index3;
using sinter_shim::Site;

constexpr unsigned kWarp = 32;
constexpr int64_t kDeclaredSharedLimit = 48 * 1024;  // bytes; variables of declared sizes
constexpr int64_t kDynamicSharedLimit = 227 * 1024;  // bytes
constexpr unsigned kThreadLimit = 1024;

enum class Wait : uint8_t { none, barrier, exchange, phase, named_barrier, returned };

struct Thread {
  Fiber fiber;
  Index3 index;
  Wait wait = Wait::none;
  Site site{};
  // Of an exchange.
  ExchangeKind kind = ExchangeKind::sync;
  unsigned mask = 0, source = 0;
  unsigned long long value = 0;
  // Of a phase, and of a named barrier.
  const unsigned long long* barrier = nullptr;
  unsigned parity = 0;
  int number = 0, threads = 0;
};

struct SharedVariable {
  const void* variable;  // null: the dynamic one
  GuardedMemory memory;
  Site site;
};

uint64_t count(Index3 n) { return uint64_t{n.x} * n.y * n.z; }

Index3 position(uint64_t i, Index3 extents) {
  return {static_cast<unsigned>(i % extents.x), static_cast<unsigned>(i / extents.x % extents.y),
          static_cast<unsigned>(i / extents.x / extents.y)};
}

/// Mostly the file's name is at one address, a literal of one text.
bool same_site(Site a, Site b) {
  return a.line == b.line && (a.file == b.file || std::string_view(a.file) == b.file);
}

std::string to_string(Site site) { return fmt::format("{}:{}", site.file, site.line); }

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

/// One block's state; its threads' stacks serve all blocks of the process.
class BlockRunner {
 public:
  Status run(std::string_view name, sinter_shim::KernelEntry kernel, const Grid& grid,
             void** arguments, ThreadOrder order);

  void barrier(Site site) { suspend(Wait::barrier, site); }
  unsigned long long exchange(ExchangeKind kind, unsigned mask, unsigned long long value,
                              unsigned source, Site site);
  void* shared_storage(const void* variable, int64_t bytes, Site site);
  void wait_for_phase(const unsigned long long* barrier, unsigned parity, Site site);
  void named_barrier(int number, int threads, Site site);
  /// A thread's check of undefined behaviour has trapped; called in its fiber, if one runs.
  void trapped();

  Context context;

 private:
  Status run_block(llvm::ArrayRef<unsigned> order);
  void suspend(Wait wait, Site site);
  /// Ends the block, whose `error_` is set; called in a fiber, which is abandoned: nothing on its
  /// stack is destroyed.
  [[noreturn]] void stop();
  void set_error(Site site, unsigned thread, std::string_view what) {
    error_ = fmt::format("{}: thread {}: {}", to_string(site), thread, what);
  }
  /// Lets threads go whose barrier or exchange is complete; false: none.
  bool release();
  bool release_exchange(unsigned first_thread);
  bool release_phases();
  bool release_named_barriers();
  void give(unsigned first_thread, unsigned lane, unsigned present);
  std::string describe_stall() const;

  std::vector<std::unique_ptr<Thread>> threads_;
  unsigned thread_count_ = 0, current_ = 0;
  bool in_fiber_ = false;
  std::vector<SharedVariable> shared_;
  int64_t declared_shared_bytes_ = 0, dynamic_shared_bytes_ = 0;
  std::string error_;
  sinter_shim::KernelEntry kernel_ = nullptr;
  void** arguments_ = nullptr;
};

BlockRunner& runner() {
  static BlockRunner instance;
  return instance;
}

void BlockRunner::suspend(Wait wait, Site site) {
  Thread& thread = *threads_[current_];
  thread.wait = wait;
  thread.site = site;
  thread.fiber.yield();
}

void BlockRunner::stop() { threads_[current_]->fiber.leave(); }

unsigned long long BlockRunner::exchange(ExchangeKind kind, unsigned mask, unsigned long long value,
                                         unsigned source, Site site) {
  const unsigned lane = current_ % kWarp;
  if (!(mask >> lane & 1)) {
    set_error(site, current_, fmt::format("lane {} is not in its own mask {:#010x}", lane, mask));
    stop();
  }
  Thread& thread = *threads_[current_];
  thread.kind = kind;
  thread.mask = mask;
  thread.value = value;
  thread.source = source;
  suspend(Wait::exchange, site);
  return thread.value;
}

void* BlockRunner::shared_storage(const void* variable, int64_t bytes, Site site) {
  for (SharedVariable& shared : shared_)
    if (shared.variable == variable) return shared.memory.data();
  if (!variable) {
    bytes = dynamic_shared_bytes_;
  } else if ((declared_shared_bytes_ += bytes) > kDeclaredSharedLimit) {
    set_error(site, current_,
              fmt::format("{} bytes of declared shared memory, at most {} are allowed",
                          declared_shared_bytes_, kDeclaredSharedLimit));
    stop();
  }
  shared_.push_back({variable, GuardedMemory(static_cast<size_t>(bytes), kNanPoison), site});
  return shared_.back().memory.data();
}

void BlockRunner::wait_for_phase(const unsigned long long* barrier, unsigned parity, Site site) {
  Thread& thread = *threads_[current_];
  thread.barrier = barrier;
  thread.parity = parity;
  if (*barrier >> 63 == parity) suspend(Wait::phase, site);
}

void BlockRunner::named_barrier(int number, int threads, Site site) {
  Thread& thread = *threads_[current_];
  thread.number = number;
  thread.threads = threads;
  suspend(Wait::named_barrier, site);
}

void BlockRunner::trapped() {
  if (!in_fiber_) return;
  error_ = fmt::format(
      "thread {}: undefined behaviour; with SINTER_SHIM_FLAGS='-fsanitize=undefined "
      "-fno-sanitize-recover=all' the compiler's library names the line",
      current_);
  stop();
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

// Threads of one warp that wait in an exchange with the mask of the first that waits; the lanes
// named in the mask that have returned, or never existed, are not waited for.
bool BlockRunner::release_exchange(unsigned first_thread) {
  const unsigned lanes = std::min(kWarp, thread_count_ - first_thread);
  unsigned seen = 0;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    const Thread& leader = *threads_[first_thread + lane];
    if (leader.wait != Wait::exchange || seen >> lane & 1) continue;
    unsigned present = 0;
    bool complete = true;
    for (unsigned other = 0; other < lanes; ++other) {
      const Thread& thread = *threads_[first_thread + other];
      if (!(leader.mask >> other & 1) || thread.wait == Wait::returned) continue;
      const bool joins = thread.wait == Wait::exchange && thread.mask == leader.mask &&
                         thread.kind == leader.kind && same_site(thread.site, leader.site);
      complete &= joins;
      if (joins) present |= 1u << other;
    }
    seen |= present;
    if (!complete) continue;
    give(first_thread, lane, present);
    return true;
  }
  return false;
}

void BlockRunner::give(unsigned first_thread, unsigned leader, unsigned present) {
  unsigned long long values[kWarp] = {};
  unsigned long long ballot = 0;
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if (!(present >> lane & 1)) continue;
    values[lane] = threads_[first_thread + lane]->value;
    if (values[lane]) ballot |= 1ull << lane;
  }
  const ExchangeKind kind = threads_[first_thread + leader]->kind;
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if (!(present >> lane & 1)) continue;
    Thread& thread = *threads_[first_thread + lane];
    if (kind == ExchangeKind::shuffle) {
      if (thread.source >= kWarp || !(present >> thread.source & 1)) {
        set_error(thread.site, first_thread + lane,
                  fmt::format("lane {} reads lane {}, which takes no part (mask {:#010x}, present "
                              "{:#010x})",
                              lane, thread.source, thread.mask, present));
        return;
      }
      thread.value = values[thread.source];
    } else {
      thread.value = ballot;
    }
    thread.wait = Wait::none;
  }
}

bool BlockRunner::release_phases() {
  bool any = false;
  for (unsigned i = 0; i < thread_count_; ++i) {
    Thread& thread = *threads_[i];
    if (thread.wait != Wait::phase || *thread.barrier >> 63 == thread.parity) continue;
    thread.wait = Wait::none;
    any = true;
  }
  return any;
}

bool BlockRunner::release_named_barriers() {
  bool any = false;
  for (unsigned i = 0; i < thread_count_; ++i) {
    const Thread& leader = *threads_[i];
    if (leader.wait != Wait::named_barrier) continue;
    std::vector<Thread*> come;
    for (unsigned k = 0; k < thread_count_; ++k)
      if (Thread& thread = *threads_[k];
          thread.wait == Wait::named_barrier && thread.number == leader.number)
        come.push_back(&thread);
    for (const Thread* thread : come)
      if (thread->threads != leader.threads)
        error_ = fmt::format("barrier {} has {} threads at {} and {} at {}", leader.number,
                             leader.threads, to_string(leader.site), thread->threads,
                             to_string(thread->site));
    if (come.size() > static_cast<size_t>(leader.threads))
      error_ = fmt::format("{} threads have come to barrier {} of {} at {}", come.size(),
                           leader.number, leader.threads, to_string(leader.site));
    if (!error_.empty()) return false;
    if (come.size() < static_cast<size_t>(leader.threads)) continue;
    for (Thread* thread : come) thread->wait = Wait::none;
    any = true;
  }
  return any;
}

bool BlockRunner::release() {
  bool any = false;
  for (unsigned first = 0; first < thread_count_; first += kWarp)
    while (error_.empty() && release_exchange(first)) any = true;
  any |= release_phases();
  any |= release_named_barriers();
  if (!error_.empty()) return any;

  unsigned waiting = 0;
  const Thread& leader = *threads_[0];
  for (unsigned i = 0; i < thread_count_; ++i) {
    const Thread& thread = *threads_[i];
    if (thread.wait != Wait::barrier) continue;
    ++waiting;
    if (leader.wait == Wait::barrier && !same_site(thread.site, leader.site)) {
      error_ = fmt::format("thread 0 waits at the barrier {}, thread {} at the barrier {}",
                           to_string(leader.site), i, to_string(thread.site));
      return any;
    }
  }
  if (waiting != thread_count_) return any;
  for (unsigned i = 0; i < thread_count_; ++i) threads_[i]->wait = Wait::none;
  return true;
}

// "threads 0..31 wait at the barrier a.cu:7, threads 32..63 have returned"
std::string BlockRunner::describe_stall() const {
  const auto describe = [](const Thread& thread) {
    switch (thread.wait) {
      case Wait::barrier:
        return fmt::format("wait at the barrier {}", to_string(thread.site));
      case Wait::exchange:
        return fmt::format("wait in the exchange {} with mask {:#010x}", to_string(thread.site),
                           thread.mask);
      case Wait::phase:
        return fmt::format("wait at {} for parity {} of a barrier that lacks {} arrivals",
                           to_string(thread.site), thread.parity, *thread.barrier & 0x7fffffff);
      case Wait::named_barrier:
        return fmt::format("wait at the barrier {} of {} threads, {}", thread.number,
                           thread.threads, to_string(thread.site));
      case Wait::returned:
        return std::string("have returned");
      case Wait::none:
        break;
    }
    return std::string("run");
  };
  std::string text;
  for (unsigned begin = 0, runs = 0; begin < thread_count_; ++runs) {
    const std::string state = describe(*threads_[begin]);
    unsigned end = begin + 1;
    while (end < thread_count_ && describe(*threads_[end]) == state) ++end;
    if (runs == 8) return text + ", ...";
    fmt::format_to(std::back_inserter(text), "{}threads {}..{} {}", runs ? ", " : "", begin,
                   end - 1, state);
    begin = end;
  }
  return text;
}

Status BlockRunner::run_block(llvm::ArrayRef<unsigned> order) {
  shared_.clear();
  declared_shared_bytes_ = 0;
  ++context.block_number;
  for (unsigned i = 0; i < thread_count_; ++i) {
    threads_[i]->wait = Wait::none;
    threads_[i]->index = position(i, context.block_dim);
    threads_[i]->fiber.prepare(
        [](void* self) {
          auto* block = static_cast<BlockRunner*>(self);
          block->kernel_(block->arguments_);
          block->threads_[block->current_]->wait = Wait::returned;
        },
        this);
  }
  unsigned returned = 0;
  while (returned < thread_count_) {
    bool ran = false;
    for (unsigned i : order) {
      Thread& thread = *threads_[i];
      if (thread.wait != Wait::none) continue;
      current_ = i;
      context.thread = thread.index;
      ran = true;
      in_fiber_ = true;
      thread.fiber.resume();
      in_fiber_ = false;
      if (!error_.empty()) return fail(error_);
      returned += thread.wait == Wait::returned;
    }
    ran |= release();
    if (!error_.empty()) return fail(error_);
    if (!ran) return fail(describe_stall());
  }
  for (const SharedVariable& shared : shared_)
    if (std::string damage = shared.memory.damage(); !damage.empty())
      return fail(fmt::format("{}: shared memory of {} bytes was overrun at {}",
                              to_string(shared.site), shared.memory.bytes(), damage));
  return {};
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
  thread_count_ = static_cast<unsigned>(threads);
  while (threads_.size() < threads) threads_.push_back(std::make_unique<Thread>());
  kernel_ = kernel;
  arguments_ = arguments;
  dynamic_shared_bytes_ = grid.shared_bytes;
  context.block_dim = grid.threads;
  context.shared_bytes = grid.shared_bytes;
  context.grid_dim = grid.blocks;
  error_.clear();
  const TrapHandler traps;
  const std::vector<unsigned> thread_turns = turns(threads, order);
  for (unsigned block : turns(blocks, order)) {
    context.block = position(block, grid.blocks);
    if (Status status = run_block(thread_turns); !status) {
      status.error().where = fmt::format("{}, block {} of {}", name, block, blocks);
      status.error().code = ExitCode::check_failed;
      return status;
    }
  }
  return {};
}

}  // namespace

const sinter_shim::Calls* runner_calls() {
  static const sinter_shim::Calls calls{
      &runner().context,
      [](Site site) { runner().barrier(site); },
      [](ExchangeKind kind, unsigned mask, unsigned long long value, unsigned source, Site site) {
        return runner().exchange(kind, mask, value, source, site);
      },
      [](const void* variable, unsigned long long bytes, Site site) {
        return runner().shared_storage(variable, static_cast<int64_t>(bytes), site);
      },
      [](const unsigned long long* barrier, unsigned parity, Site site) {
        runner().wait_for_phase(barrier, parity, site);
      },
      [](int number, int threads, Site site) { runner().named_barrier(number, threads, site); },
  };
  return &calls;
}

Status run_grid(std::string_view name, sinter_shim::KernelEntry kernel, const Grid& grid,
                void** arguments, ThreadOrder order) {
  return runner().run(name, kernel, grid, arguments, order);
}

}  // namespace sinter
