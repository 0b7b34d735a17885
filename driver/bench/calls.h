// Calls of plans with everything on the device, many of them recorded in one graph.
#pragma once

#include "driver/measure/stopwatch.h"

namespace sinter {

/// The same inputs at `count` places.
class InputSets {
 public:
  static Result<InputSets> create(CudaDevicePtr device, llvm::ArrayRef<HostTensor> inputs,
                                  int64_t count);
  /// The addresses of the inputs of one set.
  std::vector<CudaAddress> addresses(size_t set) const;

 private:
  CudaMemory memory_;
  size_t stride_ = 0;
  std::vector<size_t> offsets_;
};

/// The calls to measure: an entry at given sizes.
struct EntryCall {
  std::string name;
  std::vector<int64_t> sizes;  // of all symbols
  int64_t sets = 1;
  int64_t rounds = 1;  // over the sets, in one graph
  uint64_t seed = 1;   // of the states
  int64_t calls() const { return sets * rounds; }
};

/// Calls of one plan's entry, one after the other in a graph; each set has its arena and, where the
/// module has states, its states.
class RecordedCalls {
 public:
  /// `inputs` has as many sets as `call` and must stay. Arenas are full of NaNs, states of random
  /// numbers.
  static Result<RecordedCalls> create(const std::shared_ptr<const CudaExecutable>& executable,
                                      const EntryCall& call, const InputSets& inputs);

  /// All calls once.
  Result<Stopwatch::Times> run();
  /// Output `index` of the last set's call.
  Result<HostTensor> output(size_t index) const;
  size_t outputs() const { return calls_.back().entry->outputs.size(); }

 private:
  const CudaSession& session(size_t set) const;
  const CudaStream& stream() const { return sessions_[0]->stream(); }
  Status place(const std::shared_ptr<const CudaExecutable>& executable, const EntryCall& call,
               const InputSets& inputs);
  Status fill_states(const CudaCall& call, uint64_t seed) const;

  std::vector<std::unique_ptr<CudaSession>> sessions_;  // one, or one a set
  CudaMemory arenas_;
  std::vector<CudaCall> calls_;  // one a set
  CudaGraph graph_;
  Stopwatch watch_;
};

/// Output `index` of a call that has been enqueued, copied out.
Result<HostTensor> read_output(const CudaCall& call, size_t index, const CudaStream& stream);

}  // namespace sinter
