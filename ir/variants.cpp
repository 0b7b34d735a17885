#include "ir/variants.h"

#include <algorithm>

namespace sinter {

std::vector<Symbol> narrowed(llvm::ArrayRef<Symbol> symbols,
                             const std::optional<SymbolRange>& range) {
  std::vector<Symbol> result(symbols.begin(), symbols.end());
  if (!range) return result;
  result[range->symbol.index].low = range->low;
  result[range->symbol.index].high = range->high;
  for (Symbol& symbol : result) {  // a bound stands before the symbols that it bounds
    if (!symbol.at_most) continue;
    const int64_t most = result[symbol.at_most->index].high;
    symbol.high = std::max(symbol.low, std::min(symbol.high, most - most % symbol.multiple));
  }
  return result;
}

std::string to_string(const SymbolRange& range, llvm::ArrayRef<Symbol> symbols) {
  return fmt::format("{} in [{}, {}]", symbols[range.symbol.index].name, range.low, range.high);
}

std::string entry_title(std::string_view name, const std::optional<SymbolRange>& range,
                        llvm::ArrayRef<Symbol> symbols) {
  if (!range) return std::string(name);
  if (range->low == range->high)
    return fmt::format("{}, {} = {}", name, symbols[range->symbol.index].name, range->low);
  return fmt::format("{}, {}", name, to_string(*range, symbols));
}

std::vector<int64_t> sizes_in(const std::optional<SymbolRange>& range,
                              llvm::ArrayRef<Symbol> symbols, llvm::ArrayRef<int64_t> sizes) {
  std::vector<int64_t> result(sizes.begin(), sizes.end());
  if (!range) return result;
  int64_t& size = result[range->symbol.index];
  size = std::clamp(size, range->low, range->high);
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (!symbols[i].at_most) continue;
    const int64_t most = result[symbols[i].at_most->index];
    result[i] = std::min(result[i], most - most % symbols[i].multiple);
  }
  return result;
}

std::optional<std::string> fault_of_ranges(llvm::ArrayRef<std::optional<SymbolRange>> ranges,
                                           llvm::ArrayRef<Symbol> symbols) {
  if (ranges.size() == 1 && !ranges[0]) return std::nullopt;
  if (ranges.size() == 1) return "has a range, and no other variant has the symbol's other values";
  if (ranges.size() > kMaxVariants)
    return fmt::format("has {} variants, at most {} are possible", ranges.size(), kMaxVariants);
  for (const std::optional<SymbolRange>& range : ranges) {
    if (!range) return "stands there several times, once without a range";
    if (range->symbol != ranges[0]->symbol) return "has variants by different symbols";
    if (range->symbol.index >= symbols.size()) return "has a range of a symbol that does not exist";
  }
  const Symbol& symbol = symbols[ranges[0]->symbol.index];
  int64_t next = symbol.low;
  for (const std::optional<SymbolRange>& range : ranges) {
    if (range->low != next || range->high < range->low || range->high > symbol.high ||
        range->high % symbol.multiple != 0)
      return fmt::format(
          "has a variant for {}, where one from {} to at most {} in steps of {} must "
          "stand",
          to_string(*range, symbols), next, symbol.high, symbol.multiple);
    next = range->high + symbol.multiple;
  }
  if (next <= symbol.high)
    return fmt::format("has no variant for {} from {} to {}", symbol.name, next, symbol.high);
  return std::nullopt;
}

}  // namespace sinter
