#include "driver/calls/bound_call.h"

#include <set>

#include "ir/variants.h"

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
  std::unique_ptr<BoundCall> call(new BoundCall(std::move(session), variants));
  SINTER_TRY(call->on_device_->check_entry());
  return call;
}

BoundCall::BoundCall(std::shared_ptr<CallSession> session, llvm::ArrayRef<EntryPlan> variants)
    : session_(std::move(session)), entry_{session_->plan().program(), variants} {
  add_tensors();
  on_device_ = session_->cuda() ? call_on_cuda(entry_, *session_) : call_on_host(entry_, *session_);
}

void BoundCall::add_tensors() {
  const EntryPlan& entry = entry_.first();
  const auto add = [&](std::vector<BoundTensor>& list, std::string_view kind,
                       const std::string& name, uint32_t buffer, size_t index) {
    for (const BoundTensor& other : list)
      if (other.name == name && other.buffer == buffer) return;
    std::string place = fmt::format("{}, {} {}", entry_.place(), kind, printable(name));
    list.push_back({name, std::move(place), buffer, index, std::nullopt, 0});
  };
  for (size_t i = 0; i < entry.inputs.size(); ++i)
    add(entry_.inputs, "input", entry.buffers[entry.inputs[i]].value, entry.inputs[i], i);
  for (size_t i = 0; i < entry.outputs.size(); ++i)
    add(entry_.outputs, "output", entry.output_names[i], entry.outputs[i], i);
  std::set<size_t> used;  // a state has a buffer for each version
  for (uint32_t i = 0; i < entry.buffers.size(); ++i)
    if (const Buffer& buffer = entry.buffers[i];
        buffer.place == Buffer::Place::state && used.insert(buffer.index).second)
      add(entry_.states, "state", program().states[buffer.index].name, i, buffer.index);
}

Status BoundCall::set_symbol(std::string_view name, int64_t value) {
  const int symbol = find_symbol(program().symbols, name);
  const std::string place = entry_.place();
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
  entry_.is_rebound = true;
  return {};
}

Status BoundCall::bind_input(std::string_view name, const TensorView& tensor) {
  SINTER_LET(input, find_tensor(entry_.inputs, name, "input", entry_.first()));
  return bind(*input, tensor);
}

Status BoundCall::bind_output(std::string_view name, const TensorView& tensor) {
  SINTER_LET(output, find_tensor(entry_.outputs, name, "output", entry_.first()));
  SINTER_TRY(check_strides(*output, tensor));
  return bind(*output, tensor);
}

Status BoundCall::bind_state(std::string_view name, const TensorView& tensor) {
  SINTER_LET(state, find_tensor(entry_.states, name, "state", entry_.first()));
  SINTER_TRY(check_view(tensor, state->place));
  SINTER_TRY(check_strides(*state, tensor));
  return bind(*state, tensor);
}

Status BoundCall::bind(BoundTensor& tensor, const TensorView& view) {
  SINTER_TRY(has_groups_ ? check_extents(view, tensor.place) : check_view(view, tensor.place));
  SINTER_TRY(check_type(tensor, view));
  SINTER_TRY(on_device_->check_memory(tensor, view, reinterpret_cast<TensorAddress>(view.data)));
  if (tensor.view == view) return {};
  tensor.view = view;
  tensor.bytes = bytes_of(view);
  is_prepared_ = false;
  entry_.is_rebound = true;
  return {};
}

Status BoundCall::set_addresses(llvm::ArrayRef<const void*> inputs, llvm::ArrayRef<void*> outputs) {
  const EntryPlan& entry = entry_.first();
  if (inputs.size() != entry.inputs.size() || outputs.size() != entry.outputs.size())
    return fail(fmt::format("{} inputs and {} outputs are given, it has {} and {}", inputs.size(),
                            outputs.size(), entry.inputs.size(), entry.outputs.size()),
                entry_.place(), "give an address for each", ExitCode::usage);
  llvm::SmallVector<TensorAddress, 16> to_inputs, to_outputs;
  bool moves = false;
  const auto add = [&](const BoundTensor& tensor, const void* address, auto& addresses) -> Status {
    SINTER_TRY(check_new_address(tensor, address));
    addresses.push_back(reinterpret_cast<TensorAddress>(address));
    moves |= tensor.view->data != address;
    return {};
  };
  for (const BoundTensor& input : entry_.inputs)
    SINTER_TRY(add(input, inputs[input.index], to_inputs));
  for (const BoundTensor& output : entry_.outputs)
    SINTER_TRY(add(output, outputs[output.index], to_outputs));
  if (!moves) return {};
  SINTER_LET(shared, check_overlaps(to_inputs, to_outputs));
  if (shared != entry_.shared) is_prepared_ = false;  // other values lie in the memory of outputs
  // One without elements stays: its address may be any, and a product was prepared with an aligned.
  const auto move = [](BoundTensor& tensor, void* address) {
    if (tensor.bytes != 0) tensor.view->data = address;
  };
  for (BoundTensor& input : entry_.inputs) move(input, const_cast<void*>(inputs[input.index]));
  for (BoundTensor& output : entry_.outputs) move(output, outputs[output.index]);
  entry_.is_rebound = true;
  if (is_prepared_) on_device_->move();
  return {};
}

Result<CallSymbols> BoundCall::known_symbols() const {
  CallSymbols symbols(program(), entry_.variants);
  for (size_t i = 0; i < program().symbols.size(); ++i)
    if (const auto value = session_->state_symbol(i))
      SINTER_TRY(symbols.set(i, *value, "the session's states"));
  for (const auto& [symbol, value] : set_symbols_)
    SINTER_TRY(symbols.set(symbol, value, "set_symbol"));
  for (const BoundTensor& input : entry_.inputs)
    if (input.view)
      SINTER_TRY(
          symbols.set(entry_.type_of(input), input.view->dims, "input " + printable(input.name)));
  return symbols;
}

Result<std::vector<int64_t>> BoundCall::output_dims(std::string_view name) const {
  SINTER_LET(output, find_tensor(entry_.outputs, name, "output", entry_.first()));
  SINTER_LET(symbols, known_symbols());
  return symbols.dims(entry_.type_of(*output));
}

Status BoundCall::prepare() {
  const CudaContextGuard guard(session_->plan().device().cuda_api());
  if (is_prepared_) return {};
  SINTER_LET(symbols, known_symbols());
  SINTER_TRY(check_shapes(symbols));
  SINTER_LET(values, symbols.all());
  entry_.symbol_values = std::move(values);
  entry_.prepared = variant_for(program().entries, entry_.first().name, entry_.symbol_values);
  llvm::SmallVector<TensorAddress, 16> inputs, outputs;
  for (const BoundTensor& input : entry_.inputs) inputs.push_back(input.address());
  for (const BoundTensor& output : entry_.outputs) outputs.push_back(output.address());
  SINTER_LET(shared, check_overlaps(inputs, outputs));
  entry_.shared = std::move(shared);
  SINTER_TRY(on_device_->prepare());
  lifetimes_.reset();
  next_step_ = 0;
  is_prepared_ = true;
  return {};
}

Status BoundCall::run() {
  const CudaContextGuard guard(session_->plan().device().cuda_api());
  SINTER_TRY(prepare());
  const size_t count = on_device_->step_count();
  return has_groups_ ? run_steps(0, count) : run_prepared(0, count);
}

Status BoundCall::run_prepared(size_t first, size_t last) {
  if (first == 0) entry_.has_run = false;
  SINTER_TRY(on_device_->run(first, last));
  if (last < on_device_->step_count()) return {};
  entry_.has_run = true;
  entry_.is_rebound = false;
  return {};
}

Status BoundCall::check() {
  const CudaContextGuard guard(session_->plan().device().cuda_api());
  return on_device_->check();
}

}  // namespace sinter
