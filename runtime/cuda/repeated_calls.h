// Calls that come again with the same sizes and addresses, recorded in graphs.
#pragma once

#include <list>

#include "runtime/cuda/memory.h"

namespace sinter {

struct CudaCall;
class CudaSession;

/// Enqueues calls of one session in its stream. The second call like an earlier one is recorded;
/// from then on such a call is one launch of its graph, without the pauses of the device and the
/// work of the host between one step and the next.
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
    bool recorded = false;
    CudaGraph graph;
  };
  std::list<Known> known_;  // the last used first
};

}  // namespace sinter
