#include "runtime/executable.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>

#include "ir/tensor_source.h"
#include "ir/variants.h"
#include "runtime/evaluate/evaluate.h"

namespace sinter {
namespace {

std::string shown(DType dtype, llvm::ArrayRef<int64_t> dims) {
  return fmt::format("{}[{}]", to_string(dtype), fmt::join(dims, ", "));
}

}  // namespace

Status report_progress(const WeightProgress& progress, size_t done, size_t total) {
  if (!progress || progress(done, total)) return {};
  return fail(fmt::format("the loading was cancelled after {} of {} bytes of weights", done, total),
              {}, "load again", ExitCode::cancelled);
}

int find_symbol(llvm::ArrayRef<Symbol> symbols, std::string_view name) {
  for (size_t i = 0; i < symbols.size(); ++i)
    if (symbols[i].name == name) return static_cast<int>(i);
  return -1;
}

std::vector<int64_t> concrete_dims(const TensorType& type, llvm::ArrayRef<int64_t> symbol_values) {
  std::vector<int64_t> dims;
  for (Dim dim : type.dims)
    dims.push_back(dim.is_constant() ? dim.constant() : symbol_values[dim.symbol().index]);
  return dims;
}

std::vector<int64_t> greatest_symbol_values(llvm::ArrayRef<Symbol> symbols) {
  std::vector<int64_t> values;
  for (const Symbol& symbol : symbols) {
    int64_t value = symbol.high;
    if (symbol.at_most) value = std::min(value, values[symbol.at_most->index]);
    values.push_back(value - value % symbol.multiple);
  }
  return values;
}

Result<const EntryPlan*> find_call(const Program& program, std::string_view entry_name,
                                   llvm::ArrayRef<int64_t> symbol_values,
                                   llvm::ArrayRef<int64_t> session_values) {
  SINTER_TRY(check_symbol_values(program.symbols, symbol_values));
  const EntryPlan* entry = variant_for(program.entries, entry_name, symbol_values);
  if (!entry) return fail(fmt::format("the plan has no entry {}", printable(entry_name)));
  for (const State& state : program.states)
    for (Dim dim : state.type.dims) {
      if (dim.is_constant()) continue;
      const uint32_t symbol = dim.symbol().index;
      if (symbol_values[symbol] != session_values[symbol])
        return fail(fmt::format("{} is {}, the session's states were made with {}",
                                printable(program.symbols[symbol].name), symbol_values[symbol],
                                session_values[symbol]));
    }
  return entry;
}

Status check_call_inputs(const Program& program, const EntryPlan& entry,
                         llvm::ArrayRef<int64_t> symbol_values,
                         llvm::ArrayRef<const HostTensor*> inputs) {
  if (inputs.size() != entry.inputs.size())
    return fail(fmt::format("{} tensors for entry {} with {} inputs", inputs.size(),
                            printable(entry.name), entry.inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Buffer& buffer = entry.buffers[entry.inputs[i]];
    const std::vector<int64_t> dims = concrete_dims(buffer.type, symbol_values);
    if (inputs[i]->dtype != buffer.type.dtype || inputs[i]->dims != dims)
      return fail(
          fmt::format("input %{} is {}, expected {}, that is {}", printable(buffer.value),
                      shown(inputs[i]->dtype, inputs[i]->dims), shown(buffer.type.dtype, dims),
                      to_string(buffer.type, program.symbols)),
          "entry " + printable(entry.name));
    SINTER_CHECK(inputs[i]->bytes.size() ==
                     static_cast<size_t>(storage_bytes(buffer.type.dtype, inputs[i]->volume())),
                 "tensor for %{}", buffer.value);
  }
  return {};
}

Result<uint32_t> find_stored(const EntryPlan& entry, std::string_view value) {
  for (uint32_t id = 0; id < entry.buffers.size(); ++id)
    if (entry.buffers[id].value == value) return id;
  return fail(fmt::format("%{} is no value in memory: it does not exist or lives inside a kernel",
                          printable(value)),
              "entry " + printable(entry.name), "compile with it kept, or without fusion");
}

FreedBuffers::FreedBuffers(const EntryPlan& entry) : entry_(entry) {
  const std::vector<bool> written_over = buffers_written_over(entry);
  for (uint32_t id = 0; id < entry.buffers.size(); ++id)
    if (entry.buffers[id].place == Buffer::Place::arena && !written_over[id]) order_.push_back(id);
  llvm::stable_sort(order_, [&](uint32_t a, uint32_t b) {
    return entry.buffers[a].last_step < entry.buffers[b].last_step;
  });
}

llvm::ArrayRef<uint32_t> FreedBuffers::take(uint32_t step) {
  const size_t begin = taken_;
  while (taken_ < order_.size() && entry_.buffers[order_[taken_]].last_step <= step) ++taken_;
  return llvm::ArrayRef(order_).slice(begin, taken_ - begin);
}

Status in_step(Status done, const EntryPlan& entry, size_t step) {
  if (done) return done;
  std::string& where = done.error().where;
  where = fmt::format("entry {}, step {} (%{}){}{}", printable(entry.name), step,
                      printable(fmt::format("{}", fmt::join(entry.steps[step].values, ", %"))),
                      where.empty() ? "" : ": ", where);
  return done;
}

Result<HostTensor> evaluate_weight(const Program& program, size_t index,
                                   const TensorSource* source) {
  const Weight& weight = program.weights[index];
  EvalOptions options;
  options.source = source;
  auto tensors =
      evaluate(weight.init, program.symbols, greatest_symbol_values(program.symbols), {}, options);
  if (tensors) return std::move((*tensors)[0]);
  Error error = std::move(tensors.error());
  if (error.where.empty()) error.where = "weight " + printable(weight.name);
  return tl::make_unexpected(std::move(error));
}

}  // namespace sinter
