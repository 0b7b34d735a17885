// run_sums. Constraint:
//   C34  run_sums: operands [..., D] of float types and one shape of constants, with at least two
//        rows, D a multiple of 8, at most 8192; runs: a power of two of which each has 1 .. 8 of
//        the virtual lanes of the rows, lanes times D at most 16384
#include <bit>

#include "ir/column_runs.h"
#include "ir/inference.h"
#include "ir/sym_expr.h"

namespace sinter {

Result<TensorType> infer_run_sums(const Inference& op) {
  const Dims& dims = op.operands[0].dims;
  for (const TensorType& operand : op.operands)
    if (!is_float(operand.dtype) || operand.dims != dims)
      return op.reject(34, fmt::format("needs operands of float types and one shape, got {} and {}",
                                       op.show(op.operands[0]), op.show(operand)));
  if (!llvm::all_of(dims, [](Dim dim) { return dim.is_constant(); }) || dims.size() < 2)
    return op.reject(34, fmt::format("needs rows and columns of constant extents, got {}",
                                     op.show(op.operands[0])));
  const SymExpr rows = volume(DimsRef(dims).drop_back());
  const int64_t width = dims.back().constant();
  if (rows.overflowed() || rows.constant() < 2 || width < kChunk || width % kChunk != 0 ||
      width > kMaxColumnsOfRuns)
    return op.reject(34, fmt::format("needs at least 2 rows, and columns that are a multiple of 8, "
                                     "at most {}, got {}",
                                     kMaxColumnsOfRuns, op.show(op.operands[0])));
  const auto runs = op.attrs.get<int64_t>(AttrName::runs);
  const int64_t lanes = column_lanes(dims);
  const int64_t most = std::min(kMaxLanesOfRun, kMaxSumsOfRun / width);
  if (runs < 1 || runs > lanes || !std::has_single_bit(static_cast<uint64_t>(runs)) ||
      lanes / runs > most)
    return op.reject(34, fmt::format("{} runs of {} virtual lanes; with {} columns it takes a "
                                     "power of two of runs, each of 1 to {} lanes",
                                     runs, lanes, width, most));
  return TensorType{DType::f32,
                    {Dim(runs), Dim(static_cast<int64_t>(op.operands.size())), Dim(width)}};
}

}  // namespace sinter
