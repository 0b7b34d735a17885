#include "kernels/gemv/prologue.h"

#include "ir/contraction.h"
#include "ir/type_sizes.h"

namespace sinter {
namespace {

// Bytes of shared memory for an operand that is gathered from another order in memory.
constexpr int64_t kMaxGatheredBytes = 48 * 1024;

/// The operand again, in another element type.
bool is_conversion(const Graph& group, const Op& op) {
  return op.operands.size() == 1 && op.type.dtype != group[op.operands[0]].type.dtype;
}

}  // namespace

bool is_gemv_operand(const Graph& graph, ValueId x, llvm::ArrayRef<Symbol> symbols) {
  return is_dense(graph, x) ||
         storage_bytes(graph[x].type).upper_bound(symbols) <= kMaxGatheredBytes;
}

bool has_direct_operand(const Graph& group, ValueId anchor) {
  const ValueId operand = group[anchor].operands[0];
  return group[root_of(group, operand)].kind == OpKind::input && is_dense(group, operand);
}

std::vector<bool> gemv_prologue(const Graph& group, ValueId anchor) {
  std::vector<bool> prologue(group.size(), false);
  prologue[group[anchor].operands[0].index] = true;
  for (uint32_t i = anchor.index; i-- > 0;)
    if (prologue[i])
      for (ValueId id : group.ops()[i].operands) prologue[id.index] = true;
  // A direct operand needs no prologue: its other readers belong to the epilogue.
  if (has_direct_operand(group, anchor)) return prologue;
  // A value of the prologue that is stored may be rounded for its store alone.
  for (uint32_t i = 0; i < group.size(); ++i)
    if (const Op& op = group.ops()[i]; is_conversion(group, op) && prologue[op.operands[0].index])
      prologue[i] = true;
  return prologue;
}

}  // namespace sinter
