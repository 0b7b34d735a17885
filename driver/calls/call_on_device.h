// How a device runs a bound entry: on the host by copies of its tensors, on a GPU in their memory.
#pragma once

#include "driver/calls/bound_entry.h"
#include "driver/calls/call_session.h"
#include "plan/lifetimes.h"

namespace sinter {

/// Made by a BoundCall, whose entry and session it borrows. Without a word about it, functions are
/// called when the entry is prepared.
class CallOnDevice {
 public:
  struct Range {
    TensorAddress begin = 0, end = 0;
  };

  virtual ~CallOnDevice() = default;

  /// Before anything is bound: an error if the device cannot run the entry.
  virtual Status check_entry() const { return {}; }
  /// When a tensor is bound, or moves to `address`: an error if the device cannot use its memory.
  virtual Status check_memory(const BoundTensor& tensor, const TensorView& view,
                              TensorAddress address) const = 0;
  /// Whether outputs must not share memory with inputs and weights, since these are read in place.
  virtual bool reads_in_place() const = 0;
  /// The memory of the program's weights where they are read in place.
  virtual llvm::ArrayRef<Range> weights() const { return {}; }

  /// Makes ready what run() must not make: memory, library plans.
  virtual Status prepare() { return {}; }
  /// The entry's tensors have moved.
  virtual void move() {}
  virtual size_t step_count() const = 0;
  virtual Result<Lifetimes> lifetimes() const = 0;
  /// Runs the steps [first, last); with the last one, outputs are in their memory.
  virtual Status run(size_t first, size_t last) = 0;
  /// The values of the steps before are still there.
  virtual bool has_values() const { return true; }
  /// Waits for the last run, and is the error of row numbers that run() has not looked at.
  virtual Status check() { return {}; }
};

std::unique_ptr<CallOnDevice> call_on_host(const BoundEntry& entry, CallSession& session);
std::unique_ptr<CallOnDevice> call_on_cuda(const BoundEntry& entry, CallSession& session);

}  // namespace sinter
