// A module's entries in float64 without roundings, on the host: what the errors of plans are
// measured against.
#pragma once

#include "runtime/executable.h"

namespace sinter {

class PreciseSession {
 public:
  /// `module`, frozen, outlives this. Weights are those that `executable`, a plan of the module,
  /// runs with.
  static Result<PreciseSession> create(const Module& module, const Executable& executable);

  /// The entry's outputs; floats are given as f32. States, zeros at first, are kept between calls
  /// in f32; the first call after creation or restart() sets their sizes.
  Result<std::vector<HostTensor>> run(std::string_view entry, llvm::ArrayRef<int64_t> symbol_values,
                                      llvm::ArrayRef<HostTensor> inputs);
  /// States are zeros again.
  void restart() { states_.clear(); }
  /// After a call: the module's states in its order.
  llvm::ArrayRef<HostTensor> states() const { return states_; }

 private:
  explicit PreciseSession(const Module& module) : module_(module) {}

  const Module& module_;
  std::vector<HostTensor> weights_, states_;
};

}  // namespace sinter
