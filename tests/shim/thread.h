// One CUDA thread of a block that runs: its fiber, and what it waits for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shim/fiber.h"
#include "shim/shim_interface.h"

namespace sinter {

class Block;

inline constexpr unsigned kWarp = 32;  // threads

std::string to_string(sinter_shim::Site site);

enum class Wait : uint8_t { none, barrier, exchange, phase, named_barrier, cluster, returned };

/// A thread's part in its cluster (cluster.h).
struct ClusterVisit {
  bool arrived = false;  // at the barrier, and has not waited since
  bool waited = false;   // there, once at least
  uint64_t phase = 0;    // of the arrival
  sinter_shim::Site arrival{};
  std::vector<std::pair<float*, float>> given;  // to other blocks, since it arrived
};

struct Thread {
  Fiber fiber;
  Block* block = nullptr;
  unsigned number = 0;  // in its block
  sinter_shim::Index3 index;
  Wait wait = Wait::none;
  sinter_shim::Site site{};
  // For Wait::exchange.
  sinter_shim::ExchangeKind kind = sinter_shim::ExchangeKind::sync;
  unsigned mask = 0, source = 0;
  unsigned long long value = 0;
  // For Wait::phase and Wait::named_barrier.
  const unsigned long long* barrier = nullptr;
  unsigned parity = 0;
  int barrier_number = 0, threads = 0;
  ClusterVisit cluster;

  // These functions are called in the thread's fiber and return when its wait is over (see Calls).
  void suspend(Wait for_what, sinter_shim::Site at);
  unsigned long long exchange(sinter_shim::ExchangeKind asked, unsigned lanes,
                              unsigned long long given, unsigned from, sinter_shim::Site at);
  void wait_for_phase(const unsigned long long* of, unsigned ended, sinter_shim::Site at);
  void named_barrier(int of_number, int of_threads, sinter_shim::Site at);
  /// Ends the launch with this error: the fiber is abandoned, nothing on its stack is destroyed.
  [[noreturn]] void fail(sinter_shim::Site at, std::string_view what);

  /// "wait at the barrier a.cu:7": what the thread does, as of several.
  std::string describe() const;
};

}  // namespace sinter
