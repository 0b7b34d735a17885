// The states of one user of a plan, and the stream in which that user's calls run.
#pragma once

#include "driver/calls/loaded_plan.h"

namespace sinter {

class BoundCall;

/// One call at a time. Different sessions may run at once, on different threads and streams.
class CallSession {
 public:
  /// States hold zeros at first. `state_symbols` has a value for each symbol in the type of a
  /// state, by name, and no others. `stream`: the caller's CUstream, of the device's context, which
  /// must outlive the session; null is the context's legacy default stream, which cannot be
  /// captured. Nothing: a stream of the session's own. The CPU has no streams: nothing or null.
  /// Waits.
  static Result<std::shared_ptr<CallSession>> create(
      std::shared_ptr<const LoadedPlan> plan, const std::map<std::string, int64_t>& state_symbols,
      std::optional<void*> stream);
  /// Waits for the session's work, then gives its memory back.
  ~CallSession();
  CallSession(const CallSession&) = delete;
  CallSession& operator=(const CallSession&) = delete;

  /// Waits for the session's stream, with all work in it.
  Status synchronize();
  /// Zeros again, in the order of the stream; does not wait.
  Status clear_states();
  /// Copies a state to host memory of its type and the session's sizes, with any strides. Waits.
  Status read_state(std::string_view name, const TensorView& to);
  /// The CUstream; null on the CPU.
  void* stream() const;

  const LoadedPlan& plan() const { return *plan_; }
  /// The value of symbol `index`, if a state has the symbol.
  std::optional<int64_t> state_symbol(size_t index) const { return symbols_[index]; }

 private:
  friend class BoundCall;
  CallSession() = default;
  Status bind_symbols(const std::map<std::string, int64_t>& values);
  Status start_on_gpu(std::optional<void*> stream);
  /// On a GPU: memory for calls, of at least `bytes` bytes, which stays until the session is gone.
  /// A larger arena does not replace the smaller ones: graphs that were captured may use them.
  Result<CudaAddress> arena_of(size_t bytes);

  std::shared_ptr<const LoadedPlan> plan_;
  std::vector<std::optional<int64_t>> symbols_;  // of each symbol that a state has
  std::unique_ptr<HostSession> host_;            // on the CPU
  CudaStream stream_;                            // on a GPU; outlives the memory below
  std::unique_ptr<CudaSession> cuda_;
  std::vector<CudaMemory> arenas_;  // ascending sizes
};

}  // namespace sinter
