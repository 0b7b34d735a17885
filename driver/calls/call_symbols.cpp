#include "driver/calls/call_symbols.h"

#include <algorithm>

namespace sinter {
namespace {

/// Marks the symbols that a call of an entry depends on.
class UsedSymbols {
 public:
  UsedSymbols(const Program& program, llvm::ArrayRef<EntryPlan> variants)
      : used_(program.symbols.size()) {
    for (const EntryPlan& entry : variants) add(program, entry);
  }
  std::vector<bool> take() { return std::move(used_); }

 private:
  void add(const Program& program, const EntryPlan& entry) {
    for (const Buffer& buffer : entry.buffers) {
      add(buffer.size_bytes);
      for (const Dim dim : buffer.type.dims) add(dim);
    }
    for (const RowCheck& check : entry.row_checks) add(check.rows);
    for (const Step& step : entry.steps)
      visit(
          step, [&](const KernelStep& run) { add(program.kernels[run.kernel]); },
          [&](const GemmStep& gemm) { add(gemm); }, [](const CopyStep&) {},
          [](const CollectiveStep&) {});
  }
  void add(const SymExpr& expr) {
    for (const SymExpr::Term& term : expr.terms())
      for (const SymbolId symbol : term.symbols) used_[symbol.index] = true;
  }
  void add(Dim dim) {
    if (!dim.is_constant()) used_[dim.symbol().index] = true;
  }
  void add(const Kernel& kernel) {
    for (const SymbolId symbol : kernel.symbols) used_[symbol.index] = true;
    add(kernel.launch.rows);
    add(kernel.launch.symbolic_items);
    add(kernel.launch.wanted_shared_bytes);
    for (const Op& op : kernel.group.ops())
      for (const Dim dim : op.type.dims) add(dim);
  }
  void add(const GemmStep& gemm) {
    for (const SymExpr* expr : {&gemm.m, &gemm.n, &gemm.k}) add(*expr);
    for (const GemmOperand* operand : {&gemm.a, &gemm.b, &gemm.c})
      for (const SymExpr* expr : {&operand->offset, &operand->row_stride, &operand->column_stride})
        add(*expr);
    for (const GemmStep::Loop& loop : gemm.loops)
      for (const SymExpr* expr : {&loop.count, &loop.a_stride, &loop.b_stride, &loop.c_stride})
        add(*expr);
  }

  std::vector<bool> used_;
};

}  // namespace

CallSymbols::CallSymbols(const Program& program, llvm::ArrayRef<EntryPlan> variants)
    : program_(program), variants_(variants), known_(program.symbols.size()) {}

Status CallSymbols::set(size_t symbol, int64_t value, const std::string& from) {
  std::optional<Value>& known = known_[symbol];
  if (known && known->value != value)
    return fail(
        fmt::format("symbol {} is {} by {} and {} by {}", printable(program_.symbols[symbol].name),
                    known->value, known->from, value, from),
        "entry " + printable(variants_[0].name), "check the shapes", ExitCode::usage);
  if (known) return {};
  if (Status valid = check_symbol_value(program_.symbols[symbol], value); !valid) {
    valid.error().where = fmt::format("entry {}, {}", printable(variants_[0].name), from);
    return valid;
  }
  known = Value{value, from};
  return {};
}

Status CallSymbols::set(const TensorType& type, llvm::ArrayRef<int64_t> dims,
                        const std::string& from) {
  for (size_t i = 0; i < dims.size(); ++i)
    if (!type.dims[i].is_constant()) SINTER_TRY(set(type.dims[i].symbol().index, dims[i], from));
  return {};
}

tl::unexpected<Error> CallSymbols::unknown(size_t symbol) const {
  return fail(fmt::format("symbol {} has no value yet", printable(program_.symbols[symbol].name)),
              "entry " + printable(variants_[0].name),
              "set it, or bind an input whose shape has it", ExitCode::usage);
}

Result<std::vector<int64_t>> CallSymbols::dims(const TensorType& type) const {
  std::vector<int64_t> dims;
  for (const Dim dim : type.dims) {
    if (!dim.is_constant() && !known_[dim.symbol().index]) return unknown(dim.symbol().index);
    dims.push_back(dim.is_constant() ? dim.constant() : known_[dim.symbol().index]->value);
  }
  return dims;
}

Result<std::vector<int64_t>> CallSymbols::all() const {
  const std::vector<bool> used = UsedSymbols(program_, variants_).take();
  std::vector<int64_t> values;
  for (size_t i = 0; i < known_.size(); ++i) {
    const Symbol& symbol = program_.symbols[i];
    if (known_[i]) {
      values.push_back(known_[i]->value);
      continue;
    }
    if (used[i]) return unknown(i);
    int64_t most = symbol.high;
    if (symbol.at_most) most = std::min(most, values[symbol.at_most->index]);
    values.push_back(most - most % symbol.multiple);
  }
  if (Status valid = check_symbol_values(program_.symbols, values); !valid) {
    if (valid.error().where.empty()) valid.error().where = "entry " + printable(variants_[0].name);
    return tl::make_unexpected(std::move(valid.error()));
  }
  return values;
}

}  // namespace sinter
