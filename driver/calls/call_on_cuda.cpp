#include <map>

#include "driver/calls/call_on_device.h"
#include "driver/calls/given_rows.h"
#include "plan/shared_outputs.h"
#include "runtime/input_ranges.h"

namespace sinter {
namespace {

/// Tensors are dense device memory. A call is placed in the session's memory, anew where that has
/// moved, and enqueued in its stream.
class CallOnCuda final : public CallOnDevice {
 public:
  CallOnCuda(const BoundEntry& entry, CallSession& session);
  ~CallOnCuda() override;

  Status check_entry() const override;
  Status check_memory(const BoundTensor& tensor, const TensorView& view,
                      TensorAddress address) const override;
  bool reads_in_place() const override { return true; }
  llvm::ArrayRef<Range> weights() const override { return weights_; }
  Status prepare() override;
  void move() override;
  size_t step_count() const override { return entry_.prepared->steps.size(); }
  Result<Lifetimes> lifetimes() const override;
  Status run(size_t first, size_t last) override;
  bool has_values() const override;
  Status check() override;

 private:
  struct OutputCopy {
    CudaAddress to = 0, from = 0;
    size_t bytes = 0;
  };
  using Addresses = llvm::SmallVector<CudaAddress, 16>;

  CudaSession& cuda() const { return *session_.cuda(); }
  CallMemory& memory() const { return session_.memory(); }
  Status place();
  /// Memory for the session's states, if the prepared variant has one that the caller gives none
  /// for.
  Status allocate_states();
  Status place_rows(CudaCall& call);
  /// Places the call anew where the session's memory has moved since.
  Status follow_memory();
  Result<std::vector<std::vector<int32_t>>> read_rows();
  /// By the entry's outputs; 0 where the caller has bound none.
  Addresses output_addresses() const;

  const BoundEntry& entry_;
  CallSession& session_;
  std::vector<Range> weights_;
  CudaCall call_;
  uint64_t memory_version_ = 0;  // of the session's memory, in which the call was placed
  uint64_t number_ = 0;          // of the run, among all of the session's memory
  std::vector<OutputCopy> copies_;
  // Row numbers that calls compute, which other calls of the session leave alone; ascending sizes.
  std::vector<CudaMemory> rows_;
};

CallOnCuda::CallOnCuda(const BoundEntry& entry, CallSession& session)
    : entry_(entry), session_(session) {
  const CudaWeights& weights = cuda().executable().weights();
  for (size_t i = 0; i < entry.program.weights.size(); ++i) {
    const auto bytes = static_cast<size_t>(storage_bytes(entry.program.weights[i].type).constant());
    weights_.push_back({weights.address(i), weights.address(i) + bytes});
  }
}

CallOnCuda::~CallOnCuda() {
  if (rows_.empty()) return;
  const CudaContextGuard guard(session_.plan().device().cuda_api());
  // An error has nobody to go to; the work that failed is over as well.
  (void)cuda().stream().synchronize("the end of a call");
  rows_.clear();
}

Status CallOnCuda::check_entry() const {
  for (const EntryPlan& entry : entry_.variants)
    SINTER_TRY(require_checked_inputs(entry_.program, entry));
  return {};
}

Status CallOnCuda::check_memory(const BoundTensor& tensor, const TensorView& view,
                                TensorAddress address) const {
  if (!is_dense(view))
    return fail(fmt::format("strides [{}] of {}, device memory must be dense",
                            fmt::join(view.strides, ", "), to_string(view)),
                tensor.place, "copy the tensor", ExitCode::usage);
  if (address % kPointerAlignment == 0 || volume(view) == 0) return {};
  return fail(fmt::format("address {:#x} is aligned to {} bytes, kernels need {}", address,
                          address & -address, kPointerAlignment),
              tensor.place, "copy the tensor to memory of its own", ExitCode::usage);
}

Status CallOnCuda::prepare() {
  SINTER_LET(capturing, cuda().stream().is_capturing());
  if (capturing)
    return fail("the call is not prepared, and its stream is being captured", entry_.place(),
                "prepare the call before the capture", ExitCode::usage);
  SINTER_TRY(place());
  return cuda().prepare(call_);
}

Status CallOnCuda::place() {
  const Addresses outputs = output_addresses();
  const std::string& name = entry_.first().name;
  SINTER_LET(bytes, cuda().arena_bytes(name, entry_.symbol_values, entry_.shared));
  SINTER_TRY(allocate_states());
  SINTER_TRY(memory().grow_to(bytes, session_.plan().device().cuda(), cuda().stream().handle()));
  const Addresses inputs(entry_.first().inputs.size(), 0);
  SINTER_LET(call, cuda().place(name, entry_.symbol_values, inputs, memory().address(), outputs,
                                entry_.shared));
  SINTER_TRY(place_rows(call));
  call_ = std::move(call);
  memory_version_ = memory().version();
  move();
  return {};
}

/// Variants may read other states than the first, whose states have the names of a call.
Status CallOnCuda::allocate_states() {
  const auto is_the_callers = [&](const Buffer& buffer) {
    return llvm::any_of(entry_.states, [&](const BoundTensor& state) {
      return state.index == buffer.index && state.view.has_value();
    });
  };
  const bool has_own = llvm::any_of(entry_.prepared->buffers, [&](const Buffer& buffer) {
    return buffer.place == Buffer::Place::state && !is_the_callers(buffer);
  });
  return has_own ? cuda().allocate_states() : Status();
}

/// Like outputs, these buffers keep their places to the end of a call, so that any memory serves.
Status CallOnCuda::place_rows(CudaCall& call) {
  const EntryPlan& entry = *entry_.prepared;
  std::map<uint32_t, size_t> offsets;  // by buffer
  size_t bytes = 0;
  for (const RowCheck& check : entry.row_checks) {
    if (entry.buffers[check.buffer].place != Buffer::Place::arena ||
        llvm::is_contained(entry.outputs, check.buffer) || offsets.contains(check.buffer))
      continue;
    offsets[check.buffer] = bytes;
    bytes += aligned_bytes(call.bytes[check.buffer]);
  }
  if (bytes == 0) return {};
  if (rows_.empty() || rows_.back().bytes() < bytes) {
    SINTER_LET(memory, CudaMemory::allocate(session_.plan().device().cuda(), bytes, "row numbers",
                                            cuda().stream().handle()));
    rows_.push_back(std::move(memory));
  }
  for (const auto& [buffer, offset] : offsets)
    call.addresses[buffer] = rows_.back().address() + offset;
  return {};
}

CallOnCuda::Addresses CallOnCuda::output_addresses() const {
  Addresses outputs(entry_.first().outputs.size(), 0);
  for (const BoundTensor& output : entry_.outputs) outputs[output.index] = output.address();
  return outputs;
}

void CallOnCuda::move() {
  Addresses inputs;
  const Addresses outputs = output_addresses();
  for (const BoundTensor& input : entry_.inputs) inputs.push_back(input.address());
  Addresses states(entry_.program.states.size(), 0);
  for (const BoundTensor& state : entry_.states)
    if (state.view) states[state.index] = state.address();
  call_.move_to(inputs, outputs, states);
  copies_.clear();
  for (const BoundTensor& output : entry_.outputs) {
    const CudaAddress computed = call_.output(output.index), wanted = outputs[output.index];
    if (computed != wanted) copies_.push_back({wanted, computed, output.bytes});
  }
}

Result<Lifetimes> CallOnCuda::lifetimes() const {
  const auto layout = arena_layout(*entry_.prepared, entry_.symbol_values, entry_.shared);
  if (!layout) return fail("the arena's size exceeds 63 bits", entry_.place());
  return sinter::lifetimes(entry_.program, *entry_.prepared, *layout);
}

Status CallOnCuda::follow_memory() {
  SINTER_LET(capturing, cuda().stream().is_capturing());
  if (capturing) memory().keep();
  return memory().version() == memory_version_ ? Status() : place();
}

Status CallOnCuda::run(size_t first, size_t last) {
  if (first == 0) {
    SINTER_TRY(follow_memory());
    number_ = memory().begin_call();
  }
  const CudaStream& stream = cuda().stream();
  SINTER_TRY(cuda().enqueue(call_, first, last, stream, CallBegin::in_order));
  if (last < step_count()) return {};
  for (const OutputCopy& copy : copies_)
    SINTER_TRY(stream.copy_on_device(copy.to, copy.from, copy.bytes));
  return {};
}

bool CallOnCuda::has_values() const {
  return memory().version() == memory_version_ && memory().last_call() == number_;
}

Status CallOnCuda::check() {
  SINTER_TRY(cuda().stream().synchronize(entry_.place()));
  const bool has_checks = llvm::any_of(
      entry_.variants, [](const EntryPlan& entry) { return !entry.row_checks.empty(); });
  if (!has_checks) return {};
  if (!entry_.has_run || entry_.is_rebound)
    return fail(entry_.has_run ? "the call was bound again since it ran" : "the call has not run",
                entry_.place(), "check a call after its run", ExitCode::usage);
  SINTER_LET(numbers, read_rows());
  for (size_t check = 0; check < numbers.size(); ++check)
    SINTER_TRY(check_computed_rows(*entry_.prepared, check, entry_.symbol_values, numbers[check],
                                   [&](size_t i) { return cuda().wide_number(call_, check, i); }));
  return {};
}

/// By the prepared variant's row checks.
Result<std::vector<std::vector<int32_t>>> CallOnCuda::read_rows() {
  const CudaStream& stream = cuda().stream();
  std::vector<std::vector<int32_t>> numbers;
  for (const RowCheck& check : entry_.prepared->row_checks) {
    const auto count =
        volume(entry_.prepared->buffers[check.buffer].type.dims).evaluate(entry_.symbol_values);
    if (!count) return fail("a number of rows exceeds 63 bits", entry_.place());
    numbers.emplace_back(static_cast<size_t>(*count));
    SINTER_TRY(stream.copy_to_host(std::as_writable_bytes(std::span(numbers.back())),
                                   call_.addresses[check.buffer]));
  }
  SINTER_TRY(stream.synchronize(entry_.place()));
  return numbers;
}

}  // namespace

std::unique_ptr<CallOnDevice> call_on_cuda(const BoundEntry& entry, CallSession& session) {
  return std::make_unique<CallOnCuda>(entry, session);
}

}  // namespace sinter
