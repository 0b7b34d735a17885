// The body of one kernel: of one part, or of several side by side.
#pragma once

#include "codegen/emission/emit_context.h"
#include "codegen/emission/kernel_body.h"
#include "codegen/lowering/emit.h"

namespace sinter {

/// The anchor of a context's group.
std::optional<Anchor> find_anchor(const Graph& group);
/// The body that the family of the context's group makes.
Result<KernelBody> emit_body(const EmitContext& context);
/// The body of several parts side by side; `context`: of the whole group.
Result<KernelBody> emit_parts(const EmitContext& context, llvm::ArrayRef<KernelPart> parts);

}  // namespace sinter
