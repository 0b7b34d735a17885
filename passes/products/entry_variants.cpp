// An entry whose ops have different orders for different values of a symbol becomes several, its
// variants: one for each range of values.
//
//   symbol N in [1, 2048]
//   entry @main(%x: f16[N, 64]) -> (%y) {
//     %y = linear %x, %w
//   }
//   =>
//   entry @main(%x: f16[N, 64]) -> (%y) where N in [1, 1] { ... }
//   entry @main(%x: f16[N, 64]) -> (%y) where N in [2, 8] { ... }      its linear will be a gemv
//   entry @main(%x: f16[N, 64]) -> (%y) where N in [9, 2048] { ... }   a call of the library
//
// One token, the usual call, has kernels for one (an H100, a layer of 1,024 columns: 20.3 us; with
// those for up to 8 tokens 23.6).
// The ranges are those of the first symbol that makes a difference. An entry of invariant tokens
// stays one, so that its kernels have one order for chunks of any length. So does an entry with a
// mask_tiles, whose type depends on the largest values of the symbols: choose_kernels comes after.
//
// An invariant recipe has one order for every number. There, every entry becomes several where
// several kernels have that order (KernelFamily::form), such as one for few tokens.
#include <llvm/ADT/StringSet.h>

#include "ir/variants.h"
#include "kernels/registry.h"
#include "passes/passes.h"

namespace sinter {
namespace {

/// A family chooses an order for the op, or an op with an order in its place.
bool has_chosen_order(const Op& op) {
  return op_class(op) == OpClass::contraction || op.kind == OpKind::expert_linear;
}

/// The ranges of one symbol of an entry in which its ops have the same orders and, if `has_forms`,
/// the same of the kernels that have an order. Both are chosen by the largest value that is
/// possible, so that they hold from some value to another.
class OrderRanges {
 public:
  OrderRanges(const Entry& entry, llvm::ArrayRef<Symbol> symbols, SymbolId symbol,
              const KernelChooser& chooser, bool has_forms)
      : chooser_(chooser),
        symbols_(symbols),
        id_(symbol),
        symbol_(symbols[symbol.index]),
        has_forms_(has_forms) {
    for (const Op& op : entry.graph.ops())
      if (has_chosen_order(op)) products_.insert(op.name);
  }

  std::vector<SymbolRange> find() const {
    std::vector<SymbolRange> ranges;
    for (int64_t low = symbol_.low; low <= symbol_.high;
         low = ranges.back().high + symbol_.multiple)
      ranges.push_back({id_, low, ranges.size() + 1 < kMaxVariants ? end(low) : symbol_.high});
    return ranges;
  }

 private:
  /// The largest value up to which all values from `low` on have the same orders.
  int64_t end(int64_t low) const {
    int64_t same = std::min(std::max(low, symbol_.multiple), symbol_.high);  // nothing has no order
    const auto orders = orders_up_to(low, same);
    int64_t other = symbol_.high + symbol_.multiple;  // what it would be if all were the same
    if (orders_up_to(low, symbol_.high) == orders) return symbol_.high;
    while (other - same > symbol_.multiple) {
      const int64_t steps = (other - same) / symbol_.multiple;
      const int64_t middle = same + steps / 2 * symbol_.multiple;
      (orders_up_to(low, middle) == orders ? same : other) = middle;
    }
    return same;
  }

  using Orders = std::vector<std::tuple<OpKind, Attributes, uint8_t>>;
  Orders orders_up_to(int64_t low, int64_t high) const {
    const std::vector<Symbol> symbols = narrowed(symbols_, SymbolRange{id_, low, high});
    const auto graph = chooser_.choose(symbols);
    Orders orders;
    if (!graph) return orders;
    for (const Op& op : graph->ops())
      if (products_.contains(op.name))
        orders.emplace_back(op.kind, op.attrs, form_of(*graph, op, symbols));
    return orders;
  }
  uint8_t form_of(const Graph& graph, const Op& op, llvm::ArrayRef<Symbol> symbols) const {
    const KernelFamily* family = has_forms_ && order_of(op) ? anchored_by(op) : nullptr;
    return family && family->choosing.form ? family->choosing.form(graph, op, symbols) : 0;
  }

  const KernelChooser& chooser_;
  llvm::ArrayRef<Symbol> symbols_;
  SymbolId id_;
  const Symbol& symbol_;
  bool has_forms_;
  llvm::StringSet<> products_;  // names, which the families' ops keep
};

/// A token alone has a variant of its own: the kernels for it hold one in registers and not eight.
void split_off_one(std::vector<SymbolRange>& ranges) {
  const SymbolRange first = ranges.front();
  if (!first.contains(1) || first.high == 1 || ranges.size() == kMaxVariants) return;
  ranges.front().low = 2;
  ranges.insert(ranges.begin(), {first.symbol, first.low, 1});
}

std::vector<SymbolRange> ranges_of(const Entry& entry, llvm::ArrayRef<Symbol> symbols,
                                   const Recipe& recipe) {
  const bool has_orders = llvm::any_of(entry.graph.ops(), has_chosen_order);
  const bool has_tiles =
      llvm::any_of(entry.graph.ops(), [](const Op& op) { return op.kind == OpKind::mask_tiles; });
  const bool stays_one = entry.tokens == Tokens::invariant && !recipe.invariant;
  if (symbols.empty() || !has_orders || has_tiles || stays_one || entry.range) return {};
  const KernelChooser chooser(entry, symbols, recipe);
  for (uint32_t i = 0; i < symbols.size(); ++i) {
    auto ranges = OrderRanges(entry, symbols, SymbolId{i}, chooser, recipe.invariant).find();
    if (ranges.size() == 1) continue;
    if (symbols[i].multiple == 1 && !recipe.invariant) split_off_one(ranges);
    return ranges;
  }
  return {};
}

}  // namespace

bool entry_variants(Module& module, const PassOptions& options) {
  std::vector<Entry> entries;
  for (Entry& entry : module.entries) {
    const auto ranges = ranges_of(entry, module.symbols, options.recipe);
    for (const SymbolRange& range : ranges) {
      entries.push_back(entry);
      entries.back().range = range;
    }
    if (ranges.empty()) entries.push_back(std::move(entry));
  }
  const bool changed = entries.size() != module.entries.size();
  module.entries = std::move(entries);
  return changed;
}

}  // namespace sinter
