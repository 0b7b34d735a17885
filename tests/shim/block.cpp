// Every kind of wait within a block (barrier, exchange, phase, named barrier) is released and
// described from the same state of the threads.
#include "shim/block.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>

#include "ir/error.h"
#include "shim/tensor_cores.h"

namespace sinter {

using sinter_shim::ExchangeKind;
using sinter_shim::Index3;
using sinter_shim::Site;

namespace {

constexpr int64_t kDeclaredSharedLimit = 48 * 1024;  // bytes; variables of declared sizes

/// Mostly the file's name is at one address, a literal of one text.
bool same_site(Site a, Site b) {
  return a.line == b.line && (a.file == b.file || std::string_view(a.file) == b.file);
}

}  // namespace

Index3 position(uint64_t i, Index3 extents) {
  return {static_cast<unsigned>(i % extents.x), static_cast<unsigned>(i / extents.x % extents.y),
          static_cast<unsigned>(i / extents.x / extents.y)};
}

void Block::begin(unsigned number, Index3 index, Index3 threads, int64_t dynamic_shared_bytes,
                  void (*body)(void*), void* argument) {
  number_ = number;
  index_ = index;
  thread_count_ = threads.x * threads.y * threads.z;
  dynamic_shared_bytes_ = dynamic_shared_bytes;
  declared_shared_bytes_ = 0;
  shared_.clear();
  error_.clear();
  while (threads_.size() < thread_count_) threads_.push_back(std::make_unique<Thread>());
  for (unsigned i = 0; i < thread_count_; ++i) {
    Thread& thread = *threads_[i];
    thread.block = this;
    thread.number = i;
    thread.index = position(i, threads);
    thread.wait = Wait::none;
    thread.cluster = {};
    thread.fiber.prepare(body, argument);
  }
}

void Block::set_error(const Thread& thread, Site site, std::string_view what) {
  error_ = fmt::format("{}: thread {}: {}", to_string(site), thread.number, what);
}

bool Block::has_ended() const {
  return std::all_of(threads_.begin(), threads_.begin() + thread_count_,
                     [](const auto& thread) { return thread->wait == Wait::returned; });
}

std::byte* Block::shared_storage(const void* variable, int64_t bytes, Site site, Thread& thread) {
  for (SharedVariable& shared : shared_)
    if (shared.variable == variable) return shared.memory.data();
  if (!variable) {
    bytes = dynamic_shared_bytes_;
  } else if ((declared_shared_bytes_ += bytes) > kDeclaredSharedLimit) {
    thread.fail(site, fmt::format("{} bytes of declared shared memory, at most {} are allowed",
                                  declared_shared_bytes_, kDeclaredSharedLimit));
  }
  shared_.push_back({variable, GuardedMemory(static_cast<size_t>(bytes), kNanPoison), site});
  return shared_.back().memory.data();
}

const SharedVariable* Block::variable_of(const void* address, size_t bytes) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  for (const SharedVariable& shared : shared_) {
    const auto begin = reinterpret_cast<uintptr_t>(shared.memory.data());
    if (at >= begin && at + bytes <= begin + shared.memory.bytes()) return &shared;
  }
  return nullptr;
}

std::string Block::shared_damage() const {
  for (const SharedVariable& shared : shared_)
    if (std::string damage = shared.memory.damage(); !damage.empty())
      return fmt::format("{}: shared memory of {} bytes was overrun at {}", to_string(shared.site),
                         shared.memory.bytes(), damage);
  return {};
}

// Threads of one warp that wait in an exchange with the mask of the first that waits; the lanes
// named in the mask that have returned, or never existed, are not waited for.
bool Block::release_exchange(unsigned first_thread) {
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
    exchange_values(first_thread, lane, present);
    return true;
  }
  return false;
}

void Block::exchange_values(unsigned first_thread, unsigned leader, unsigned present) {
  unsigned long long values[kWarp] = {};
  unsigned long long ballot = 0;
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if (!(present >> lane & 1)) continue;
    values[lane] = threads_[first_thread + lane]->value;
    if (values[lane]) ballot |= 1ull << lane;
  }
  const ExchangeKind kind = threads_[first_thread + leader]->kind;
  if (kind >= ExchangeKind::product)
    play_instruction(*threads_[first_thread + leader], first_thread, present);
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if (!(present >> lane & 1)) continue;
    Thread& thread = *threads_[first_thread + lane];
    if (kind == ExchangeKind::shuffle) {
      if (thread.source >= kWarp || !(present >> thread.source & 1)) {
        set_error(thread, thread.site,
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

void Block::play_instruction(const Thread& leader, unsigned first_thread, unsigned present) {
  if (~present)
    return set_error(leader, leader.site,
                     fmt::format("lanes take no part in an instruction of the whole warp (present "
                                 "{:#010x})",
                                 present));
  const auto play = [&]<typename Operands>(bool (*instruction)(const Operands* const(&)[kWarp])) {
    const Operands* lanes[kWarp];
    for (unsigned lane = 0; lane < kWarp; ++lane)
      lanes[lane] = reinterpret_cast<const Operands*>(threads_[first_thread + lane]->value);
    return instruction(lanes);
  };
  const bool played = leader.kind == ExchangeKind::product ? play(multiply_warp)
                      : leader.kind == ExchangeKind::load  ? play(load_matrices)
                                                           : play(multiply_warp_of_group);
  if (!played) set_error(leader, leader.site, kOutsideMemory);
}

bool Block::release_phases() {
  bool any = false;
  for (unsigned i = 0; i < thread_count_; ++i) {
    Thread& thread = *threads_[i];
    if (thread.wait != Wait::phase || *thread.barrier >> 63 == thread.parity) continue;
    thread.wait = Wait::none;
    any = true;
  }
  return any;
}

bool Block::release_named_barriers() {
  bool any = false;
  for (unsigned i = 0; i < thread_count_; ++i) {
    const Thread& leader = *threads_[i];
    if (leader.wait != Wait::named_barrier) continue;
    std::vector<Thread*> come;
    for (unsigned k = 0; k < thread_count_; ++k)
      if (Thread& thread = *threads_[k];
          thread.wait == Wait::named_barrier && thread.barrier_number == leader.barrier_number)
        come.push_back(&thread);
    for (const Thread* thread : come)
      if (thread->threads != leader.threads)
        error_ = fmt::format("barrier {} has {} threads at {} and {} at {}", leader.barrier_number,
                             leader.threads, to_string(leader.site), thread->threads,
                             to_string(thread->site));
    if (come.size() > static_cast<size_t>(leader.threads))
      error_ = fmt::format("{} threads have come to barrier {} of {} at {}", come.size(),
                           leader.barrier_number, leader.threads, to_string(leader.site));
    if (!error_.empty()) return false;
    if (come.size() < static_cast<size_t>(leader.threads)) continue;
    for (Thread* thread : come) thread->wait = Wait::none;
    any = true;
  }
  return any;
}

bool Block::release_exchanges(unsigned first_thread) {
  bool any = false;
  while (error_.empty() && release_exchange(first_thread)) any = true;
  return any;
}

bool Block::release() {
  bool any = release_phases();
  any |= release_named_barriers();
  return error_.empty() ? any | release_barrier() : any;
}

bool Block::release_barrier() {
  unsigned waiting = 0;
  const Thread& leader = *threads_[0];
  for (unsigned i = 0; i < thread_count_; ++i) {
    const Thread& thread = *threads_[i];
    if (thread.wait != Wait::barrier) continue;
    ++waiting;
    if (leader.wait == Wait::barrier && !same_site(thread.site, leader.site)) {
      error_ = fmt::format("thread 0 waits at the barrier {}, thread {} at the barrier {}",
                           to_string(leader.site), i, to_string(thread.site));
      return false;
    }
  }
  if (waiting != thread_count_) return false;
  for (unsigned i = 0; i < thread_count_; ++i) threads_[i]->wait = Wait::none;
  return true;
}

std::string Block::describe_stall() const {
  std::string text;
  for (unsigned begin = 0, runs = 0; begin < thread_count_; ++runs) {
    const std::string state = threads_[begin]->describe();
    unsigned end = begin + 1;
    while (end < thread_count_ && threads_[end]->describe() == state) ++end;
    if (runs == 8) return text + ", ...";
    fmt::format_to(std::back_inserter(text), "{}threads {}..{} {}", runs ? ", " : "", begin,
                   end - 1, state);
    begin = end;
  }
  return text;
}

}  // namespace sinter
