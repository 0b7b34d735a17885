#include "runtime/cuda/repeated_calls.h"

#include <algorithm>

#include "runtime/cuda/executable.h"

namespace sinter {
namespace {

// Calls that are remembered: a prompt's full and last chunks, and a step of each of two entries.
constexpr size_t kMaxKnown = 4;

}  // namespace

Status RepeatedCalls::enqueue(const CudaSession& session, const CudaCall& call) {
  const CudaStream& stream = session.stream();
  // The default stream cannot be recorded.
  if (stream.handle() == nullptr) return session.enqueue(call, stream);
  const auto same = [&](const Known& known) {
    return known.entry == call.entry && known.symbol_values == call.symbol_values &&
           known.addresses == call.addresses;
  };
  const auto found = std::find_if(known_.begin(), known_.end(), same);
  if (found == known_.end()) {
    SINTER_TRY(session.enqueue(call, stream));
    if (known_.size() == kMaxKnown) known_.pop_back();
    known_.push_front({call.entry, call.symbol_values, call.addresses, {}});
    return {};
  }
  known_.splice(known_.begin(), known_, found);
  std::optional<CudaGraph>& graph = known_.front().graph;
  if (!graph) {
    SINTER_LET(recorded, CudaGraph::record(stream, [&] { return session.enqueue(call, stream); }));
    graph = std::move(recorded);
  }
  return graph->launch(stream);
}

}  // namespace sinter
