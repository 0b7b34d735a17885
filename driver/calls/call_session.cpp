#include "driver/calls/call_session.h"

#include <algorithm>

namespace sinter {

Status CallMemory::grow_to(size_t bytes, const CudaDevicePtr& device, CudaApi::Stream stream) {
  if (bytes <= current_.bytes()) return {};
  if (is_recorded_) {
    // Growing by half bounds what graphs have recorded by three times the last one's memory.
    bytes = std::max(bytes, current_.bytes() + current_.bytes() / 2);
    recorded_.push_back(std::move(current_));
  }
  current_ = CudaMemory();
  is_recorded_ = false;
  ++version_;
  SINTER_LET(memory, CudaMemory::allocate(device, bytes, "the arena", stream));
  current_ = std::move(memory);
  return {};
}

Result<std::shared_ptr<CallSession>> CallSession::create(
    std::shared_ptr<const LoadedPlan> plan, const std::map<std::string, int64_t>& state_symbols,
    std::optional<void*> stream) {
  const CudaContextGuard guard(plan->device().cuda_api());
  std::shared_ptr<CallSession> session(new CallSession);
  session->plan_ = std::move(plan);
  SINTER_TRY(session->bind_symbols(state_symbols));
  if (session->plan_->device().on_gpu()) {
    SINTER_TRY(session->start_on_gpu(stream));
    return session;
  }
  if (stream.value_or(nullptr) != nullptr)
    return fail("a stream is given, the CPU has none", "the session", "give no stream",
                ExitCode::usage);
  std::vector<int64_t> values;
  for (const auto& value : session->symbols_) values.push_back(value.value_or(0));
  SINTER_LET(made, session->plan_->executable().new_session(values));
  session->session_ = std::move(made);
  return session;
}

Status CallSession::bind_symbols(const std::map<std::string, int64_t>& values) {
  const Program& program = plan_->program();
  symbols_.resize(program.symbols.size());
  size_t used = 0;
  for (const State& state : program.states)
    for (const Dim dim : state.type.dims) {
      if (dim.is_constant() || symbols_[dim.symbol().index]) continue;
      const Symbol& symbol = program.symbols[dim.symbol().index];
      const auto value = values.find(symbol.name);
      if (value == values.end())
        return fail(fmt::format("symbol {} has no value, a size of state {}",
                                printable(symbol.name), printable(state.name)),
                    "the session", "give a value for each symbol of the states", ExitCode::usage);
      SINTER_TRY(check_symbol_value(symbol, value->second));
      symbols_[dim.symbol().index] = value->second;
      ++used;
    }
  if (used == values.size()) return {};
  for (const auto& [name, value] : values) {
    const int symbol = find_symbol(program.symbols, name);
    if (symbol >= 0 && symbols_[static_cast<size_t>(symbol)]) continue;
    return fail(fmt::format("symbol {} is given as {}, {}", printable(name), value,
                            symbol < 0 ? "the plan has none of that name" : "no state has it"),
                "the session", "give the symbols of states alone; calls set the others",
                ExitCode::usage);
  }
  return {};
}

Status CallSession::start_on_gpu(std::optional<void*> stream) {
  const CudaDevicePtr& cuda = plan_->device().cuda();
  if (stream) {
    stream_ = CudaStream::borrow(cuda, static_cast<CudaApi::Stream>(*stream));
    SINTER_TRY(stream_.check_context());
    SINTER_LET(capturing, stream_.is_capturing());
    if (capturing)
      return fail("the stream is being captured", "the session",
                  "create the session before the capture", ExitCode::usage);
  } else {
    SINTER_LET(own, CudaStream::create(cuda));
    stream_ = std::move(own);
  }
  std::vector<int64_t> values;
  for (const auto& value : symbols_) values.push_back(value.value_or(0));
  SINTER_LET(products, plan_->products_in(stream_.handle()));
  SINTER_LET(session, CudaSession::create(plan_->executable().on_cuda(), values,
                                          {stream_.handle(), products, true}));
  cuda_ = session.get();
  session_ = std::move(session);
  memory_ = std::make_shared<CallMemory>();
  return {};
}

Result<std::shared_ptr<CallSession>> CallSession::create_beside(
    const CallSession& other, std::shared_ptr<const LoadedPlan> plan,
    const std::map<std::string, int64_t>& state_symbols) {
  if (&other.plan_->device() != &plan->device())
    return fail("the other session's plan is on another device", "the session",
                "load both plans on one device", ExitCode::usage);
  if (!other.cuda_) return create(std::move(plan), state_symbols, std::nullopt);
  SINTER_LET(session, create(std::move(plan), state_symbols, other.stream()));
  session->memory_ = other.memory_;
  return session;
}

CallSession::~CallSession() {
  const CudaContextGuard guard(plan_->device().cuda_api());
  // Errors have nobody to go to; the work that failed is over as well.
  if (cuda_) (void)stream_.synchronize("the end of a session");
  memory_.reset();
  session_.reset();
  stream_ = CudaStream();
  plan_.reset();
}

Status CallSession::synchronize() {
  if (!cuda_) return {};
  const CudaContextGuard guard(plan_->device().cuda_api());
  return stream_.synchronize("the session");
}

Status CallSession::clear_states() {
  const CudaContextGuard guard(plan_->device().cuda_api());
  return session_->clear_states();
}

Status CallSession::read_state(std::string_view name, const TensorView& to) {
  const CudaContextGuard guard(plan_->device().cuda_api());
  const std::string place = "state " + printable(name);
  const std::vector<State>& states = plan_->program().states;
  const auto state = llvm::find_if(states, [&](const State& s) { return s.name == name; });
  if (state == states.end())
    return fail("the plan has no such state", place, "check the name", ExitCode::usage);
  SINTER_TRY(check_view(to, place));
  std::vector<int64_t> values;
  for (const auto& value : symbols_) values.push_back(value.value_or(0));
  const std::vector<int64_t> dims = concrete_dims(state->type, values);
  if (to.dtype != state->type.dtype || to.dims != dims)
    return fail(fmt::format("{} is given, the state is {}", to_string(to),
                            to_string(TensorView{nullptr, state->type.dtype, dims, {}})),
                place, "give memory of the state's type", ExitCode::usage);
  if (may_overlap_itself(to))
    return fail(fmt::format("strides [{}] put several elements of {} at one address",
                            fmt::join(to.strides, ", "), to_string(to)),
                place, "check the strides", ExitCode::usage);
  const auto index = static_cast<size_t>(state - states.begin());
  if (cuda_) SINTER_TRY(cuda_->allocate_states());
  SINTER_LET(tensor, session_->state(index));
  copy_to(to, tensor.bytes);
  return {};
}

void* CallSession::stream() const { return cuda_ ? stream_.handle() : nullptr; }

}  // namespace sinter
