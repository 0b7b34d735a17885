#include "runtime/host/executable.h"

#include <algorithm>

#include "runtime/host/run.h"

namespace sinter {

struct HostExecutable::Data {
  std::shared_ptr<const Program> program;
  std::vector<HostTensor> weights;
  std::vector<HostKernel> kernels;
};

Result<HostExecutable> HostExecutable::load(std::shared_ptr<const Program> program,
                                            const TensorSource* source,
                                            const WeightProgress& progress) {
  auto data = std::make_shared<Data>();
  size_t done = 0, total = 0;
  for (const Weight& weight : program->weights)
    total += static_cast<size_t>(storage_bytes(weight.type).constant());
  for (size_t i = 0; i < program->weights.size(); ++i) {
    SINTER_LET(weight, evaluate_weight(*program, i, source));
    done += weight.bytes.size();
    data->weights.push_back(std::move(weight));
    SINTER_TRY(report_progress(progress, done, total));
  }
  for (const Kernel& kernel : program->kernels)
    data->kernels.push_back(make_host_kernel(kernel, program->symbols));
  data->program = std::move(program);
  HostExecutable executable;
  executable.data_ = std::move(data);
  return executable;
}

const Program& HostExecutable::program() const { return *data_->program; }
const HostTensor& HostExecutable::weight(size_t index) const { return data_->weights[index]; }

Result<std::unique_ptr<Session>> HostExecutable::new_session(
    llvm::ArrayRef<int64_t> symbol_values) const {
  SINTER_LET(session, HostSession::create(*this, symbol_values));
  return std::make_unique<HostSession>(std::move(session));
}

Result<HostSession> HostSession::create(HostExecutable executable,
                                        llvm::ArrayRef<int64_t> symbol_values) {
  const Program& program = executable.program();
  HostSession session;
  if (symbol_values.size() != program.symbols.size())
    return fail(fmt::format("{} symbol values for a plan with {} symbols", symbol_values.size(),
                            program.symbols.size()));
  for (const State& state : program.states) {
    for (Dim dim : state.type.dims)
      if (!dim.is_constant())
        SINTER_TRY(check_symbol_value(program.symbols[dim.symbol().index],
                                      symbol_values[dim.symbol().index]));
    SINTER_LET(tensor, make_tensor(state.type.dtype, concrete_dims(state.type, symbol_values)));
    session.states_.push_back(std::move(tensor));
  }
  SINTER_TRY(session.clear_states());
  session.symbol_values_.assign(symbol_values.begin(), symbol_values.end());
  session.executable_ = std::move(executable);
  return session;
}

Status HostSession::clear_states() {
  for (HostTensor& state : states_) std::fill(state.bytes.begin(), state.bytes.end(), std::byte{0});
  return {};
}

Result<RunResult> HostSession::run(std::string_view entry_name,
                                   llvm::ArrayRef<int64_t> symbol_values,
                                   llvm::ArrayRef<const HostTensor*> inputs,
                                   const CallOptions& options) {
  const Program& program = executable_.program();
  SINTER_LET(entry, find_call(program, entry_name, symbol_values, symbol_values_));
  const auto exchange_states = [&] {
    for (const auto& [index, tensor] : options.states) std::swap(states_[index], *tensor);
  };
  exchange_states();
  auto result = run_entry({program, *entry, executable_.data_->kernels, executable_.data_->weights,
                           states_, symbol_values, inputs, options});
  exchange_states();
  return result;
}

}  // namespace sinter
