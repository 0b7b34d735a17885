#include "driver/calls/bound_call.h"

#include <set>

#include "driver/calls/given_rows.h"
#include "ir/variants.h"
#include "runtime/input_ranges.h"

namespace sinter {
namespace {

/// The tensor of that name among a call's inputs or outputs.
template <typename Tensors>
Result<decltype(&std::declval<Tensors&>()[0])> find_tensor(Tensors& tensors, std::string_view name,
                                                           std::string_view kind,
                                                           const EntryPlan& entry) {
  for (auto& tensor : tensors)
    if (tensor.name == name) return &tensor;
  std::string names;
  for (const auto& tensor : tensors)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", printable(tensor.name));
  return fail(fmt::format("no {} is called \"{}\"", kind, printable(name)),
              "entry " + printable(entry.name),
              names.empty() ? fmt::format("it has no {}s", kind) : "it has " + names,
              ExitCode::usage);
}

}  // namespace

Result<std::unique_ptr<BoundCall>> BoundCall::create(std::shared_ptr<CallSession> session,
                                                     std::string_view name) {
  const Program& program = session->plan().program();
  const llvm::ArrayRef<EntryPlan> variants = variants_of(program.entries, name);
  if (variants.empty())
    return fail(fmt::format("the plan has no entry \"{}\"", printable(name)),
                printable(program.name), "check the name", ExitCode::usage);
  if (session->plan().device().on_gpu())
    for (const EntryPlan& entry : variants) SINTER_TRY(require_checked_inputs(program, entry));
  return std::unique_ptr<BoundCall>(new BoundCall(std::move(session), variants));
}

BoundCall::BoundCall(std::shared_ptr<CallSession> session, llvm::ArrayRef<EntryPlan> variants)
    : session_(std::move(session)), variants_(variants), entry_(variants[0]) {
  const EntryPlan& entry = entry_;
  const auto add = [&](std::vector<Tensor>& list, std::string_view kind, const std::string& name,
                       uint32_t buffer, size_t index) {
    for (const Tensor& other : list)
      if (other.name == name && other.buffer == buffer) return;
    std::string place =
        fmt::format("entry {}, {} {}", printable(entry.name), kind, printable(name));
    list.push_back({name, std::move(place), buffer, index, std::nullopt, 0});
  };
  for (size_t i = 0; i < entry.inputs.size(); ++i)
    add(inputs_, "input", entry.buffers[entry.inputs[i]].value, entry.inputs[i], i);
  for (size_t i = 0; i < entry.outputs.size(); ++i)
    add(outputs_, "output", entry.output_names[i], entry.outputs[i], i);
  std::set<size_t> used;  // a state has a buffer for each version
  for (uint32_t i = 0; i < entry.buffers.size(); ++i)
    if (const Buffer& buffer = entry.buffers[i];
        buffer.place == Buffer::Place::state && used.insert(buffer.index).second)
      add(states_, "state", program().states[buffer.index].name, i, buffer.index);
  if (!on_gpu()) return;
  const CudaWeights& weights = session_->cuda_->executable().weights();
  for (size_t i = 0; i < program().weights.size(); ++i) {
    const auto bytes = static_cast<size_t>(storage_bytes(program().weights[i].type).constant());
    weights_.push_back({weights.address(i), weights.address(i) + bytes});
  }
}

BoundCall::~BoundCall() {
  if (rows_.empty()) return;
  const CudaContextGuard guard(session_->plan().device().cuda_api());
  // An error has nobody to go to; the work that failed is over as well.
  (void)session_->cuda_->stream().synchronize("the end of a call");
  rows_.clear();
}

Status BoundCall::set_symbol(std::string_view name, int64_t value) {
  const int symbol = find_symbol(program().symbols, name);
  const std::string place = "entry " + printable(entry_.name);
  if (symbol < 0)
    return fail(fmt::format("no symbol is called \"{}\"", printable(name)), place, "check the name",
                ExitCode::usage);
  const auto index = static_cast<size_t>(symbol);
  SINTER_TRY(check_symbol_value(program().symbols[index], value));
  if (const auto state = session_->state_symbol(index); state && *state != value)
    return fail(fmt::format("symbol {} is set to {}, the session's states were made with {}",
                            printable(name), value, *state),
                place, "make another session", ExitCode::usage);
  const auto [at, is_new] = set_symbols_.try_emplace(index, value);
  if (!is_new && at->second == value) return {};
  at->second = value;
  is_prepared_ = false;
  is_rebound_ = true;
  return {};
}

Status BoundCall::bind_input(std::string_view name, const TensorView& tensor) {
  SINTER_LET(input, find_tensor(inputs_, name, "input", entry_));
  return bind(*input, tensor);
}

Status BoundCall::bind_output(std::string_view name, const TensorView& tensor) {
  SINTER_LET(output, find_tensor(outputs_, name, "output", entry_));
  SINTER_TRY(check_strides(*output, tensor));
  return bind(*output, tensor);
}

Status BoundCall::bind_state(std::string_view name, const TensorView& tensor) {
  SINTER_LET(state, find_tensor(states_, name, "state", entry_));
  SINTER_TRY(check_view(tensor, state->place));
  SINTER_TRY(check_strides(*state, tensor));
  return bind(*state, tensor);
}

Status BoundCall::bind(Tensor& tensor, const TensorView& view) {
  SINTER_TRY(has_groups_ ? check_extents(view, tensor.place) : check_view(view, tensor.place));
  SINTER_TRY(check_type(tensor, view));
  SINTER_TRY(check_place(tensor, view));
  if (tensor.view == view) return {};
  tensor.view = view;
  tensor.bytes = bytes_of(view);
  is_prepared_ = false;
  is_rebound_ = true;
  return {};
}

Status BoundCall::set_addresses(llvm::ArrayRef<const void*> inputs, llvm::ArrayRef<void*> outputs) {
  const std::string& entry = entry_.name;
  if (inputs.size() != entry_.inputs.size() || outputs.size() != entry_.outputs.size())
    return fail(fmt::format("{} inputs and {} outputs are given, it has {} and {}", inputs.size(),
                            outputs.size(), entry_.inputs.size(), entry_.outputs.size()),
                "entry " + printable(entry), "give an address for each", ExitCode::usage);
  Addresses to_inputs, to_outputs;
  bool moves = false;
  const auto add = [&](const Tensor& tensor, const void* address, Addresses& addresses) -> Status {
    SINTER_TRY(check_new_address(tensor, address));
    addresses.push_back(reinterpret_cast<CudaAddress>(address));
    moves |= tensor.view->data != address;
    return {};
  };
  for (const Tensor& input : inputs_) SINTER_TRY(add(input, inputs[input.index], to_inputs));
  for (const Tensor& output : outputs_) SINTER_TRY(add(output, outputs[output.index], to_outputs));
  if (!moves) return {};
  SINTER_LET(shared, check_overlaps(to_inputs, to_outputs));
  if (shared != shared_) is_prepared_ = false;  // other values lie in the memory of outputs
  // One without elements stays: its address may be any, and a product was prepared with an aligned.
  const auto move = [](Tensor& tensor, void* address) {
    if (tensor.bytes != 0) tensor.view->data = address;
  };
  for (Tensor& input : inputs_) move(input, const_cast<void*>(inputs[input.index]));
  for (Tensor& output : outputs_) move(output, outputs[output.index]);
  is_rebound_ = true;
  if (is_prepared_ && on_gpu()) move_to_tensors();
  return {};
}

Result<CallSymbols> BoundCall::known_symbols() const {
  CallSymbols symbols(program(), variants_);
  for (size_t i = 0; i < program().symbols.size(); ++i)
    if (const auto value = session_->state_symbol(i))
      SINTER_TRY(symbols.set(i, *value, "the session's states"));
  for (const auto& [symbol, value] : set_symbols_)
    SINTER_TRY(symbols.set(symbol, value, "set_symbol"));
  for (const Tensor& input : inputs_)
    if (input.view)
      SINTER_TRY(symbols.set(type_of(input), input.view->dims, "input " + printable(input.name)));
  return symbols;
}

Result<std::vector<int64_t>> BoundCall::output_dims(std::string_view name) const {
  SINTER_LET(output, find_tensor(outputs_, name, "output", entry_));
  SINTER_LET(symbols, known_symbols());
  return symbols.dims(type_of(*output));
}

Status BoundCall::prepare() {
  const CudaContextGuard guard(session_->plan().device().cuda_api());
  if (is_prepared_) return {};
  SINTER_LET(symbols, known_symbols());
  SINTER_TRY(check_shapes(symbols));
  SINTER_LET(values, symbols.all());
  symbol_values_ = std::move(values);
  prepared_ = variant_for(program().entries, entry_.name, symbol_values_);
  Addresses inputs;
  Addresses outputs;
  for (const Tensor& input : inputs_) inputs.push_back(address_of(*input.view));
  for (const Tensor& output : outputs_) outputs.push_back(address_of(*output.view));
  SINTER_LET(shared, check_overlaps(inputs, outputs));
  shared_ = std::move(shared);
  if (on_gpu()) SINTER_TRY(prepare_on_gpu());
  lifetimes_.reset();
  next_step_ = 0;
  is_prepared_ = true;
  return {};
}

Status BoundCall::prepare_on_gpu() {
  const CudaSession& session = *session_->cuda_;
  SINTER_LET(capturing, session.stream().is_capturing());
  if (capturing)
    return fail("the call is not prepared, and its stream is being captured",
                "entry " + printable(entry_.name), "prepare the call before the capture",
                ExitCode::usage);
  SINTER_TRY(place_on_gpu());
  return session.prepare(call_);
}

Status BoundCall::place_on_gpu() {
  const CudaSession& session = *session_->cuda_;
  const Addresses outputs = output_addresses();
  SINTER_LET(bytes, session.arena_bytes(entry_.name, symbol_values_, shared_));
  // Variants may read other states than the first, whose states have the names of a call.
  const auto is_the_callers = [&](const Buffer& buffer) {
    return llvm::any_of(states_, [&](const Tensor& state) {
      return state.index == buffer.index && state.view.has_value();
    });
  };
  if (llvm::any_of(prepared_->buffers, [&](const Buffer& buffer) {
        return buffer.place == Buffer::Place::state && !is_the_callers(buffer);
      }))
    SINTER_TRY(session_->cuda_->allocate_states());
  CallMemory& memory = *session_->memory_;
  SINTER_TRY(memory.grow_to(bytes, session_->plan().device().cuda(), session_->stream_.handle()));
  Addresses inputs(entry_.inputs.size(), 0);
  SINTER_LET(
      call, session.place(entry_.name, symbol_values_, inputs, memory.address(), outputs, shared_));
  SINTER_TRY(place_rows(call));
  call_ = std::move(call);
  memory_version_ = memory.version();
  move_to_tensors();
  return {};
}

Status BoundCall::follow_memory() {
  CallMemory& memory = *session_->memory_;
  SINTER_LET(capturing, session_->cuda_->stream().is_capturing());
  if (capturing) memory.keep();
  return memory.version() == memory_version_ ? Status() : place_on_gpu();
}

/// By the entry's outputs; 0 where the caller has bound none.
BoundCall::Addresses BoundCall::output_addresses() const {
  Addresses outputs(entry_.outputs.size(), 0);
  for (const Tensor& output : outputs_) outputs[output.index] = address_of(*output.view);
  return outputs;
}

void BoundCall::move_to_tensors() {
  Addresses inputs;
  const Addresses outputs = output_addresses();
  for (const Tensor& input : inputs_) inputs.push_back(address_of(*input.view));
  Addresses states(program().states.size(), 0);
  for (const Tensor& state : states_)
    if (state.view) states[state.index] = address_of(*state.view);
  call_.move_to(inputs, outputs, states);
  copies_.clear();
  for (const Tensor& output : outputs_) {
    const CudaAddress computed = call_.output(output.index), wanted = outputs[output.index];
    if (computed != wanted) copies_.push_back({wanted, computed, output.bytes});
  }
}

/// Like outputs, these buffers keep their places to the end of a call, so that any memory serves.
Status BoundCall::place_rows(CudaCall& call) {
  std::map<uint32_t, size_t> offsets;  // by buffer
  size_t bytes = 0;
  for (const RowCheck& check : prepared_->row_checks) {
    if (prepared_->buffers[check.buffer].place != Buffer::Place::arena ||
        llvm::is_contained(prepared_->outputs, check.buffer) || offsets.contains(check.buffer))
      continue;
    offsets[check.buffer] = bytes;
    bytes += aligned_bytes(call.bytes[check.buffer]);
  }
  if (bytes == 0) return {};
  if (rows_.empty() || rows_.back().bytes() < bytes) {
    SINTER_LET(memory, CudaMemory::allocate(session_->plan().device().cuda(), bytes, "row numbers",
                                            session_->stream_.handle()));
    rows_.push_back(std::move(memory));
  }
  for (const auto& [buffer, offset] : offsets)
    call.addresses[buffer] = rows_.back().address() + offset;
  return {};
}

Status BoundCall::run() {
  const CudaContextGuard guard(session_->plan().device().cuda_api());
  if (!is_prepared_) SINTER_TRY(prepare());
  if (has_groups_) {
    SINTER_LET(count, step_count());
    return run_steps(0, count);
  }
  if (!on_gpu()) return run_on_cpu();
  return enqueue_steps(0, prepared_->steps.size());
}

Status BoundCall::enqueue_steps(size_t first, size_t last) {
  if (first == 0) {
    SINTER_TRY(follow_memory());
    number_ = session_->memory_->begin_call();
    has_run_ = false;
  }
  const CudaSession& session = *session_->cuda_;
  SINTER_TRY(session.enqueue(call_, first, last, session.stream(), CallBegin::in_order));
  if (last < prepared_->steps.size()) return {};
  has_run_ = true;
  is_rebound_ = false;
  for (const OutputCopy& copy : copies_)
    SINTER_TRY(session.stream().copy_on_device(copy.to, copy.from, copy.bytes));
  return {};
}

Status BoundCall::run_on_cpu() {
  std::vector<HostTensor> inputs;
  for (const Tensor& input : inputs_) {
    SINTER_LET(tensor, make_tensor(input.view->dtype, input.view->dims));
    copy_from(*input.view, tensor.bytes);
    inputs.push_back(std::move(tensor));
  }
  std::vector<std::pair<const Tensor*, HostTensor>> states;  // the caller's
  for (const Tensor& state : states_) {
    if (!state.view) continue;
    SINTER_LET(tensor, make_tensor(state.view->dtype, state.view->dims));
    copy_from(*state.view, tensor.bytes);
    states.emplace_back(&state, std::move(tensor));
  }
  CallOptions options;
  for (auto& [state, tensor] : states) options.states.emplace_back(state->index, &tensor);
  SINTER_LET(result,
             session_->session_->run(entry_.name, symbol_values_, addresses_of(inputs), options));
  for (const auto& [state, tensor] : states) copy_to(*state->view, tensor.bytes);
  for (const Tensor& output : outputs_) copy_to(*output.view, result.outputs[output.index].bytes);
  return {};
}

Status BoundCall::check() {
  if (!on_gpu()) return {};
  const CudaContextGuard guard(session_->plan().device().cuda_api());
  const std::string place = "entry " + printable(entry_.name);
  const CudaStream& stream = session_->cuda_->stream();
  SINTER_TRY(stream.synchronize(place));
  const bool has_checks =
      llvm::any_of(variants_, [](const EntryPlan& entry) { return !entry.row_checks.empty(); });
  if (!has_checks) return {};
  if (!has_run_ || is_rebound_)
    return fail(has_run_ ? "the call was bound again since it ran" : "the call has not run", place,
                "check a call after its run", ExitCode::usage);
  std::vector<std::vector<int32_t>> numbers;
  for (const RowCheck& check : prepared_->row_checks) {
    const auto count = volume(prepared_->buffers[check.buffer].type.dims).evaluate(symbol_values_);
    if (!count) return fail("a number of rows exceeds 63 bits", place);
    numbers.emplace_back(static_cast<size_t>(*count));
    SINTER_TRY(stream.copy_to_host(std::as_writable_bytes(std::span(numbers.back())),
                                   call_.addresses[check.buffer]));
  }
  SINTER_TRY(stream.synchronize(place));
  for (size_t check = 0; check < numbers.size(); ++check)
    SINTER_TRY(check_computed_rows(
        *prepared_, check, symbol_values_, numbers[check],
        [&](size_t i) { return session_->cuda_->wide_number(call_, check, i); }));
  return {};
}

}  // namespace sinter
