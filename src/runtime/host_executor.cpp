#include "runtime/host_executor.h"

#include <algorithm>

#include "runtime/host_eval.h"
#include "runtime/host_run.h"

namespace sinter {

struct HostModel::Data {
  std::shared_ptr<const Program> program;
  std::vector<HostTensor> weights;
  std::vector<HostKernel> kernels;
};

Result<HostModel> HostModel::load(std::shared_ptr<const Program> program,
                                  const TensorSource* source) {
  auto data = std::make_shared<Data>();
  // Weights have constant extents, so that any valid values will do.
  llvm::SmallVector<int64_t> symbol_values;
  for (const Symbol& symbol : program->symbols) {
    int64_t value = symbol.high;
    if (symbol.at_most) value = std::min(value, symbol_values[symbol.at_most->index]);
    symbol_values.push_back(value - value % symbol.multiple);
  }
  for (const Weight& weight : program->weights) {
    EvalOptions options;
    options.source = source;
    auto tensors = evaluate(weight.init, program->symbols, symbol_values, {}, options);
    if (!tensors) {
      Error error = std::move(tensors.error());
      if (error.where.empty()) error.where = "weight " + printable(weight.name);
      return tl::make_unexpected(std::move(error));
    }
    data->weights.push_back(std::move((*tensors)[0]));
  }
  for (const Kernel& kernel : program->kernels)
    data->kernels.push_back(make_host_kernel(kernel, program->symbols));
  data->program = std::move(program);
  HostModel model;
  model.data_ = std::move(data);
  return model;
}

const Program& HostModel::program() const { return *data_->program; }
const HostTensor& HostModel::weight(size_t index) const { return data_->weights[index]; }

Result<HostSession> HostSession::create(HostModel model, llvm::ArrayRef<int64_t> symbol_values) {
  const Program& program = model.program();
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
    std::fill(tensor.bytes.begin(), tensor.bytes.end(), std::byte{0});
    session.states_.push_back(std::move(tensor));
  }
  session.symbol_values_.assign(symbol_values.begin(), symbol_values.end());
  session.model_ = std::move(model);
  return session;
}

Result<RunResult> HostSession::run(std::string_view entry_name,
                                   llvm::ArrayRef<int64_t> symbol_values,
                                   llvm::ArrayRef<const HostTensor*> inputs,
                                   const HostRunOptions& options) {
  const Program& program = model_.program();
  const EntryPlan* entry = program.find_entry(entry_name);
  if (!entry) return fail(fmt::format("the plan has no entry {}", printable(entry_name)));
  SINTER_TRY(check_symbol_values(program.symbols, symbol_values));
  for (const State& state : program.states)
    for (Dim dim : state.type.dims) {
      if (dim.is_constant()) continue;
      const uint32_t symbol = dim.symbol().index;
      if (symbol_values[symbol] != symbol_values_[symbol])
        return fail(fmt::format("{} is {}, the session's states were made with {}",
                                printable(program.symbols[symbol].name), symbol_values[symbol],
                                symbol_values_[symbol]));
    }
  return run_entry({program, *entry, model_.data_->kernels, model_.data_->weights, states_,
                    symbol_values, inputs, options});
}

}  // namespace sinter
