#include "runtime/cuda/executable.h"

#include "plan/shared_outputs.h"
#include "runtime/clock.h"
#include "runtime/cuda/launch.h"
#include "runtime/cuda/nvtx.h"
#include "runtime/cuda/tensor_map.h"

namespace sinter {
namespace {

// All that a prepared product knows of its operands' addresses, so that a call may move.
static_assert(kMaxAlignment <= kPointerAlignment);

std::string version_of(int64_t capability) {
  return fmt::format("{}.{}", capability / 10, capability % 10);
}

/// Whether the device is new enough for every kernel.
Status check_device(const Program& program, const CudaDevice& device) {
  for (const Kernel& kernel : program.kernels)
    if (device.compute_capability() < static_cast<int64_t>(kernel.minimum_arch))
      return fail(
          fmt::format("kernel {} needs compute capability {}, the device has {}", kernel.name,
                      version_of(kernel.minimum_arch), version_of(device.compute_capability())),
          fmt::format("device {} ({})", device.ordinal(), device.name()),
          "compile the plan for this device", ExitCode::device);
  return {};
}

}  // namespace

Result<std::shared_ptr<const CudaExecutable>> CudaExecutable::load(
    std::shared_ptr<const Program> program, CudaDevicePtr device, std::shared_ptr<CudaGemm> gemm,
    std::shared_ptr<const CudaWeights> weights, llvm::ArrayRef<EmbeddedHeader> headers,
    const KernelCache& cache, const MachineCodeByText& ready) {
  CudaKernels own(device, headers, cache);
  return load(std::move(program), std::move(device), std::move(gemm), std::move(weights), own,
              ready);
}

Result<std::shared_ptr<const CudaExecutable>> CudaExecutable::with_program(
    std::shared_ptr<const Program> program, CudaKernels& kernels) const {
  return load(std::move(program), device_, gemm_, weights_, kernels);
}

Result<std::shared_ptr<const CudaExecutable>> CudaExecutable::load(
    std::shared_ptr<const Program> program, CudaDevicePtr device, std::shared_ptr<CudaGemm> gemm,
    std::shared_ptr<const CudaWeights> weights, CudaKernels& known,
    const MachineCodeByText& ready) {
  const auto begin = Clock::now();
  SINTER_TRY(check_device(*program, *device));
  if (program->invariant) SINTER_TRY(known.check_orders());
  std::vector<const Kernel*> wanted;
  for (const Kernel& kernel : program->kernels) wanted.push_back(&kernel);
  SINTER_TRY(known.add(wanted, ready));
  std::vector<std::shared_ptr<const CudaLibrary>> libraries;
  std::vector<CudaApi::Kernel> kernels;
  for (const Kernel* kernel : wanted) {
    libraries.push_back(known[*kernel].library);
    kernels.push_back(known[*kernel].kernel);
  }
  SINTER_LET(executable, make(std::move(program), std::move(device), std::move(gemm),
                              std::move(weights), std::move(libraries), std::move(kernels)));
  executable->compile_seconds_ = seconds_since(begin);
  return std::move(executable);
}

Result<std::shared_ptr<const CudaExecutable>> CudaExecutable::assemble(
    std::shared_ptr<const Program> program, CudaDevicePtr device, std::shared_ptr<CudaGemm> gemm,
    std::shared_ptr<const CudaWeights> weights,
    std::vector<std::shared_ptr<const CudaLibrary>> libraries,
    std::vector<CudaApi::Kernel> kernels) {
  SINTER_TRY(check_device(*program, *device));
  SINTER_LET(executable, make(std::move(program), std::move(device), std::move(gemm),
                              std::move(weights), std::move(libraries), std::move(kernels)));
  return std::move(executable);
}

Result<std::shared_ptr<CudaExecutable>> CudaExecutable::make(
    std::shared_ptr<const Program> program, CudaDevicePtr device, std::shared_ptr<CudaGemm> gemm,
    std::shared_ptr<const CudaWeights> weights,
    std::vector<std::shared_ptr<const CudaLibrary>> libraries,
    std::vector<CudaApi::Kernel> kernels) {
  SINTER_CHECK(weights->serves(*program), "the weights are another program's");
  SINTER_CHECK(kernels.size() == program->kernels.size(), "{} kernels", kernels.size());
  for (size_t i = 0; i < kernels.size(); ++i)
    SINTER_TRY(allow_shared_bytes(kernels[i], program->kernels[i].name,
                                  program->kernels[i].launch.shared_bytes, *device));
  auto executable = std::make_shared<CudaExecutable>();
  executable->program_ = std::move(program);
  executable->device_ = std::move(device);
  executable->gemm_ = std::move(gemm);
  executable->weights_ = std::move(weights);
  executable->libraries_ = std::move(libraries);
  executable->kernels_ = std::move(kernels);
  return executable;
}

std::string CudaExecutable::device() const {
  return fmt::format("cuda:{} ({})", device_->ordinal(), device_->name());
}

Result<std::unique_ptr<Session>> CudaExecutable::new_session(
    llvm::ArrayRef<int64_t> symbol_values) const {
  return CudaSession::create(shared_from_this(), symbol_values);
}

Result<HostTensor> CudaExecutable::read_weight(size_t index) const {
  SINTER_LET(tensor, make_tensor(program_->weights[index].type.dtype,
                                 concrete_dims(program_->weights[index].type, {})));
  SINTER_LET(stream, CudaStream::create(device_));
  SINTER_TRY(stream.copy_to_host(tensor.bytes, weights_->address(index)));
  SINTER_TRY(stream.synchronize("reading a weight"));
  return std::move(tensor);
}

Result<std::unique_ptr<CudaSession>> CudaSession::create(
    std::shared_ptr<const CudaExecutable> executable, llvm::ArrayRef<int64_t> symbol_values,
    CudaSessionOptions options) {
  const Program& program = executable->program();
  if (symbol_values.size() != program.symbols.size())
    return fail(fmt::format("{} symbol values for a plan with {} symbols", symbol_values.size(),
                            program.symbols.size()));
  auto session = std::make_unique<CudaSession>();
  if (options.stream) {
    session->stream_ = CudaStream::borrow(executable->cuda_device(), *options.stream);
  } else {
    SINTER_LET(stream, CudaStream::create(executable->cuda_device()));
    session->stream_ = std::move(stream);
  }
  session->gemm_ = std::move(options.gemm);
  session->symbol_values_.assign(symbol_values.begin(), symbol_values.end());
  session->executable_ = std::move(executable);
  if (!options.states_later) SINTER_TRY(session->allocate_states());
  return session;
}

Status CudaSession::allocate_states() {
  const Program& program = executable_->program();
  if (states_.size() == program.states.size()) return {};
  std::vector<CudaMemory> states;
  for (const State& state : program.states) {
    for (Dim dim : state.type.dims)
      if (!dim.is_constant())
        SINTER_TRY(check_symbol_value(program.symbols[dim.symbol().index],
                                      symbol_values_[dim.symbol().index]));
    const auto bytes = storage_bytes(state.type).evaluate(symbol_values_);
    if (!bytes) return fail("a state's size exceeds 63 bits", "state " + printable(state.name));
    SINTER_LET(memory, CudaMemory::allocate(executable_->cuda_device(), static_cast<size_t>(*bytes),
                                            "state " + printable(state.name), stream_.handle()));
    states.push_back(std::move(memory));
  }
  states_ = std::move(states);
  SINTER_TRY(clear_states());
  return stream_.synchronize("clearing the states");
}

Status CudaSession::clear_states() {
  for (const CudaMemory& state : states_)
    SINTER_TRY(stream_.fill(state.address(), 0, state.bytes()));
  return {};
}

Result<HostTensor> CudaSession::state(size_t index) const {
  const TensorType& type = executable_->program().states[index].type;
  SINTER_LET(tensor, make_tensor(type.dtype, concrete_dims(type, symbol_values_)));
  SINTER_TRY(stream_.copy_to_host(tensor.bytes, states_[index].address()));
  SINTER_TRY(stream_.synchronize("reading a state"));
  return std::move(tensor);
}

namespace {

Result<ArenaLayout> layout_of(const EntryPlan& entry, llvm::ArrayRef<int64_t> symbol_values,
                              bool outputs_apart, const std::vector<bool>& shared) {
  auto layout = shared.empty() ? arena_layout(entry, symbol_values, outputs_apart)
                               : arena_layout(entry, symbol_values, shared);
  if (layout) return std::move(*layout);
  return fail("the arena's size exceeds 63 bits", "entry " + printable(entry.name));
}

}  // namespace

Result<size_t> CudaSession::arena_bytes(std::string_view entry,
                                        llvm::ArrayRef<int64_t> symbol_values,
                                        const std::vector<bool>& shared) const {
  SINTER_LET(plan, find_call(executable_->program(), entry, symbol_values, symbol_values_));
  SINTER_LET(layout, layout_of(*plan, symbol_values, false, shared));
  return static_cast<size_t>(layout.bytes);
}

Result<CudaCall> CudaSession::place(std::string_view entry_name,
                                    llvm::ArrayRef<int64_t> symbol_values,
                                    llvm::ArrayRef<CudaAddress> inputs, CudaAddress arena,
                                    llvm::ArrayRef<CudaAddress> outputs,
                                    const std::vector<bool>& shared) const {
  CudaCall call;
  SINTER_LET(entry, find_call(executable_->program(), entry_name, symbol_values, symbol_values_));
  const bool outputs_apart =
      outputs.size() == entry->outputs.size() && !llvm::is_contained(outputs, CudaAddress{0});
  SINTER_LET(layout, layout_of(*entry, symbol_values, outputs_apart, shared));
  SINTER_CHECK(inputs.size() == entry->inputs.size(), "{} inputs for entry {}", inputs.size(),
               entry_name);
  call.entry = entry;
  call.symbol_values.assign(symbol_values.begin(), symbol_values.end());
  call.arena_bytes = static_cast<size_t>(layout.bytes);
  for (int64_t used : layout.used)
    call.free.push_back(
        {arena + static_cast<CudaAddress>(used), static_cast<size_t>(layout.bytes - used)});
  for (size_t i = 0; i < entry->buffers.size(); ++i) {
    const Buffer& buffer = entry->buffers[i];
    const auto bytes = buffer.size_bytes.evaluate(symbol_values);
    if (!bytes) return fail("a buffer's size exceeds 63 bits", "%" + printable(buffer.value));
    call.bytes.push_back(static_cast<size_t>(*bytes));
    CudaAddress address = 0;
    switch (buffer.place) {
      case Buffer::Place::arena:
        if (layout.outputs[i] == ArenaLayout::kInArena)
          address = arena + static_cast<CudaAddress>(layout.offsets[i]);
        else
          call.in_outputs.push_back(
              {i, static_cast<size_t>(layout.outputs[i]), static_cast<size_t>(layout.offsets[i])});
        break;
      case Buffer::Place::input:
        break;
      case Buffer::Place::weight:
        address = executable_->weights().address(buffer.index);
        break;
      case Buffer::Place::state:
        if (!states_.empty()) address = states_[buffer.index].address();
        break;
      case Buffer::Place::exchange:  // one rank exchanges nothing
        break;
    }
    call.addresses.push_back(address);
  }
  call.move_to(inputs, outputs);
  return call;
}

void CudaCall::move_to(llvm::ArrayRef<CudaAddress> inputs, llvm::ArrayRef<CudaAddress> outputs,
                       llvm::ArrayRef<CudaAddress> states) {
  for (size_t i = 0; i < addresses.size(); ++i) {
    const Buffer& buffer = entry->buffers[i];
    if (buffer.place == Buffer::Place::input) addresses[i] = inputs[buffer.index];
    if (buffer.place == Buffer::Place::state && buffer.index < states.size() &&
        states[buffer.index] != 0)
      addresses[i] = states[buffer.index];
  }
  // An output keeps its place to the end, so that any other memory serves as well.
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i] != 0 && entry->buffers[entry->outputs[i]].place == Buffer::Place::arena)
      addresses[entry->outputs[i]] = outputs[i];
  for (const InOutput& inside : in_outputs)
    addresses[inside.buffer] = output(inside.output) + inside.offset;
}

namespace {

/// A GEMM step's operands as CudaGemm takes them.
GemmOperands gemm_operands(const CudaCall& call, size_t index, const GemmStep& step) {
  const auto operand = [&](uint32_t id) {
    return GemmOperands::Operand{call.addresses[id], call.entry->buffers[id].type.dtype};
  };
  GemmOperands operands{
      operand(step.a.buffer), operand(step.b.buffer), operand(step.c.buffer), {}, 0,
      call.free[index]};
  if (step.bias >= 0) operands.bias = operand(static_cast<uint32_t>(step.bias));
  if (step.residual >= 0) operands.residual = call.addresses[static_cast<size_t>(step.residual)];
  return operands;
}

}  // namespace

Status CudaSession::prepare(const CudaCall& call) const {
  for (size_t i = 0; i < call.entry->steps.size(); ++i) {
    Status prepared = visit(
        call.entry->steps[i], [](const KernelStep&) { return Status(); },
        [&](const GemmStep& gemm) {
          return this->gemm().prepare(gemm, gemm_operands(call, i, gemm),
                                      executable_->program().symbols, call.symbol_values);
        },
        [](const CopyStep&) { return Status(); }, [](const CollectiveStep&) { return Status(); });
    SINTER_TRY(in_step(std::move(prepared), *call.entry, i));
  }
  return {};
}

Status CudaSession::enqueue_step(const CudaCall& call, size_t index,
                                 const CudaStream& stream) const {
  CallBegin begin = CallBegin::overlapped;
  return enqueue_step(call, index, stream, begin);
}

Status CudaSession::enqueue_step(const CudaCall& call, size_t index, const CudaStream& stream,
                                 CallBegin& begin) const {
  const Step& step = call.entry->steps[index];
  const NvtxRange range(step.values);
  return visit(
      step, [&](const KernelStep& run) { return enqueue(call, run, stream, begin); },
      [&](const GemmStep& gemm) {
        return this->gemm().run(gemm, gemm_operands(call, index, gemm),
                                executable_->program().symbols, call.symbol_values, stream,
                                begin == CallBegin::overlapped);
      },
      [&](const CopyStep& copy) { return enqueue(call, copy, stream); },
      [&](const CollectiveStep& run) {  // of one rank
        return enqueue(call, CopyStep{run.from, run.to}, stream);
      });
}

Status CudaSession::enqueue(const CudaCall& call, const CopyStep& copy,
                            const CudaStream& stream) const {
  // An output may lie outside the arena, in as many bytes as its value has.
  const TensorType& type = call.entry->buffers[copy.from].type;
  const auto bytes = storage_bytes(type).evaluate(call.symbol_values);
  if (!bytes) return fail("the size of a copy exceeds 63 bits");
  return stream.copy_on_device(call.addresses[copy.to], call.addresses[copy.from],
                               static_cast<size_t>(*bytes));
}

Status CudaSession::enqueue(const CudaCall& call, const KernelStep& run, const CudaStream& stream,
                            CallBegin& begin) const {
  const Kernel& kernel = executable_->program().kernels[run.kernel];
  const auto grid = grid_of(kernel.launch, call.symbol_values);
  const auto shared = shared_bytes(kernel.launch, call.symbol_values);
  if (!grid || !shared) return fail("the size of a launch exceeds 63 bits");
  if (grid->blocks == 0) return {};
  if (grid->blocks > kMaxBlocks)
    return fail(fmt::format("{} blocks, a launch has at most {}", grid->blocks, kMaxBlocks), {},
                "run fewer tokens at a time", ExitCode::device);

  llvm::SmallVector<CudaAddress, 16> pointers;
  for (uint32_t id : run.inputs) pointers.push_back(call.addresses[id]);
  for (uint32_t id : run.outputs) pointers.push_back(call.addresses[id]);
  llvm::SmallVector<long long, 4> sizes;
  for (SymbolId symbol : kernel.symbols) sizes.push_back(call.symbol_values[symbol.index]);
  llvm::SmallVector<void*, 20> parameters;
  for (CudaAddress& pointer : pointers) parameters.push_back(&pointer);
  for (long long& size : sizes) parameters.push_back(&size);
  llvm::SmallVector<EncodedTensorMap, 2> maps;
  for (const TensorMap& map : kernel.tensor_maps) {
    const DType dtype = kernel.group[kernel.group.inputs[map.input]].type.dtype;
    SINTER_LET(encoded, encode(map, dtype, pointers[map.input], call.symbol_values,
                               *executable_->cuda_device()));
    maps.push_back(encoded);
  }
  for (EncodedTensorMap& map : maps) parameters.push_back(&map);
  const bool overlaps = kernel.overlap.waits && begin == CallBegin::overlapped;
  begin = CallBegin::overlapped;
  return launch({.kernel = executable_->kernels_[run.kernel],
                 .name = kernel.name,
                 .blocks = static_cast<unsigned>(grid->blocks),
                 .threads = static_cast<unsigned>(kernel.launch.threads),
                 .shared_bytes = static_cast<unsigned>(*shared),
                 .cluster = static_cast<unsigned>(grid->cluster),
                 .waits = overlaps},
                parameters.data(), stream);
}

Status CudaSession::enqueue(const CudaCall& call, const CudaStream& stream, CallBegin begin) const {
  return enqueue(call, 0, call.entry->steps.size(), stream, begin);
}

Status CudaSession::enqueue(const CudaCall& call, size_t first, size_t last,
                            const CudaStream& stream, CallBegin begin) const {
  SINTER_TRY(executable_->cuda_device()->make_current());
  for (size_t i = first; i < last; ++i)
    SINTER_TRY(in_step(enqueue_step(call, i, stream, begin), *call.entry, i));
  return {};
}

}  // namespace sinter
