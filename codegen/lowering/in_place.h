// Which outputs of a kernel step take the memory of operands.
#pragma once

#include "codegen/lowering/arena.h"
#include "plan/program.h"

namespace sinter {

/// Which input of the entry the caller wants an output to overwrite, both as buffers.
struct WantedInput {
  uint32_t output = 0, input = 0;
};

/// The outputs of step `index`, a kernel of `group`, that its family can write in the memory of an
/// operand which no later step reads: of several operands the oldest one. An output with a wanted
/// input takes that one or none. The buffers' lives are complete.
std::vector<InPlace> outputs_in_place(const Graph& group, const KernelStep& step, uint32_t index,
                                      llvm::ArrayRef<Buffer> buffers,
                                      llvm::ArrayRef<Symbol> symbols,
                                      llvm::ArrayRef<WantedInput> wanted = {});

}  // namespace sinter
