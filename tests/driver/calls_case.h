// A plan with states, row numbers and weights of every kind, called on the host and on the fake
// driver.
#pragma once

#include <map>

#include "driver/calls/bound_call.h"
#include "driver/host_kernels.h"

namespace sinter {

/// Entries: @step writes two states, reads rows by ids and slots, and returns a value, an input, a
/// weight, a state, and the first value again; one of its intermediate values is wider than any
/// output, so that it needs an arena. @wide has a larger arena. @rows computes row
/// numbers.
std::shared_ptr<const Program> calls_program(bool device_inputs = true);

constexpr int64_t kCallTokens = 3, kCallRows = 16, kCallWidth = 32;

const FakeDriver& fake();

/// The tensors of the weights, in memory that must outlive what borrows it.
struct CallWeights {
  HostTensor table, strided;
  static CallWeights random();
  TensorView table_view() const;
  /// Every second column of `strided`.
  TensorView scale_view() const;
};

/// Device memory as a caller has it, filled.
class CallerMemory {
 public:
  explicit CallerMemory(const HostTensor& tensor);
  TensorView view() const;
  HostTensor read() const;

 private:
  std::shared_ptr<std::vector<std::byte>> bytes_;
  std::byte* data_ = nullptr;  // aligned to 256 bytes
  HostTensor type_;
};

TensorView view_of(const HostTensor& tensor);

/// The inputs of @step.
struct CaseInputs {
  HostTensor ids, slot, first, x;
  static CaseInputs random(int64_t seed, int64_t tokens = kCallTokens);
};

}  // namespace sinter
