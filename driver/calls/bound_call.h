// An entry of a session with its tensors bound: prepared once, then run often.
#pragma once

#include "driver/calls/call_on_device.h"
#include "driver/calls/call_symbols.h"

namespace sinter {

/// Borrows the memory of its tensors. Errors name the argument, and show what is given and what is
/// wanted.
///
/// On a GPU, tensors are dense device memory, aligned to kPointerAlignment, and no output and no
/// state shares memory with an input, another output or state, or a weight, but that an output may
/// have the memory of an input where may_share_memory() says so of the plan. All work goes to the
/// session's stream, in its order: a call begins when the work before it is complete, and reads its
/// inputs and writes its outputs until the work after it begins. On the CPU, tensors have any
/// strides, run() copies them in and out, and an output may be an input's memory.
class BoundCall {
 public:
  /// Errors: no such entry; on a GPU, an entry whose inputs have row numbers that nothing checks
  /// there (CompileOptions::device_inputs).
  static Result<std::unique_ptr<BoundCall>> create(std::shared_ptr<CallSession> session,
                                                   std::string_view entry);
  BoundCall(const BoundCall&) = delete;  // its entry is borrowed
  BoundCall& operator=(const BoundCall&) = delete;

  /// A symbol that the shapes of inputs do not give. The symbols of states have the session's
  /// values.
  Status set_symbol(std::string_view name, int64_t value);
  /// May be bound again, to other memory or in another size.
  Status bind_input(std::string_view name, const TensorView& tensor);
  /// Where run() leaves an output; required for each.
  Status bind_output(std::string_view name, const TensorView& tensor);
  /// Memory that run() uses for a state of the entry, in place, instead of the session's, which it
  /// leaves alone. Contents are the caller's.
  Status bind_state(std::string_view name, const TensorView& tensor);
  /// Moves all inputs and outputs to other memory, in the entry's order, with the types, extents
  /// and strides that they are bound with. The same checks as of a binding, and cheap: a prepared
  /// call stays prepared. On an error nothing moves. Of an output that the entry names twice, the
  /// first address counts.
  Status set_addresses(llvm::ArrayRef<const void*> inputs, llvm::ArrayRef<void*> outputs);
  /// The extents of an output for the symbol values known so far.
  Result<std::vector<int64_t>> output_dims(std::string_view name) const;

  /// Everything that run() needs and must not do: symbol values, shapes, arena, matrix products.
  /// May allocate, compile and wait; not while the stream is being captured.
  Status prepare();
  /// Prepares if something changed. Else on a GPU only launches, and asks whether the stream is
  /// being captured: no allocation, no synchronization, no copy but one for each output that no
  /// step computes in its memory (an input, a weight, a state, or a value that is an output twice).
  /// May be captured in a CUDA graph, which holds the addresses bound now and may run as long as
  /// the call and the tensors are there. On the CPU, row numbers that name no row are an error.
  Status run();

  /// From now on steps may run in groups, between which memory changes hands: a tensor may be bound
  /// without memory (null) as long as no step that runs needs it. An output's memory then holds
  /// nothing but the output, and what a step overwrites with it, so that the arena may be larger.
  void allow_groups();
  /// The steps of the prepared call, and when they use its inputs and outputs. On the CPU a call is
  /// one step.
  Result<size_t> step_count();
  Result<const Lifetimes*> lifetimes();
  /// run() for the steps [first, last), which follow the steps of the call before, or begin with
  /// step 0; in between, set_addresses() may give outputs their first memory and take memory from
  /// inputs. An input whose lifetime ends behind `first` has memory, also one that a later step
  /// reads first, and so has an output whose lifetime begins before `last`, the same from there to
  /// the end; with the last step all outputs have. No other call of the session, or of one that
  /// shares its memory, comes between.
  Status run_steps(size_t first, size_t last);

  /// GPU: waits, and is the error of a row number that named no row when the call, or a graph of
  /// it, ran last; states may have changed by then. Row numbers of inputs are read where they are
  /// bound. On the CPU run() has said so.
  Status check();

 private:
  BoundCall(std::shared_ptr<CallSession> session, llvm::ArrayRef<EntryPlan> variants);
  void add_tensors();
  const Program& program() const { return entry_.program; }
  Status bind(BoundTensor& tensor, const TensorView& view);
  Status check_type(const BoundTensor& tensor, const TensorView& view) const;
  /// Checks of a tensor whose memory is written.
  Status check_strides(const BoundTensor& tensor, const TensorView& view) const;
  Result<CallSymbols> known_symbols() const;
  Status check_shapes(const CallSymbols& symbols) const;
  Status check_new_address(const BoundTensor& tensor, const void* address) const;
  /// run_steps()' conditions.
  Status check_order(size_t first, size_t last, size_t count) const;
  Status check_memory_of_steps(size_t first, size_t last, size_t count);
  /// At these addresses, which the tensors need not have yet. Returns by output of the entry
  /// whether no other value may lie in its memory: it is an input's, or steps run in groups.
  Result<std::vector<bool>> check_overlaps(llvm::ArrayRef<TensorAddress> inputs,
                                           llvm::ArrayRef<TensorAddress> outputs) const;
  /// may_share_memory() of all variants.
  bool may_share(const BoundTensor& output, const BoundTensor& input) const;
  Status run_prepared(size_t first, size_t last);

  std::shared_ptr<CallSession> session_;
  BoundEntry entry_;
  std::unique_ptr<CallOnDevice> on_device_;
  std::map<size_t, int64_t> set_symbols_;
  bool is_prepared_ = false, has_groups_ = false;
  size_t next_step_ = 0;                                         // of run_steps()
  std::optional<Lifetimes> lifetimes_;                           // when prepared
  mutable std::map<std::pair<size_t, size_t>, bool> may_share_;  // by output and input
};

}  // namespace sinter
