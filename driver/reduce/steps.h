// The changes that make a module smaller. Each returns a module that need not be valid; nullopt:
// there is nothing to change.
#pragma once

#include <optional>

#include "driver/reduce/reduce.h"

namespace sinter::reduction {

/// Removes what nothing needs: ops, inputs, weights and states.
void sweep(Module& module);

/// Without the entries of that name.
std::optional<Reducible> without_entry(const Reducible& from, std::string_view name);
/// The variant alone, for all values of its symbol.
std::optional<Reducible> with_one_variant(const Reducible& from, size_t entry);
/// An entry with these results.
Reducible with_outputs(const Reducible& from, size_t entry, llvm::ArrayRef<ValueId> outputs);
/// The ops first .. last-1 become inputs; writes of states go.
std::optional<Reducible> without_ops(const Reducible& from, size_t entry, uint32_t first,
                                     uint32_t last);
/// The op without its last operand, which it may lack.
std::optional<Reducible> without_last_operand(const Reducible& from, size_t entry, ValueId op);
/// Readers of the op read one of its operands.
std::optional<Reducible> bypassed(const Reducible& from, size_t entry, ValueId op, size_t operand);
/// The op is a constant.
std::optional<Reducible> with_constant(const Reducible& from, size_t entry, ValueId op,
                                       double value);
/// A weight's function is one constant.
std::optional<Reducible> with_constant_weight(const Reducible& from, size_t weight);
/// Every extent `was` is `now`.
std::optional<Reducible> with_extent(const Reducible& from, Dim was, Dim now);
/// The symbol's values end at `high`.
std::optional<Reducible> with_high(const Reducible& from, size_t symbol, int64_t high);
/// Without a symbol that nothing uses.
std::optional<Reducible> without_symbol(const Reducible& from, uint32_t symbol);
/// Everything of one element type has another.
std::optional<Reducible> with_dtype(const Reducible& from, DType was, DType now);
/// An op without the attribute.
std::optional<Reducible> without_attribute(const Reducible& from, size_t entry, ValueId op,
                                           AttrName name);

}  // namespace sinter::reduction
