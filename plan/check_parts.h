// Parts of the checker, one kind of fact each; checker.cpp calls them in this order. Later parts
// rely on what earlier ones have proved.
#pragma once

#include "plan/program.h"

namespace sinter::checker {

/// a >= b for all values of the symbols: every coefficient is, possibly after counting each symbol
/// from its smallest value.
bool never_less(const SymExpr& a, const SymExpr& b, llvm::ArrayRef<Symbol> symbols);

/// A step as messages name it: "entry prefill, step 3 (l0.norm, l0.qkv)".
std::string place(const EntryPlan& entry, size_t step);
/// The violation `what` at `where`.
tl::unexpected<Error> violation(std::string what, std::string where);

/// `expr` did not overflow and refers to host symbols that exist.
Status check_expr(const SymExpr& expr, llvm::ArrayRef<Symbol> symbols, std::string_view what,
                  std::string_view where);
/// V7 of the verifier: axes, symbols that exist, and bytes.
Status check_type(const TensorType& type, llvm::ArrayRef<Symbol> symbols, std::string_view where);

/// Symbols, weights and states of the program.
Status check_tables(const Program& program);
/// A kernel by itself: leaves, appends, a launch that writes every result that has elements.
Status check_kernel(const Program& program, const Kernel& kernel);
/// Tensor maps of a kernel: what the hardware takes, inside their inputs.
Status check_tensor_maps(const Program& program, const Kernel& kernel, const std::string& where);
/// How a kernel overlaps others, by itself: it waits if it triggers after its wait or reads early,
/// and the lists name inputs, of which caches are an attention's.
Status check_overlap(const Kernel& kernel);
/// Each buffer by itself; the lists of inputs and outputs.
Status check_buffers(const Program& program, const EntryPlan& entry);
/// Bounds, strides and element types of a GEMM whose buffer ids are valid; every element of its
/// result is written.
Status check_gemm(const Program& program, const EntryPlan& entry, const GemmStep& gemm,
                  std::string_view where);

/// Steps between which a buffer holds its value, found from the steps; -1: never.
struct LiveRange {
  int64_t written = -1;
  int64_t last = -1;  // the number of steps for an output of the entry
};
/// Arguments of all steps, order of reads and writes, versions of states. One range a buffer.
Result<std::vector<LiveRange>> check_steps(const Program& program, const EntryPlan& entry);
/// A value that kernels place parts in is read after its last part.
Status check_places(const Program& program, const EntryPlan& entry);
/// Kernels address memory by row numbers that the runtime checks before the call, that are known to
/// be in range, or that the kernel checks and the runtime looks at after the call.
Status check_row_numbers(const Program& program, const EntryPlan& entry);
/// Values that kernels read before their wait are complete when these kernels begin.
Status check_early_reads(const Program& program, const EntryPlan& entry);
/// Entries of one name are the variants of one entry.
Status check_variants(const Program& program);
/// Slots of the arena and the lives of their buffers.
Status check_arena(const Program& program, const EntryPlan& entry,
                   llvm::ArrayRef<LiveRange> ranges);

}  // namespace sinter::checker
