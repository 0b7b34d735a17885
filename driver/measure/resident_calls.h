// Calls of a plan that stay on a device with their inputs, to be run again and again.
#pragma once

#include <map>

#include "runtime/cuda/executable.h"

namespace sinter {

/// One entry with its inputs by name. An input that is not there is the output of that name of the
/// call before.
struct ResidentCall {
  std::string entry;
  std::vector<int64_t> symbol_values;
  std::map<std::string, HostTensor, std::less<>> inputs;
};

/// A call with `inputs` in the entry's order, one for each.
ResidentCall resident_call(const Program& program, std::string entry,
                           std::vector<int64_t> symbol_values, std::vector<HostTensor> inputs);

/// Prepared calls on a session of their own: inputs uploaded, one arena for all calls, or an arena
/// each where a call reads results of the one before it. Every run reads the same inputs and, where
/// a state is written, writes the same rows.
class ResidentCalls {
 public:
  /// `session` is one of a CudaExecutable.
  static Result<ResidentCalls> create(std::unique_ptr<Session> session,
                                      const std::vector<ResidentCall>& calls);

  const CudaSession& session() const { return *session_->on_cuda(); }
  const CudaStream& stream() const { return session().stream(); }
  const std::vector<CudaCall>& calls() const { return calls_; }
  /// All calls' steps, in order.
  size_t steps() const;
  Status enqueue_step(size_t index) const;
  Status enqueue() const;
  /// All calls as one graph, after a first run, in which their code is loaded.
  Result<CudaGraph> record() const;

 private:
  ResidentCalls() = default;

  std::unique_ptr<Session> session_;
  CudaMemory memory_;  // arenas, then the inputs of each call
  std::vector<CudaCall> calls_;
};

}  // namespace sinter
