// Runs a Program on the CPU: the same steps, buffers and arena offsets as a GPU would use, so that
// errors of the planner show as wrong results.
#pragma once

#include <memory>
#include <utility>

#include "plan/program.h"
#include "runtime/host_tensor.h"

namespace sinter {

class TensorSource;

struct HostRunOptions {
  /// Fill the arena with bytes 0xFF (NaNs) before the run, and every buffer after its last use.
  bool poison_freed = false;
  /// Values to copy out as soon as they are computed; each must have a buffer in the plan.
  std::vector<std::string> keep;
};

struct RunResult {
  std::vector<HostTensor> outputs;                       // in the entry's order
  std::vector<std::pair<std::string, HostTensor>> kept;  // in the order of HostRunOptions::keep
};

/// A program with its weights. Immutable; copies share everything, between threads too.
class HostModel {
 public:
  /// Evaluates the weight functions; `source` has the tensors of their `file` ops (may be null if
  /// there are none) and is not used afterwards. The program must have passed check().
  static Result<HostModel> load(std::shared_ptr<const Program> program, const TensorSource* source);

  const Program& program() const;
  const HostTensor& weight(size_t index) const;

 private:
  friend class HostSession;
  struct Data;
  std::shared_ptr<const Data> data_;
};

/// The states of one user of a model, zeros at first. One call at a time.
class HostSession {
 public:
  /// `symbol_values[i]` for symbol i; those in the types of states hold for all calls, the others
  /// are not used.
  static Result<HostSession> create(HostModel model, llvm::ArrayRef<int64_t> symbol_values);

  /// Runs an entry with one tensor per input. Bad symbol values, tensors that do not fit the
  /// inputs' types, and ids or slots outside their tables are errors; the states may have changed
  /// by then.
  Result<RunResult> run(std::string_view entry, llvm::ArrayRef<int64_t> symbol_values,
                        llvm::ArrayRef<const HostTensor*> inputs,
                        const HostRunOptions& options = {});

  /// One per state of the program.
  llvm::ArrayRef<HostTensor> states() const { return states_; }

 private:
  HostModel model_;
  std::vector<int64_t> symbol_values_;  // of create()
  std::vector<HostTensor> states_;
};

}  // namespace sinter
