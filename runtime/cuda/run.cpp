// CudaSession::run: one call with tensors of the host.
#include <algorithm>

#include "ir/op_roles.h"
#include "runtime/compare.h"
#include "runtime/cuda/executable.h"
#include "runtime/evaluate/evaluate.h"
#include "runtime/input_ranges.h"

namespace sinter {
namespace {

/// For a value in whose memory parts are placed (op `place`): copies the elements that no kernel
/// has written yet from `given` to `expected`, the host's value, so that they are not compared.
void skip_missing_parts(const Graph& group, ValueId output, const HostTensor& given,
                        HostTensor& expected) {
  if (!places_part(group[output])) return;
  const auto axis = static_cast<size_t>(group[output].attrs.get<int64_t>(AttrName::axis));
  int64_t low = given.dims[axis], high = 0;  // parts follow one another
  for (ValueId id = output; id.valid(); id = operand_with(group[id], OperandRole::base)) {
    const Op& op = group[id];
    if (!places_part(op)) return;  // the elements of a base outside the kernel were operands
    const int64_t begin = op.attrs.get<int64_t>(AttrName::begin);
    low = std::min(low, begin);
    high = std::max(high, begin + group[op.operands[0]].type.dims[axis].constant());
  }
  size_t outer = 1, inner = static_cast<size_t>(whole_bytes(given.dtype));
  for (size_t i = 0; i < axis; ++i) outer *= static_cast<size_t>(given.dims[i]);
  for (size_t i = axis + 1; i < given.dims.size(); ++i) inner *= static_cast<size_t>(given.dims[i]);
  const size_t row = static_cast<size_t>(given.dims[axis]) * inner;
  const size_t first = static_cast<size_t>(low) * inner, last = static_cast<size_t>(high) * inner;
  for (size_t i = 0; i < outer; ++i) {
    const std::byte* from = given.bytes.data() + i * row;
    std::byte* to = expected.bytes.data() + i * row;
    std::copy(from, from + first, to);
    std::copy(from + last, from + row, to + last);
  }
}

class CudaRun {
 public:
  CudaRun(const CudaSession& session, RepeatedCalls& repeated, CudaCall call,
          const CallOptions& options)
      : session_(session),
        repeated_(repeated),
        stream_(session.stream()),
        call_(std::move(call)),
        entry_(*call_.entry),
        options_(options) {}

  Result<RunResult> run() {
    SINTER_TRY(session_.prepare(call_));
    if (options_.poison_freed) {
      freed_.emplace(entry_);
      SINTER_TRY(poison(freed_->all()));
    }
    SINTER_TRY(prepare_kept());
    if (!options_.poison_freed && kept_.empty() && !options_.check_kernels) {
      SINTER_TRY(repeated_.enqueue(session_, call_));
    } else {
      SINTER_TRY(session_.executable().cuda_device()->make_current());
      for (uint32_t i = 0; i < entry_.steps.size(); ++i) SINTER_TRY(in_step(step(i), entry_, i));
    }
    for (uint32_t output : entry_.outputs) {
      SINTER_LET(tensor, copy_out(output));
      result_.outputs.push_back(std::move(tensor));
    }
    std::vector<HostTensor> numbers;
    for (const RowCheck& check : entry_.row_checks) {
      SINTER_LET(tensor, copy_out(check.buffer));
      numbers.push_back(std::move(tensor));
    }
    SINTER_TRY(stream_.synchronize("entry " + printable(entry_.name)));
    for (size_t check = 0; check < numbers.size(); ++check)
      SINTER_TRY(check_computed_rows(
          entry_, check, call_.symbol_values, numbers[check].elements<int32_t>(),
          [&](size_t i) { return session_.wide_number(call_, check, i); }));
    return std::move(result_);
  }

 private:
  Status poison(llvm::ArrayRef<uint32_t> buffers) const {
    for (uint32_t id : buffers)
      SINTER_TRY(stream_.fill(call_.addresses[id], kPoison, call_.bytes[id]));
    return {};
  }

  /// Enqueued only: the tensor is complete after the next synchronization.
  Result<HostTensor> copy_out(uint32_t id) const {
    const TensorType& type = entry_.buffers[id].type;
    SINTER_LET(tensor, make_tensor(type.dtype, concrete_dims(type, call_.symbol_values)));
    SINTER_TRY(stream_.copy_to_host(tensor.bytes, call_.addresses[id]));
    return std::move(tensor);
  }

  Status prepare_kept() {
    result_.kept.resize(options_.keep.size());
    for (size_t i = 0; i < options_.keep.size(); ++i) {
      SINTER_LET(id, find_stored(entry_, options_.keep[i]));
      result_.kept[i].first = options_.keep[i];
      const Buffer& buffer = entry_.buffers[id];
      if (buffer.place == Buffer::Place::arena || buffer.version > 0) {
        kept_.emplace_back(id, i);
        continue;
      }
      SINTER_LET(tensor, copy_out(id));
      result_.kept[i].second = std::move(tensor);
    }
    return {};
  }

  Status step(uint32_t i) {
    const StepFacts facts = step_facts(session_.executable().program(), entry_.steps[i]);
    const bool checked =
        options_.check_kernels && facts.kernel != nullptr &&
        (follows_stated_order(*facts.kernel, call_.symbol_values) || host_tolerance(*facts.kernel));
    std::vector<HostTensor> read;
    if (checked)
      for (uint32_t input : facts.reads) {
        SINTER_LET(tensor, copy_out(input));
        read.push_back(std::move(tensor));
      }
    if (checked) SINTER_TRY(stream_.synchronize("reading a kernel's inputs"));
    SINTER_TRY(session_.enqueue_step(call_, i, stream_));
    if (checked) SINTER_TRY(check_kernel(facts, read));
    for (const auto& [id, index] : kept_) {
      if (!llvm::is_contained(facts.writes, id)) continue;
      SINTER_LET(tensor, copy_out(id));
      result_.kept[index].second = std::move(tensor);
    }
    return freed_ ? poison(freed_->take(i)) : Status();
  }

  /// The kernel's results against the host's evaluation of its group on the same operands.
  Status check_kernel(const StepFacts& step, const std::vector<HostTensor>& read) const {
    const Kernel& kernel = *step.kernel;
    SINTER_LET(expected, evaluate(kernel.group, session_.executable().program().symbols,
                                  call_.symbol_values, addresses_of(read)));
    for (size_t i = 0; i < step.writes.size(); ++i) {
      SINTER_LET(given, copy_out(step.writes[i]));
      SINTER_TRY(stream_.synchronize("kernel " + kernel.name));
      skip_missing_parts(kernel.group, kernel.group.outputs[i], given, expected[i]);
      if (!follows_stated_order(kernel, call_.symbol_values)) {
        SINTER_TRY(check_tolerance(kernel, given, expected[i]));
        continue;
      }
      SINTER_LET(difference, compare_bits(given, expected[i]));
      if (difference)
        return fail(fmt::format("kernel {}, result {}: the device differs from the host: {}",
                                kernel.name, i, to_string(*difference)),
                    {}, "this is a bug of the compiler or the device", ExitCode::check_failed);
    }
    return {};
  }

  /// The result of a caller's op, which both sides round.
  static Status check_tolerance(const Kernel& kernel, const HostTensor& given,
                                const HostTensor& expected) {
    const Tolerance allowed{.relative = 2 * unit_roundoff(given.dtype),
                            .absolute = *host_tolerance(kernel)};
    SINTER_LET(excess, exceeds(given, to_doubles(expected), allowed));
    if (!excess) return {};
    return fail(fmt::format("kernel {}: {} elements differ too much from the host's evaluation, "
                            "element {} is {} instead of {}, more than {} apart",
                            kernel.name, excess->count, excess->index, excess->value,
                            excess->reference, excess->allowed),
                {}, "compare the op's kernel text and its evaluation, or raise its tolerance",
                ExitCode::check_failed);
  }

  const CudaSession& session_;
  RepeatedCalls& repeated_;
  const CudaStream& stream_;
  CudaCall call_;
  const EntryPlan& entry_;
  const CallOptions& options_;
  std::optional<FreedBuffers> freed_;              // to poison
  std::vector<std::pair<uint32_t, size_t>> kept_;  // buffer, index in RunResult::kept
  RunResult result_;
};

}  // namespace

Result<std::optional<int64_t>> CudaSession::wide_number(const CudaCall& call, size_t check,
                                                        size_t i) const {
  const auto input = wide_input(executable_->program(), *call.entry, check);
  if (!input) return std::nullopt;
  int64_t number = 0;
  const CudaAddress at = call.addresses[call.entry->inputs[*input]] + i * sizeof number;
  SINTER_TRY(stream_.copy_to_host(std::as_writable_bytes(std::span(&number, 1)), at));
  SINTER_TRY(stream_.synchronize("entry " + printable(call.entry->name)));
  return number;
}

Result<RunResult> CudaSession::run(std::string_view entry_name,
                                   llvm::ArrayRef<int64_t> symbol_values,
                                   llvm::ArrayRef<const HostTensor*> inputs,
                                   const CallOptions& options) {
  SINTER_CHECK(options.states.empty(), "states in host memory");
  const Program& program = executable_->program();
  SINTER_LET(entry, find_call(program, entry_name, symbol_values, symbol_values_));
  SINTER_TRY(check_call_inputs(program, *entry, symbol_values, inputs));
  SINTER_TRY(check_input_ranges(program, *entry, symbol_values, inputs));
  // Inputs follow the arena.
  SINTER_LET(arena_size, arena_bytes(entry_name, symbol_values));
  size_t needed = aligned_bytes(arena_size);
  for (const HostTensor* input : inputs)
    needed += aligned_bytes(std::max<size_t>(input->bytes.size(), 1));
  if (arena_.bytes() < needed) {
    free_arena();
    SINTER_LET(memory, CudaMemory::allocate(executable_->cuda_device(), needed, "the arena"));
    arena_ = std::move(memory);
  }
  std::vector<CudaAddress> addresses;
  CudaAddress at = arena_.address() + aligned_bytes(arena_size);
  for (const HostTensor* input : inputs) {
    addresses.push_back(at);
    SINTER_TRY(stream_.copy_to_device(at, input->bytes));
    at += aligned_bytes(std::max<size_t>(input->bytes.size(), 1));
  }
  SINTER_LET(call, place(entry_name, symbol_values, addresses, arena_.address()));
  return CudaRun(*this, repeated_, std::move(call), options).run();
}

}  // namespace sinter
