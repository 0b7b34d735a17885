// Runs a Program on an NVIDIA GPU: kernels compiled by NVRTC and loaded once, products by CudaGemm,
// weights, states and arena resident.
#pragma once

#include <optional>

#include "device/embedded_header.h"
#include "runtime/cuda/gemm.h"
#include "runtime/cuda/kernel_cache.h"
#include "runtime/cuda/kernels.h"
#include "runtime/cuda/repeated_calls.h"
#include "runtime/cuda/weights.h"
#include "runtime/executable.h"

namespace sinter {

/// A program on a device. Sessions share it.
class CudaExecutable final : public Executable,
                             public std::enable_shared_from_this<CudaExecutable> {
 public:
  /// Loads the kernels: takes their machine code from `ready` and compiles the rest for the
  /// device's architecture, from the cache where it can. `gemm` and `weights` live on the same
  /// device; without `gemm`, sessions of a program with products have their own; `weights` serve
  /// the program. A device that is too old for a kernel, or has too little shared memory for it, is
  /// an error.
  static Result<std::shared_ptr<const CudaExecutable>> load(
      std::shared_ptr<const Program> program, CudaDevicePtr device, std::shared_ptr<CudaGemm> gemm,
      std::shared_ptr<const CudaWeights> weights, llvm::ArrayRef<EmbeddedHeader> headers,
      const KernelCache& cache, const MachineCodeByText& ready = {});

  /// The same with kernels that are loaded already, one per kernel of the program; `libraries` keep
  /// them.
  static Result<std::shared_ptr<const CudaExecutable>> assemble(
      std::shared_ptr<const Program> program, CudaDevicePtr device, std::shared_ptr<CudaGemm> gemm,
      std::shared_ptr<const CudaWeights> weights,
      std::vector<std::shared_ptr<const CudaLibrary>> libraries,
      std::vector<CudaApi::Kernel> kernels);

  /// Another plan of the same module on the same device, with the same products and weights; what
  /// `kernels` lack is compiled and added.
  Result<std::shared_ptr<const CudaExecutable>> with_program(std::shared_ptr<const Program> program,
                                                             CudaKernels& kernels) const;

  const Program& program() const override { return *program_; }
  std::string device() const override;
  Result<std::unique_ptr<Session>> new_session(
      llvm::ArrayRef<int64_t> symbol_values) const override;
  Result<HostTensor> read_weight(size_t index) const override;
  std::shared_ptr<const CudaExecutable> on_cuda() const override { return shared_from_this(); }

  const CudaDevicePtr& cuda_device() const { return device_; }
  CudaGemm& gemm() const { return *gemm_; }
  const CudaWeights& weights() const { return *weights_; }
  /// How long compiling its kernels took in all.
  double compile_seconds() const { return compile_seconds_; }

 private:
  friend class CudaSession;
  static Result<std::shared_ptr<const CudaExecutable>> load(
      std::shared_ptr<const Program> program, CudaDevicePtr device, std::shared_ptr<CudaGemm> gemm,
      std::shared_ptr<const CudaWeights> weights, CudaKernels& known,
      const MachineCodeByText& ready = {});
  static Result<std::shared_ptr<CudaExecutable>> make(
      std::shared_ptr<const Program> program, CudaDevicePtr device, std::shared_ptr<CudaGemm> gemm,
      std::shared_ptr<const CudaWeights> weights,
      std::vector<std::shared_ptr<const CudaLibrary>> libraries,
      std::vector<CudaApi::Kernel> kernels);

  std::shared_ptr<const Program> program_;
  CudaDevicePtr device_;
  std::shared_ptr<CudaGemm> gemm_;
  std::shared_ptr<const CudaWeights> weights_;
  std::vector<std::shared_ptr<const CudaLibrary>> libraries_;
  std::vector<CudaApi::Kernel> kernels_;  // of the program
  double compile_seconds_ = 0;
};

/// One entry with concrete symbol values and the addresses of all its buffers: what can be enqueued
/// again and again, and recorded in a graph.
struct CudaCall {
  const EntryPlan* entry = nullptr;
  std::vector<int64_t> symbol_values;
  std::vector<CudaAddress> addresses;  // of each buffer
  std::vector<size_t> bytes;           // of each buffer
  size_t arena_bytes = 0;
  // Buffers in the memory of an output.
  struct InOutput {
    size_t buffer, output, offset;
  };
  std::vector<InOutput> in_outputs;
  // Memory of the arena that holds nothing during a step; one for each step.
  std::vector<FreeMemory> free;

  CudaAddress output(size_t index) const { return addresses[entry->outputs[index]]; }
  /// Moves inputs and outputs, in the entry's order, and states, in the program's, to other memory.
  /// An output that another buffer's memory holds (an input's, a weight's, a state's) stays where
  /// it is, and so do outputs and states at 0.
  void move_to(llvm::ArrayRef<CudaAddress> inputs, llvm::ArrayRef<CudaAddress> outputs,
               llvm::ArrayRef<CudaAddress> states = {});
};

/// Resources that a session has of its own instead of sharing them.
struct CudaSessionOptions {
  /// The stream that its work goes to, which must outlive the session; null is the default stream.
  /// Nothing: a stream of its own.
  std::optional<CudaApi::Stream> stream;
  /// Computes the session's products, so that it runs beside other sessions. Null: the
  /// executable's.
  std::shared_ptr<CudaGemm> gemm;
  /// The session has no memory for states until allocate_states().
  bool states_later = false;
};

/// Where the first kernel of a call begins.
enum class CallBegin : uint8_t {
  overlapped,  // perhaps before what is ahead of it in the stream ends, if that is a call too
  in_order,    // when all that is ahead of it is complete, whoever enqueued that
};

/// States on the device; one thread at a time.
class CudaSession final : public Session {
 public:
  static Result<std::unique_ptr<CudaSession>> create(
      std::shared_ptr<const CudaExecutable> executable, llvm::ArrayRef<int64_t> symbol_values,
      CudaSessionOptions options = {});

  Result<RunResult> run(std::string_view entry, llvm::ArrayRef<int64_t> symbol_values,
                        llvm::ArrayRef<const HostTensor*> inputs,
                        const CallOptions& options = {}) override;
  Result<HostTensor> state(size_t index) const override;
  Status clear_states() override;
  CudaSession* on_cuda() override { return this; }

  /// The call with its inputs at `inputs`, its arena at `arena` (0: not yet known), and outputs at
  /// `outputs` instead of the arena where that is not 0. If every output has an address, or with
  /// `shared`, outputs take no room in the arena, and other buffers may lie in an output's memory
  /// before it is written, unless `shared`, by output, is true. Addresses of inputs and outputs are
  /// aligned to kPointerAlignment.
  Result<CudaCall> place(std::string_view entry, llvm::ArrayRef<int64_t> symbol_values,
                         llvm::ArrayRef<CudaAddress> inputs, CudaAddress arena,
                         llvm::ArrayRef<CudaAddress> outputs = {},
                         const std::vector<bool>& shared = {}) const;
  /// Everything that enqueue needs but must not do: decisions, library plans. A call stays prepared
  /// when it moves to other aligned addresses.
  Status prepare(const CudaCall& call) const;
  /// Enqueues all steps of a prepared call. Only launches: may be recorded.
  Status enqueue(const CudaCall& call, const CudaStream& stream,
                 CallBegin begin = CallBegin::overlapped) const;
  /// The same for the steps [first, last).
  Status enqueue(const CudaCall& call, size_t first, size_t last, const CudaStream& stream,
                 CallBegin begin) const;
  Status enqueue_step(const CudaCall& call, size_t step, const CudaStream& stream) const;
  /// Memory for all states, zeros; nothing if it is there. May wait. Calls that were placed before
  /// have no states.
  Status allocate_states();

  /// After a call: element `i` of the i64 input whose elements the numbers of row check `check` are
  /// casts of, read where it is bound; nothing: there is none. Waits.
  Result<std::optional<int64_t>> wide_number(const CudaCall& call, size_t check, size_t i) const;

  /// Gives back the memory that run() keeps for its next call.
  void free_arena() {
    repeated_.clear();
    arena_ = CudaMemory();
  }

  const CudaStream& stream() const { return stream_; }
  const CudaExecutable& executable() const { return *executable_; }
  /// Bytes of the entry's arena for these symbol values. `shared`: as of place(); empty: outputs
  /// lie in the arena.
  Result<size_t> arena_bytes(std::string_view entry, llvm::ArrayRef<int64_t> symbol_values,
                             const std::vector<bool>& shared = {}) const;

 private:
  /// `begin`: of the step's first launch; `overlapped` afterwards, if a kernel was launched.
  Status enqueue_step(const CudaCall& call, size_t step, const CudaStream& stream,
                      CallBegin& begin) const;
  Status enqueue(const CudaCall& call, const KernelStep& run, const CudaStream& stream,
                 CallBegin& begin) const;
  Status enqueue(const CudaCall& call, const CopyStep& copy, const CudaStream& stream) const;
  CudaGemm& gemm() const { return gemm_ ? *gemm_ : executable_->gemm(); }

  std::shared_ptr<const CudaExecutable> executable_;
  std::vector<int64_t> symbol_values_;  // of create()
  CudaStream stream_;                   // outlives the memory that is used in its order
  std::shared_ptr<CudaGemm> gemm_;      // its own; null: the executable's
  std::vector<CudaMemory> states_;      // empty until they are allocated
  CudaMemory arena_;                    // of run(), grown when a call needs more
  RepeatedCalls repeated_;              // of run(), at addresses in the arena
};

}  // namespace sinter
