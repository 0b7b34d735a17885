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
  std::string before_wait;  // between the function's braces, before the wait for earlier kernels
  std::string text;         // and after it
  Launch launch;
  int64_t resident_blocks = 1;  // a multiprocessor must hold so many at a time
  int64_t cluster = 1;          // neighbouring blocks that reach one another's shared memory
};

/// `parameters`: symbols in the order of the kernel's parameters.
Result<KernelBody> emit_rows(const GroupForm& form, llvm::ArrayRef<Symbol> symbols,
                             llvm::ArrayRef<SymbolId> parameters, const DeviceDescription& device);
/// The text for one row by all threads of a block, which declares `row` and `thread` in front and
/// puts a barrier between rows. Results but the first are written by the first block alone.
Result<KernelBody> emit_row_in_block(const GroupForm& form, llvm::ArrayRef<Symbol> symbols,
                                     llvm::ArrayRef<SymbolId> parameters, int64_t threads,
                                     const DeviceDescription& device);
Result<KernelBody> emit_elements(const GroupForm& form, llvm::ArrayRef<Symbol> symbols,
                                 llvm::ArrayRef<SymbolId> parameters);

/// The kernel of a group around a matvec: rows in front of it, elements behind it.
Result<KernelBody> emit_matvec(const Graph& group, llvm::ArrayRef<Symbol> symbols,
                               llvm::ArrayRef<SymbolId> parameters,
                               const DeviceDescription& device);

/// The kernel of a group that is one opaque op, read through views.
Result<KernelBody> emit_opaque(const Graph& group, llvm::ArrayRef<Symbol> symbols,
                               llvm::ArrayRef<SymbolId> parameters);

}  // namespace sinter
