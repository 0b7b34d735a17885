#include "driver/run/known_sizes.h"

#include <algorithm>

#include "driver/generate/decoder.h"

namespace sinter {
namespace {

using KnownValues = std::vector<std::optional<int64_t>>;

/// Sets the symbol in every call to the value that one of them knows.
Status agree(SymbolId symbol, const State& state, llvm::ArrayRef<const Entry*> entries,
             llvm::ArrayRef<KnownSizes> calls, std::vector<KnownValues>& known) {
  std::optional<size_t> first;
  for (size_t i = 0; i < calls.size(); ++i) {
    const auto& size = calls[i].known()[symbol.index];
    if (!size) continue;
    if (!first) first = i;
    const auto& other = *calls[*first].known()[symbol.index];
    if (other.value != size->value)
      return fail(fmt::format("symbol {}, a size of state %{}, is {} in entry {} ({}) and {} in "
                              "entry {} ({})",
                              printable(calls[i].module().symbols[symbol.index].name),
                              printable(state.name), other.value, printable(entries[*first]->name),
                              other.from, size->value, printable(entries[i]->name), size->from),
                  {}, "states keep their size between the calls of a session");
  }
  if (first)
    for (KnownValues& values : known)
      values[symbol.index] = calls[*first].known()[symbol.index]->value;
  return {};
}

}  // namespace

Status KnownSizes::bind(llvm::ArrayRef<std::pair<std::string, int64_t>> values,
                        const std::string& origin) {
  std::string names;
  for (const Symbol& symbol : module_->symbols)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", printable(symbol.name));
  for (const auto& [name, value] : values) {
    const int symbol = find_symbol(module_->symbols, name);
    if (symbol < 0)
      return fail(fmt::format("no symbol is called \"{}\"", printable(name)), origin,
                  names.empty() ? "all sizes of the module are constants" : "it has " + names,
                  ExitCode::usage);
    known_[static_cast<size_t>(symbol)] = {value, "--symbol"};
  }
  return {};
}

Status KnownSizes::bind(const TensorType& type, const FileTensor& tensor) {
  const auto mismatch = [&] {
    return fail(fmt::format("tensor {} is {} [{}], the input is {}", printable(tensor.name),
                            to_string(tensor.dtype), fmt::join(tensor.dims, ", "),
                            to_string(type, module_->symbols)));
  };
  if (tensor.dims.size() != type.rank() || !reads_as(tensor.dtype, type.dtype)) return mismatch();
  const std::string from = fmt::format("tensor {}", printable(tensor.name));
  for (size_t i = 0; i < type.rank(); ++i) {
    const int64_t extent = tensor.dims[i];
    if (type.dims[i].is_constant()) {
      if (type.dims[i].constant() != extent) return mismatch();
      continue;
    }
    std::optional<Size>& size = known_[type.dims[i].symbol().index];
    if (size && size->value != extent)
      return fail(fmt::format("symbol {} is {} by {} and {} by {}",
                              to_string(type.dims[i], module_->symbols), size->value, size->from,
                              extent, from));
    if (!size) size = {extent, from};
  }
  return {};
}

Result<std::vector<std::vector<int64_t>>> session_sizes(llvm::ArrayRef<const Entry*> entries,
                                                        llvm::ArrayRef<KnownSizes> calls,
                                                        int64_t wanted) {
  const Module& module = calls.front().module();
  std::vector<KnownValues> known(calls.size());
  for (size_t i = 0; i < calls.size(); ++i)
    for (const auto& size : calls[i].known())
      known[i].push_back(size ? std::optional(size->value) : std::nullopt);
  const auto all_values = [&] {
    std::vector<std::vector<int64_t>> values;
    for (const KnownValues& call : known)
      values.push_back(symbol_values_near(module.symbols, wanted, call));
    return values;
  };
  for (const State& state : module.states)
    for (const Dim dim : state.type.dims)
      if (!dim.is_constant()) SINTER_TRY(agree(dim.symbol(), state, entries, calls, known));
  // A state that no call knows the size of is as large as the largest call needs.
  auto values = all_values();
  for (const State& state : module.states)
    for (const Dim dim : state.type.dims) {
      if (dim.is_constant()) continue;
      const uint32_t symbol = dim.symbol().index;
      int64_t largest = 0;
      for (const auto& call : values) largest = std::max(largest, call[symbol]);
      for (KnownValues& call : known) call[symbol] = largest;
    }
  values = all_values();
  for (size_t i = 0; i < values.size(); ++i)
    if (Status valid = check_symbol_values(module.symbols, values[i]); !valid) {
      valid.error().where = fmt::format("entry {}", printable(entries[i]->name));
      return tl::make_unexpected(std::move(valid.error()));
    }
  return values;
}

}  // namespace sinter
