// Calls of libraries that free at exit() what their functions use.
#pragma once

namespace sinter {

/// While one lives, this thread runs a function of another library (OpenBLAS, NVRTC). exit() waits
/// until the other threads have left such functions, and then runs the destructors of libraries. A
/// thread that makes a ForeignCall after that sleeps until the process is gone.
class ForeignCall {
 public:
  ForeignCall();
  ~ForeignCall();
  ForeignCall(const ForeignCall&) = delete;
};

}  // namespace sinter
