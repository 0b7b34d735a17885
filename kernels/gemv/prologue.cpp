#include "kernels/gemv/prologue.h"

#include "ir/contraction.h"
#include "ir/type_sizes.h"

namespace sinter {
namespace {

// Bytes of an operand that is gathered from another order in memory, in shared memory.
constexpr int64_t kMaxGatheredBytes = 48 * 1024;

/// The operand again, in another element type.
bool is_conversion(const Graph& group, const Op& op) {
  return op.operands.size() == 1 && op.type.dtype != group[op.operands[0]].type.dtype;
}

}  // namespace

bool is_gemv_operand(const Graph& graph, ValueId x, llvm::ArrayRef<Symbol> symbols) {
  return is_dense(graph, x) ||
         storage_bytes(graph[x].type, symbols).upper_bound(symbols) <= kMaxGatheredBytes;
}

bool has_direct_operand(const Graph& group, ValueId anchor) {
  const ValueId operand = group[anchor].operands[0];
  return group[root_of(group, operand)].kind == OpKind::input && is_dense(group, operand);
}

std::vector<bool> gemv_prologue(const Graph& group, ValueId anchor) {
  std::vector<bool> front(group.size(), false);
  front[group[anchor].operands[0].index] = true;
  for (uint32_t i = anchor.index; i-- > 0;)
    if (front[i])
      for (ValueId id : group.ops()[i].operands) front[id.index] = true;
  // An operand that stands in memory has no front: what reads it as well stands behind.
  if (has_direct_operand(group, anchor)) return front;
  // A value of the front that leaves may be rounded for its store alone.
  for (uint32_t i = 0; i < group.size(); ++i)
    if (const Op& op = group.ops()[i]; is_conversion(group, op) && front[op.operands[0].index])
      front[i] = true;
  return front;
}

}  // namespace sinter
