// The states of one user of a plan, and the stream in which that user's calls run.
#pragma once

#include "driver/calls/loaded_plan.h"

namespace sinter {

/// On a GPU: the memory of intermediate values of calls in one stream, which run one after the
/// other. It grows to what the largest call needs.
class CallMemory {
 public:
  /// Makes it hold `bytes` bytes. The memory before is given back, unless a graph has recorded it.
  Status grow_to(size_t bytes, const CudaDevicePtr& device, CudaApi::Stream stream);
  /// A graph that is being captured uses the memory: it stays as long as this does.
  void keep() { is_recorded_ = true; }
  CudaAddress address() const { return current_.address(); }
  /// Another number each time the memory moves.
  uint64_t version() const { return version_; }
  /// A call begins, whose values the memory has until the next one does. Returns its number.
  uint64_t begin_call() { return ++calls_; }
  uint64_t last_call() const { return calls_; }

 private:
  CudaMemory current_;
  bool is_recorded_ = false;          // the current one, by a graph
  std::vector<CudaMemory> recorded_;  // earlier ones; ascending sizes
  uint64_t version_ = 0, calls_ = 0;
};

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
  /// A session in the stream of `other`, which shares its memory of intermediate values. The two
  /// are used by one thread at a time.
  static Result<std::shared_ptr<CallSession>> create_beside(
      const CallSession& other, std::shared_ptr<const LoadedPlan> plan,
      const std::map<std::string, int64_t>& state_symbols);
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
  /// What its calls run in. Null on the host: cuda(); there is no memory() then.
  Session& session() const { return *session_; }
  CudaSession* cuda() const { return cuda_; }
  CallMemory& memory() const { return *memory_; }

 private:
  CallSession() = default;
  Status bind_symbols(const std::map<std::string, int64_t>& values);
  Status start_on_gpu(std::optional<void*> stream);

  std::shared_ptr<const LoadedPlan> plan_;
  std::vector<std::optional<int64_t>> symbols_;  // of each symbol that a state has
  CudaStream stream_;                            // on a GPU; outlives the memory below
  std::unique_ptr<Session> session_;
  CudaSession* cuda_ = nullptr;         // on a GPU: the session
  std::shared_ptr<CallMemory> memory_;  // on a GPU
};

}  // namespace sinter
