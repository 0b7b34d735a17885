#include "ir/types.h"

namespace sinter {

Status check_symbol_value(const Symbol& symbol, int64_t value) {
  if (value >= symbol.low && value <= symbol.high && value % symbol.multiple == 0) return {};
  return fail(fmt::format("{} is {}, the plan is for {} to {} in steps of {}", symbol.name, value,
                          symbol.low, symbol.high, symbol.multiple),
              {}, "split the call or compile the model for another range");
}

Status check_symbol_values(llvm::ArrayRef<Symbol> symbols, llvm::ArrayRef<int64_t> values) {
  if (symbols.size() != values.size())
    return fail(fmt::format("{} values for {} symbols", values.size(), symbols.size()));
  for (size_t i = 0; i < symbols.size(); ++i) {
    const Symbol& symbol = symbols[i];
    SINTER_TRY(check_symbol_value(symbol, values[i]));
    if (symbol.at_most && values[i] > values[symbol.at_most->index])
      return fail(fmt::format("{} is {}, at most {} = {} is possible", symbol.name, values[i],
                              symbols[symbol.at_most->index].name, values[symbol.at_most->index]));
  }
  return {};
}

std::string to_string(Dim dim, llvm::ArrayRef<Symbol> symbols) {
  if (dim.is_constant()) return fmt::format("{}", dim.constant());
  return symbols[dim.symbol().index].name;
}

std::string to_string(const TensorType& type, llvm::ArrayRef<Symbol> symbols) {
  std::string text(to_string(type.dtype));
  text += '[';
  for (size_t i = 0; i < type.dims.size(); ++i)
    text += (i ? ", " : "") + to_string(type.dims[i], symbols);
  return text + ']';
}

}  // namespace sinter
