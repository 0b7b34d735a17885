// Variants: entries of one name, each for a range of one symbol's values.
//
//   entry @main(%x: f32[N, 64]) -> (%y) where N in [1, 8] { ... }
//   entry @main(%x: f32[N, 64]) -> (%y) where N in [9, 2048] { ... }
//
// A call has the variant whose range contains the symbol's value.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace sinter {

/// The symbols, with the range's symbol limited to the range, and symbols that it bounds limited
/// too. Without a range: the symbols.
std::vector<Symbol> narrowed(llvm::ArrayRef<Symbol> symbols,
                             const std::optional<SymbolRange>& range);

/// "N in [1, 8]".
std::string to_string(const SymbolRange& range, llvm::ArrayRef<Symbol> symbols);
/// "main"; of a variant "main, N in [2, 8]" or "main, N = 1".
std::string entry_title(std::string_view name, const std::optional<SymbolRange>& range,
                        llvm::ArrayRef<Symbol> symbols);

/// The sizes, by symbol; the size of the range's symbol, and sizes that it bounds, are moved into
/// the range.
std::vector<int64_t> sizes_in(const std::optional<SymbolRange>& range,
                              llvm::ArrayRef<Symbol> symbols, llvm::ArrayRef<int64_t> sizes);

/// The fault of the ranges of entries of one name, in their order. nullopt: there is one
/// entry and no range, or 2 to kMaxVariants ranges of one symbol that cover its values, none twice.
std::optional<std::string> fault_of_ranges(llvm::ArrayRef<std::optional<SymbolRange>> ranges,
                                           llvm::ArrayRef<Symbol> symbols);

/// The entries of that name; `Item` has a name and a range.
template <typename Item>
llvm::ArrayRef<Item> variants_of(const std::vector<Item>& entries, std::string_view name) {
  const auto named = [&](const Item& entry) { return entry.name == name; };
  const auto first = std::find_if(entries.begin(), entries.end(), named);
  const auto end = std::find_if_not(first, entries.end(), named);
  return {entries.data() + (first - entries.begin()), static_cast<size_t>(end - first)};
}

/// The entry of that name for these values of all symbols; null: there is none.
template <typename Item>
const Item* variant_for(const std::vector<Item>& entries, std::string_view name,
                        llvm::ArrayRef<int64_t> symbol_values) {
  for (const Item& entry : variants_of(entries, name))
    if (!entry.range || entry.range->contains(symbol_values[entry.range->symbol.index]))
      return &entry;
  return nullptr;
}

}  // namespace sinter
