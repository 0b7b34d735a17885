#include "runtime/foreign_call.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace sinter {
namespace {

std::atomic<int> running = 0;  // calls of all threads
std::atomic<bool> ending = false;
thread_local int running_here = 0;
thread_local bool ends_the_process = false;

void wait_for_other_threads() {
  ends_the_process = true;
  ending = true;
  constexpr unsigned kMicroseconds = 200;
  while (running > running_here) ::usleep(kMicroseconds);
}

/// The child of a fork has one thread.
void forget_other_threads() { running = running_here; }

void watch_exit() {
  static const bool watched = [] {
    ::pthread_atfork(nullptr, nullptr, forget_other_threads);
    return std::atexit(wait_for_other_threads) == 0;
  }();
  (void)watched;  // where there is no memory for the handler, the process ends without it
}

}  // namespace

ForeignCall::ForeignCall() {
  watch_exit();
  ++running;
  if (ending && !ends_the_process) {
    --running;
    for (;;) ::pause();
  }
  ++running_here;
}

ForeignCall::~ForeignCall() {
  --running_here;
  --running;
}

}  // namespace sinter
