// Repeated calls, with the same sizes and addresses, recorded in graphs.
#pragma once

#include <list>
#include <optional>

#include "runtime/cuda/memory.h"

namespace sinter {

struct CudaCall;
class CudaSession;

/// Enqueues calls of one session in its stream. The first time, a call's steps are enqueued one by
/// one; the second time they are recorded in a graph, and from then on a call is one launch of it.
/// That saves the device's pauses and the host's work between the steps.
class RepeatedCalls {
 public:
  /// `call` is prepared, and all memory that it names stays where it is until clear().
  Status enqueue(const CudaSession& session, const CudaCall& call);
  /// Forgets all calls: memory that they name goes away.
  void clear() { known_.clear(); }

 private:
  struct Known {
    const void* entry;
    std::vector<int64_t> symbol_values;
    std::vector<CudaAddress> addresses;
    std::optional<CudaGraph> graph;  // from the second call on
  };
  std::list<Known> known_;  // the last used first
};

}  // namespace sinter
