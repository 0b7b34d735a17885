// The forms of kernels: rows with reductions, independent elements, and opaque ops.
#pragma once

#include "codegen/emit.h"
#include "codegen/emit_value.h"

namespace sinter {

/// What a kernel's function holds, and how it is launched.
struct KernelBody {
  std::string includes =
      "#include \"kernels/common/reduce.cuh\"\n#include \"kernels/common/vector.cuh\"\n";
  std::string globals;      // definitions before the function
  std::string before_wait;  // between the function's braces, before the wait for earlier kernels
  std::string text;         // and after it
  bool waits = false;       // the text has the wait in it
  std::vector<uint32_t> early_inputs;  // of Overlap's, those that the text reads before the wait
  Launch launch;
  int64_t resident_blocks = 1;  // a multiprocessor must hold so many at a time
};

/// What a body is told of its blocks.
struct BlockForm {
  std::string_view number = "blockIdx.x";  // as code
  int64_t least_threads = 1;               // a power of two that the device has
  std::string_view side_guard = "";        // when results but the first are written; empty: always
  std::string_view when_read = "";         // statements behind the first loop over the rows
};

/// `parameters`: symbols in the order of the kernel's parameters.
Result<KernelBody> emit_rows(const GroupForm& form, llvm::ArrayRef<Symbol> symbols,
                             llvm::ArrayRef<SymbolId> parameters, const DeviceDescription& device,
                             const BlockForm& block);
/// The text for `rows` rows, a power of two, side by side in a block of `threads`, the first rows
/// of the form; those that it does not have are left out. Results but the first are written by the
/// first block alone. `when_read`: statements behind the first loop over the rows; left out where
/// there is none.
Result<KernelBody> emit_rows_in_block(const GroupForm& form, llvm::ArrayRef<Symbol> symbols,
                                      llvm::ArrayRef<SymbolId> parameters, int64_t threads,
                                      int64_t rows, std::string_view when_read,
                                      const DeviceDescription& device);
Result<KernelBody> emit_elements(const GroupForm& form, llvm::ArrayRef<Symbol> symbols,
                                 llvm::ArrayRef<SymbolId> parameters, const BlockForm& block);

/// The kernel of a group of column reductions (column_form.h).
Result<KernelBody> emit_columns(const Graph& group, llvm::ArrayRef<Symbol> symbols,
                                llvm::ArrayRef<SymbolId> parameters,
                                const DeviceDescription& device);

/// The kernel of a group around a matvec: rows in front of it, elements behind it.
Result<KernelBody> emit_matvec(const Graph& group, llvm::ArrayRef<Symbol> symbols,
                               llvm::ArrayRef<SymbolId> parameters, const DeviceDescription& device,
                               const Overlap& overlap, const MatvecRings& rings);

/// The kernel of a group that is one opaque op, read through views.
Result<KernelBody> emit_opaque(const Graph& group, llvm::ArrayRef<Symbol> symbols,
                               llvm::ArrayRef<SymbolId> parameters, const DeviceDescription& device,
                               const Overlap& overlap);

/// The form that the group asks for.
Result<KernelBody> emit_body(const Graph& group, uint32_t prefix_rank,
                             llvm::ArrayRef<Symbol> symbols, llvm::ArrayRef<SymbolId> parameters,
                             const DeviceDescription& device, const BlockForm& block = {},
                             const Overlap& overlap = {}, const MatvecRings& rings = {});
/// Several parts side by side.
Result<KernelBody> emit_parts(const Graph& group, llvm::ArrayRef<KernelPart> parts,
                              llvm::ArrayRef<Symbol> symbols, llvm::ArrayRef<SymbolId> parameters,
                              const DeviceDescription& device);
/// The parameters of the group's function: "const float* x0, ..., long long n0", pointers with
/// __restrict__ if `restricted`, which kernels that overlap others must not have
/// (kernels/common/launch.cuh).
std::string parameters_of(const Graph& group, size_t symbols, bool restricted);
/// What a caller gives for such parameters: its own inputs and outputs of these numbers, and its
/// symbols: "x0, ..., y0, ..., n0".
std::string arguments_of(llvm::ArrayRef<uint32_t> inputs, llvm::ArrayRef<uint32_t> outputs,
                         size_t symbols);

}  // namespace sinter
