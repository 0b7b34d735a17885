// The forms of kernels: rows with reductions, independent elements, and opaque ops.
#pragma once

#include "codegen/emit_value.h"
#include "plan/program.h"
#include "target/schedule.h"

namespace sinter {

/// What a kernel's function holds, and how it is launched.
struct KernelBody {
  std::string includes = "#include \"sinter/reduce.cuh\"\n#include \"sinter/vector.cuh\"\n";
  std::string globals;  // definitions before the function
  std::string text;     // between the function's braces
  Launch launch;
  int64_t resident_blocks = 1;  // a multiprocessor must hold so many at a time
  int64_t cluster = 1;          // neighbouring blocks that reach one another's shared memory
};

/// `parameters`: symbols in the order of the kernel's parameters.
Result<KernelBody> emit_rows(const GroupForm& form, llvm::ArrayRef<Symbol> symbols,
                             llvm::ArrayRef<SymbolId> parameters, const DeviceDescription& device);
Result<KernelBody> emit_elements(const GroupForm& form, llvm::ArrayRef<Symbol> symbols,
                                 llvm::ArrayRef<SymbolId> parameters);

/// The kernel of a group that is one opaque op, read through views.
Result<KernelBody> emit_opaque(const Graph& group, llvm::ArrayRef<Symbol> symbols,
                               llvm::ArrayRef<SymbolId> parameters);

}  // namespace sinter
