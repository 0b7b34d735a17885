// Which tiles of a mask of attention show a key.
#include "kernels/family.h"

#include "codegen/emission/kernel_body.h"
#include "ir/attention_operands.h"

namespace sinter {

EmitKernel emit_mask_tiles;

namespace {

/// The mask is read where the attention reads it.
bool mask_addresses(const Graph& graph, const Op& op, size_t operand, llvm::ArrayRef<Symbol>) {
  return mask_place(graph, op.operands[operand]).has_value();
}

constexpr KernelFamily make_family() {
  KernelFamily family = closed_family<OpKind::mask_tiles>("mask_tiles", emit_mask_tiles);
  family.addresses = mask_addresses;
  return family;
}

}  // namespace

extern const KernelFamily mask_tiles_family;
constinit const KernelFamily mask_tiles_family = make_family();

}  // namespace sinter
