#include "shim/thread.h"

#include "ir/error.h"
#include "shim/block.h"

namespace sinter {

using sinter_shim::ExchangeKind;
using sinter_shim::Site;

std::string to_string(Site site) { return fmt::format("{}:{}", site.file, site.line); }

void Thread::suspend(Wait for_what, Site at) {
  wait = for_what;
  site = at;
  fiber.yield();
}

unsigned long long Thread::exchange(ExchangeKind asked, unsigned lanes, unsigned long long given,
                                    unsigned from, Site at) {
  const unsigned lane = number % kWarp;
  if (!(lanes >> lane & 1))
    fail(at, fmt::format("lane {} is not in its own mask {:#010x}", lane, lanes));
  kind = asked;
  mask = lanes;
  value = given;
  source = from;
  suspend(Wait::exchange, at);
  return value;
}

void Thread::wait_for_phase(const unsigned long long* of, unsigned ended, Site at) {
  barrier = of;
  parity = ended;
  if (*barrier >> 63 == parity) suspend(Wait::phase, at);
}

void Thread::named_barrier(int of_number, int of_threads, Site at) {
  barrier_number = of_number;
  threads = of_threads;
  suspend(Wait::named_barrier, at);
}

void Thread::fail(Site at, std::string_view what) {
  block->set_error(*this, at, what);
  fiber.leave();
}

std::string Thread::describe() const {
  switch (wait) {
    case Wait::barrier:
      return fmt::format("wait at the barrier {}", to_string(site));
    case Wait::exchange:
      return fmt::format("wait in the exchange {} with mask {:#010x}", to_string(site), mask);
    case Wait::phase:
      return fmt::format("wait at {} for parity {} of a barrier that lacks {} arrivals",
                         to_string(site), parity, *barrier & 0x7fffffff);
    case Wait::named_barrier:
      return fmt::format("wait at the barrier {} of {} threads, {}", barrier_number, threads,
                         to_string(site));
    case Wait::cluster:
      return fmt::format("wait for the cluster at {}", to_string(site));
    case Wait::returned:
      return std::string("have returned");
    case Wait::none:
      break;
  }
  return std::string("run");
}

}  // namespace sinter
