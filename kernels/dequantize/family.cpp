// Matrices of codes and scales as float32, for products that take no packed matrix.
#include "kernels/family.h"

#include "codegen/emission/kernel_body.h"

namespace sinter {

EmitKernel emit_dequantize;

extern const KernelFamily dequantize_family;
constinit const KernelFamily dequantize_family =
    closed_family<OpKind::dequantize>("dequantize", emit_dequantize);

}  // namespace sinter
