// The conditions that each symbol, weight, state, kernel and buffer must fulfil by itself.
#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <set>

#include "ir/op_roles.h"
#include "ir/variants.h"
#include "plan/check_parts.h"
#include "plan/kernel_text.h"
#include "plan/shared_outputs.h"

namespace sinter::checker {
namespace {

bool is_identifier(std::string_view name) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (name.empty() || !letter(name[0])) return false;
  return llvm::all_of(name, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

Status check_symbols(llvm::ArrayRef<Symbol> symbols) {
  for (size_t i = 0; i < symbols.size(); ++i) {
    const Symbol& symbol = symbols[i];
    if (symbol.at_most && symbol.at_most->index >= i)
      return violation(
          fmt::format("bounded by symbol {}, which is not an earlier one", symbol.at_most->index),
          "symbol " + printable(symbol.name));
    if (symbol.low < 0 || symbol.low > symbol.high || symbol.multiple < 1)
      return violation(
          fmt::format("range {}..{} with multiple {}", symbol.low, symbol.high, symbol.multiple),
          "symbol " + printable(symbol.name));
  }
  return {};
}

Status check_range(const Program& program, const std::optional<SymbolRange>& range,
                   const std::string& where) {
  if (!range) return {};
  if (range->symbol.index >= program.symbols.size())
    return violation(
        fmt::format("a range of symbol {} of {}", range->symbol.index, program.symbols.size()),
        where);
  const Symbol& symbol = program.symbols[range->symbol.index];
  if (range->low < symbol.low || range->low > range->high || range->high > symbol.high)
    return violation(fmt::format("made for {}, the symbol is in [{}, {}]",
                                 to_string(*range, program.symbols), symbol.low, symbol.high),
                     where);
  return {};
}

Status check_launch(const Program& program, const Kernel& kernel, const std::string& where) {
  const Launch& launch = kernel.launch;
  SINTER_TRY(check_expr(launch.rows, program.symbols, "the number of rows", where));
  SINTER_TRY(check_expr(launch.wanted_shared_bytes, program.symbols, "the shared memory", where));
  SINTER_TRY(check_expr(launch.symbolic_items, program.symbols, "the number of items", where));
  for (const SymExpr* size : {&launch.rows, &launch.symbolic_items})
    if (!never_less(*size, 0, program.symbols))
      return violation(fmt::format("launch with {} rows or items, which can be negative",
                                   to_string(*size, program.symbols)),
                       where);
  if (launch.items_per_row < 0 || launch.items_per_block < 1 || launch.threads < 1 ||
      launch.threads > 1024 || launch.shared_bytes < 0 || launch.shared_bytes > kMaxSharedBytes ||
      launch.cluster < 1 || launch.cluster > kMaxCluster || launch.items_without_clusters < 0 ||
      launch.most_blocks < 0)
    return violation(
        fmt::format("launch with {} items a row, {} items a block, {} threads, "
                    "{} shared bytes, clusters of {}, none from {} items on, at most {} blocks",
                    launch.items_per_row, launch.items_per_block, launch.threads,
                    launch.shared_bytes, launch.cluster, launch.items_without_clusters,
                    launch.most_blocks),
        where);
  if (launch.cluster > 1 && kernel.minimum_arch < kFirstArchWithClusters)
    return violation(fmt::format("launch with clusters of {} for devices from sm_{} on, which have "
                                 "none before sm_{}",
                                 launch.cluster, kernel.minimum_arch, kFirstArchWithClusters),
                     where);
  // The text of attention knows the size of its clusters.
  for (const Op& op : kernel.group.ops())
    if (reads_cache(op) && op.attrs.has(AttrName::splits) && launch.cluster > 1 &&
        launch.cluster != op.attrs.get<int64_t>(AttrName::splits))
      return violation(fmt::format("launch with clusters of {} for attention in {} splits",
                                   launch.cluster, op.attrs.get<int64_t>(AttrName::splits)),
                       where);
  return {};
}

Status check_symbols(const Program& program, const Kernel& kernel, const std::string& where) {
  const std::vector<SymbolId> expected = symbols_of(kernel.group);
  if (kernel.symbols == expected) return {};
  const auto names = [&](llvm::ArrayRef<SymbolId> symbols) {
    std::vector<std::string> names;
    for (SymbolId id : symbols)
      names.push_back(id.index < program.symbols.size() ? printable(program.symbols[id.index].name)
                                                        : fmt::format("number {}", id.index));
    return fmt::format("[{}]", fmt::join(names, ", "));
  };
  return violation(fmt::format("the symbols {} are parameters, the group has {}",
                               names(kernel.symbols), names(expected)),
                   where);
}

// A launch without items writes nothing. Where a result has elements, each of its symbols is 1 or
// more, and the launch then has items.
Status check_results_are_written(const Program& program, const Kernel& kernel,
                                 const std::string& where) {
  const Launch& launch = kernel.launch;
  const SymExpr items = launch.rows * (launch.symbolic_items.is(0) ? SymExpr(launch.items_per_row)
                                                                   : launch.symbolic_items);
  for (ValueId output : kernel.group.outputs) {
    const Op& op = kernel.group[output];
    const SymExpr elements = volume(written_type(kernel.group, op).dims);
    if (writes_rows(op) || elements.is(0)) continue;
    std::vector<Symbol> symbols(program.symbols.begin(), program.symbols.end());
    for (Dim dim : op.type.dims)
      if (!dim.is_constant())
        symbols[dim.symbol().index].low = std::max<int64_t>(symbols[dim.symbol().index].low, 1);
    if (!never_less(items, 1, symbols))
      return violation(
          fmt::format("the launch, {} items, may have no items while its result %{}, {}, has "
                      "elements",
                      to_string(items, program.symbols), op.name,
                      to_string(op.type, program.symbols)),
          where);
  }
  return {};
}

// Pairs of different outputs and inputs. Whether a step may use one is the arena's question.
Status check_in_place(const Kernel& kernel, const std::string& where) {
  for (size_t i = 0; i < kernel.in_place.size(); ++i) {
    const InPlace& pair = kernel.in_place[i];
    if (pair.output >= kernel.group.outputs.size() || pair.input >= kernel.group.inputs.size())
      return violation(
          fmt::format("output {} of {} in the place of input {} of {}", pair.output,
                      kernel.group.outputs.size(), pair.input, kernel.group.inputs.size()),
          where);
    for (size_t j = 0; j < i; ++j)
      if (kernel.in_place[j].output == pair.output || kernel.in_place[j].input == pair.input)
        return violation(fmt::format("output {} in the place of input {}, output {} in that of {}",
                                     kernel.in_place[j].output, kernel.in_place[j].input,
                                     pair.output, pair.input),
                         where);
  }
  return {};
}

/// Each thread of the kernel reads only the elements of the state that it overwrites.
bool reads_own_elements(const Kernel& kernel, ValueId writer, ValueId state,
                        llvm::ArrayRef<Symbol> symbols) {
  const Graph& group = kernel.group;
  const auto* output = llvm::find(group.outputs, writer);
  if (output == group.outputs.end()) return false;
  const InPlace pair{static_cast<uint32_t>(output - group.outputs.begin()),
                     static_cast<uint32_t>(llvm::find(group.inputs, state) - group.inputs.begin())};
  return may_overwrite(kernel, pair, symbols);
}

// A state is written in place. Another writer of that state in the same kernel would race with this
// one, and so would a reader, but for threads that read the elements that they overwrite.
Status check_append(const Kernel& kernel, ValueId id, llvm::ArrayRef<Symbol> symbols,
                    const std::string& where) {
  const Graph& group = kernel.group;
  const ValueId state = operand_with(group[id], OperandRole::state);
  if (!llvm::is_contained(group.inputs, state))
    return violation(fmt::format("%{} writes %{}, which is not an input of the kernel",
                                 group[id].name, group[state].name),
                     where);
  for (uint32_t i = 0; i < group.size(); ++i)
    for (size_t k = 0; k < group.ops()[i].operands.size(); ++k)
      if (group.ops()[i].operands[k] == state &&
          !(i == id.index && operand_role(group[id], k) == OperandRole::state) &&
          (operand_role(group.ops()[i], k) == OperandRole::state ||
           !reads_own_elements(kernel, id, state, symbols)))
        return violation(fmt::format("%{} reads %{}, which %{} overwrites in the same kernel",
                                     group.ops()[i].name, group[state].name, group[id].name),
                         where);
  return {};
}

/// A buffer on entry `buffer.index` of a table of weights or states.
template <typename Row>
Status check_row(const Buffer& buffer, const std::vector<Row>& table, std::string_view what,
                 llvm::ArrayRef<Symbol> symbols, const std::string& where) {
  if (buffer.index >= table.size())
    return violation(fmt::format("{} {} of {}", what, buffer.index, table.size()), where);
  const TensorType& type = table[buffer.index].type;
  if (buffer.type == type) return {};
  return violation(fmt::format("type {} here, {} in {} {}", to_string(buffer.type, symbols),
                               to_string(type, symbols), what, buffer.index),
                   where);
}

Status check_buffer(const Program& program, const EntryPlan& entry, uint32_t id) {
  const llvm::ArrayRef<Symbol> symbols = program.symbols;
  const Buffer& buffer = entry.buffers[id];
  const std::string where =
      fmt::format("entry {}, buffer %{}", printable(entry.name), printable(buffer.value));
  SINTER_TRY(check_type(buffer.type, symbols, where));
  SINTER_TRY(check_expr(buffer.size_bytes, symbols, "the size", where));
  const SymExpr needed = storage_bytes(buffer.type);
  if (buffer.size_bytes != needed)
    return violation(fmt::format("{} bytes for a value of type {}, which has {}",
                                 to_string(buffer.size_bytes, symbols),
                                 to_string(buffer.type, symbols), to_string(needed, symbols)),
                     where);
  switch (buffer.place) {
    case Buffer::Place::arena:
      return {};
    case Buffer::Place::input:
      // The tensor of a call is compared with the listed buffer alone.
      if (buffer.index < entry.inputs.size() && entry.inputs[buffer.index] == id) return {};
      return violation(fmt::format("buffer {} is in the place of input {} of {}, which lists {}",
                                   id, buffer.index, entry.inputs.size(),
                                   buffer.index < entry.inputs.size()
                                       ? fmt::format("buffer {}", entry.inputs[buffer.index])
                                       : "none"),
                       where);
    case Buffer::Place::weight:
      return check_row(buffer, program.weights, "weight", symbols, where);
    case Buffer::Place::state:
      return check_row(buffer, program.states, "state", symbols, where);
    case Buffer::Place::exchange:
      return {};
  }
  return violation(fmt::format("place {}", static_cast<int>(buffer.place)), where);
}

}  // namespace

Status check_tables(const Program& program) {
  SINTER_TRY(check_symbols(program.symbols));
  for (const Weight& weight : program.weights)
    SINTER_TRY(check_type(weight.type, program.symbols, "weight " + printable(weight.name)));
  for (const State& state : program.states)
    SINTER_TRY(check_type(state.type, program.symbols, "state " + printable(state.name)));
  for (const EntryPlan& entry : program.entries)
    SINTER_TRY(check_range(program, entry.range, "entry " + printable(entry.name)));
  std::set<std::string_view> names;
  for (const Kernel& kernel : program.kernels) {
    SINTER_TRY(check_range(program, kernel.range, "kernel " + printable(kernel.name)));
    if (!is_identifier(kernel.name))
      return violation(fmt::format("kernel name \"{}\" is no identifier", printable(kernel.name)),
                       {});
    if (!names.insert(kernel.name).second)
      return violation(fmt::format("two kernels are called {}", kernel.name), {});
  }
  return {};
}

Status check_kernel(const Program& program, const Kernel& kernel) {
  const std::string where = "kernel " + kernel.name;
  const Graph& group = kernel.group;
  SINTER_TRY(check_launch(program, kernel, where));
  SINTER_TRY(check_tensor_maps(program, kernel, where));
  SINTER_TRY(check_in_place(kernel, where));
  if (group.outputs.empty()) return violation("no output", where);
  llvm::SmallVector<ValueId, 4> appends;
  for (uint32_t i = 0; i < group.size(); ++i) {
    const Op& op = group.ops()[i];
    SINTER_TRY(check_type(op.type, program.symbols, where));
    const bool is_input = llvm::is_contained(group.inputs, ValueId{i});
    if (is_input != (op.kind == OpKind::input) || (!is_input && op_class(op) == OpClass::leaf) ||
        op.kind == OpKind::file || op.kind == OpKind::pack_codes || op.kind == OpKind::all_reduce)
      return violation(fmt::format("%{} of kind {} is {} of the kernel", op.name,
                                   algorithm_name(op), is_input ? "an input" : "no input"),
                       where);
    if (writes_state(op)) {
      SINTER_TRY(check_append(kernel, ValueId{i}, program.symbols, where));
      appends.push_back(ValueId{i});
    }
  }
  std::vector<uint32_t> append_outputs;
  for (uint32_t i = 0; i < group.outputs.size(); ++i)
    if (writes_state(group[group.outputs[i]])) {
      append_outputs.push_back(i);
      llvm::erase(appends, group.outputs[i]);
    }
  if (!appends.empty())
    return violation(fmt::format("%{} writes a state but is no output", group[appends[0]].name),
                     where);
  if (append_outputs != kernel.appends)
    return violation(fmt::format("outputs [{}] are listed as appends, [{}] are",
                                 fmt::join(kernel.appends, ", "), fmt::join(append_outputs, ", ")),
                     where);
  SINTER_TRY(check_symbols(program, kernel, where));
  return check_results_are_written(program, kernel, where);
}

Status check_buffers(const Program& program, const EntryPlan& entry) {
  const std::string where = "entry " + printable(entry.name);
  for (size_t i = 0; i < entry.inputs.size(); ++i) {
    const uint32_t id = entry.inputs[i];
    if (id >= entry.buffers.size() || entry.buffers[id].place != Buffer::Place::input ||
        entry.buffers[id].index != i)
      return violation(
          fmt::format("input {} is buffer {}, which is not the place of input {}", i, id, i),
          where);
  }
  for (uint32_t id = 0; id < entry.buffers.size(); ++id)
    SINTER_TRY(check_buffer(program, entry, id));
  for (uint32_t id : entry.outputs)
    if (id >= entry.buffers.size())
      return violation(fmt::format("an output is buffer {} of {}", id, entry.buffers.size()),
                       where);
  for (const RowCheck& check : entry.row_checks)
    if (check.buffer >= entry.buffers.size())
      return violation(
          fmt::format("row numbers are buffer {} of {}", check.buffer, entry.buffers.size()),
          where);
  if (entry.output_names.size() != entry.outputs.size())
    return violation(
        fmt::format("{} names for {} outputs", entry.output_names.size(), entry.outputs.size()),
        where);
  return {};
}

}  // namespace sinter::checker
