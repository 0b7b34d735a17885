#include "api/callbacks.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "api/sinter_c.h"

namespace sinter {
namespace {

using namespace std::chrono_literals;

// Sequentially consistent: either a thread that counts itself sees that calls are forbidden, or the
// thread that forbids them sees the count.
std::atomic<bool> g_forbidden = false;
std::atomic<int> g_in_progress = 0;

/// A callback that has begun reaches the caller's runtime within this time, or has returned.
constexpr auto kLongestWait = 200ms;

}  // namespace

CallbackInProgress::CallbackInProgress() { ++g_in_progress; }
CallbackInProgress::~CallbackInProgress() { --g_in_progress; }
bool CallbackInProgress::allowed() const { return !g_forbidden; }

}  // namespace sinter

void sinter_allow_callbacks(int allow) {
  using namespace sinter;
  g_forbidden = allow == 0;
  if (allow) return;
  const auto end = std::chrono::steady_clock::now() + kLongestWait;
  while (g_in_progress > 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(1ms);
}
