// Seconds by the host's clock, which never goes back.
#pragma once

#include <chrono>

namespace sinter {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace sinter
