// Running a Program: an Executable holds what calls share, a Session what one user's calls leave
// behind. The host (host/executable.h) and CUDA (cuda/executable.h) implement both.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "plan/program.h"
#include "runtime/evaluate/host_tensor.h"

namespace sinter {

class CudaExecutable;
class CudaSession;

/// The byte that fills memory without a value if that is requested: NaNs in every float type.
inline constexpr unsigned char kPoison = 0xFF;

/// Told from the loading thread how many bytes of weights are done, of how many. False ends the
/// loading with an error.
using WeightProgress = std::function<bool(size_t done, size_t total)>;
/// The error where `progress` says so.
Status report_progress(const WeightProgress& progress, size_t done, size_t total);

class RankGroup;

struct CallOptions {
  /// Fill the arena with kPoison before the run, and every buffer after its last use. On the host
  /// elements that no part of a value has been placed in hold it too.
  bool poison_freed = false;
  /// Values to copy out as soon as they are computed; each must have a buffer in the plan.
  std::vector<std::string> keep;
  /// CUDA: evaluate every kernel's group on the host too, on what the kernel read, and compare the
  /// results bit for bit, or by its tolerance for an inexact caller's op; a difference is an error
  /// (ExitCode::check_failed) that names the kernel.
  bool check_kernels = false;
  /// Host: tensors that take the place of states, by number, of their type and extents; the call
  /// reads and writes them.
  std::vector<std::pair<size_t, HostTensor*>> states = {};
  /// Host: the ranks that collectives meet, and which of them calls; null: one rank.
  RankGroup* ranks = nullptr;
  size_t rank = 0;
};

struct RunResult {
  std::vector<HostTensor> outputs;                       // in the entry's order
  std::vector<std::pair<std::string, HostTensor>> kept;  // in the order of CallOptions::keep
};

/// The states of one user of an executable, zeros at first. One call at a time.
class Session {
 public:
  virtual ~Session() = default;

  /// Runs an entry with one tensor per input. Bad symbol values, tensors that do not fit the
  /// inputs' types, and row numbers that name no row are errors. Row numbers of inputs are checked
  /// before the call; when other row numbers fail, the states may have changed.
  virtual Result<RunResult> run(std::string_view entry, llvm::ArrayRef<int64_t> symbol_values,
                                llvm::ArrayRef<const HostTensor*> inputs,
                                const CallOptions& options = {}) = 0;

  /// State `index` of the program, copied out.
  virtual Result<HostTensor> state(size_t index) const = 0;
  /// All states are zeros again; on a GPU in the order of its stream, without a wait.
  virtual Status clear_states() = 0;
  /// The session whose calls stay on a GPU; null: the host's.
  virtual CudaSession* on_cuda() { return nullptr; }
};

/// A program with its weights, immutable. Sessions keep what they need of it.
class Executable {
 public:
  virtual ~Executable() = default;

  virtual const Program& program() const = 0;
  /// "cpu", "cuda:0 (NVIDIA H200)"
  virtual std::string device() const = 0;
  /// `symbol_values[i]` for symbol i; those in the types of states hold for all calls, the others
  /// are not used.
  virtual Result<std::unique_ptr<Session>> new_session(
      llvm::ArrayRef<int64_t> symbol_values) const = 0;
  /// Weight `index` of the program, copied out.
  virtual Result<HostTensor> read_weight(size_t index) const = 0;
  /// The executable whose sessions stay on a GPU; null: the host's.
  virtual std::shared_ptr<const CudaExecutable> on_cuda() const { return nullptr; }
};

/// Index of the symbol, or -1.
int find_symbol(llvm::ArrayRef<Symbol> symbols, std::string_view name);
/// Extents of a type for these symbol values.
std::vector<int64_t> concrete_dims(const TensorType& type, llvm::ArrayRef<int64_t> symbol_values);
/// Symbol values that any program's weights can be evaluated with: weights have constant extents.
std::vector<int64_t> greatest_symbol_values(llvm::ArrayRef<Symbol> symbols);
/// The entry of that name and valid values for all symbols, those in the types of states as the
/// session was made with.
Result<const EntryPlan*> find_call(const Program& program, std::string_view entry,
                                   llvm::ArrayRef<int64_t> symbol_values,
                                   llvm::ArrayRef<int64_t> session_values);
/// One tensor per input of the entry, of its type.
Status check_call_inputs(const Program& program, const EntryPlan& entry,
                         llvm::ArrayRef<int64_t> symbol_values,
                         llvm::ArrayRef<const HostTensor*> inputs);
/// Buffer of the entry that holds the value; an error where it lives inside a kernel.
Result<uint32_t> find_stored(const EntryPlan& entry, std::string_view value);
/// The arena buffers of an entry in the order in which its steps free them, without those whose
/// place another takes in the step that reads them last.
class FreedBuffers {
 public:
  explicit FreedBuffers(const EntryPlan& entry);
  llvm::ArrayRef<uint32_t> all() const { return order_; }
  /// The buffers whose last use is `step` or an earlier step, and that were not taken yet.
  llvm::ArrayRef<uint32_t> take(uint32_t step);

 private:
  const EntryPlan& entry_;
  std::vector<uint32_t> order_;
  size_t taken_ = 0;
};

/// The outcome of a step of an entry; an error says "entry E, step I (%a, %b)" before its own
/// place.
Status in_step(Status done, const EntryPlan& entry, size_t step);
/// Weight `index` computed on the host.
class TensorSource;
Result<HostTensor> evaluate_weight(const Program& program, size_t index,
                                   const TensorSource* source);

}  // namespace sinter
