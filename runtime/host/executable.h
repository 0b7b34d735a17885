// Runs a Program on the CPU: the same steps, buffers and arena offsets as a GPU would use, so that
// errors of the planner show as wrong results.
#pragma once

#include "runtime/executable.h"

namespace sinter {

class TensorSource;

/// Copies share everything, between threads too.
class HostExecutable final : public Executable {
 public:
  /// Evaluates the weight functions; `source` has the tensors of their `file` ops (may be null if
  /// there are none) and is not used afterwards. The program must have passed check().
  static Result<HostExecutable> load(std::shared_ptr<const Program> program,
                                     const TensorSource* source,
                                     const WeightProgress& progress = {});

  const Program& program() const override;
  std::string device() const override { return "cpu"; }
  Result<std::unique_ptr<Session>> new_session(
      llvm::ArrayRef<int64_t> symbol_values) const override;
  Result<HostTensor> read_weight(size_t index) const override { return weight(index); }
  const HostTensor& weight(size_t index) const;

 private:
  friend class HostSession;
  struct Data;
  std::shared_ptr<const Data> data_;
};

class HostSession final : public Session {
 public:
  static Result<HostSession> create(HostExecutable executable,
                                    llvm::ArrayRef<int64_t> symbol_values);

  Result<RunResult> run(std::string_view entry, llvm::ArrayRef<int64_t> symbol_values,
                        llvm::ArrayRef<const HostTensor*> inputs,
                        const CallOptions& options = {}) override;
  Result<HostTensor> state(size_t index) const override { return states_[index]; }
  Status clear_states() override;

  /// One per state of the program.
  llvm::ArrayRef<HostTensor> states() const { return states_; }

 private:
  HostExecutable executable_;
  std::vector<int64_t> symbol_values_;  // of create()
  std::vector<HostTensor> states_;
};

}  // namespace sinter
