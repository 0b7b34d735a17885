// The body of one kernel: of one part, or of several side by side.
#pragma once

#include "codegen/emission/emit_context.h"
#include "codegen/emission/kernel_body.h"
#include "codegen/lowering/emit.h"

namespace sinter {

/// By the family that the group asks for.
Result<KernelBody> emit_body(const EmitContext& context);
/// Several parts side by side; `context`: of the whole group.
Result<KernelBody> emit_parts(const EmitContext& context, llvm::ArrayRef<KernelPart> parts);

}  // namespace sinter
