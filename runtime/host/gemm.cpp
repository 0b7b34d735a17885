#include "runtime/host/gemm.h"

namespace sinter {
namespace {

class GemmRun {
 public:
  GemmRun(llvm::ArrayRef<Symbol> symbols, llvm::ArrayRef<int64_t> values)
      : symbols_(symbols), values_(values) {}

  Status run(const GemmStep& step, const GemmBuffers& buffers) {
    for (const auto& [size, expr] : {std::pair(&m_, &step.m), {&n_, &step.n}, {&k_, &step.k}})
      SINTER_TRY(evaluate(*expr, *size));
    for (const GemmStep::Loop& loop : step.loops) {
      Loop& values = loops_.emplace_back();
      SINTER_TRY(evaluate(loop.count, values.count));
      SINTER_TRY(evaluate(loop.a_stride, values.a_stride));
      SINTER_TRY(evaluate(loop.b_stride, values.b_stride));
      SINTER_TRY(evaluate(loop.c_stride, values.c_stride));
    }
    ConstMatrix a{buffers.a, buffers.a_dtype, 0, 0}, b{buffers.b, buffers.b_dtype, 0, 0};
    MutableMatrix c{buffers.c, buffers.c_dtype, 0, 0};
    SINTER_TRY(place(step.a, a));
    SINTER_TRY(place(step.b, b));
    SINTER_TRY(place(step.c, c));
    const ConstMatrix bias{buffers.bias, buffers.bias_dtype, 0, 1};
    epilogue_.bias = buffers.bias ? &bias : nullptr;
    epilogue_.activation = step.activation;
    epilogue_.ascending = step.ascending;
    if (buffers.residual) residual_ = {c.data, buffers.residual + (c.data - buffers.c)};
    if (m_ > 0 && n_ > 0) return repeat(0, a, b, c);
    return {};
  }

 private:
  struct Loop {
    int64_t count = 0, a_stride = 0, b_stride = 0, c_stride = 0;
  };

  Status repeat(size_t depth, ConstMatrix a, ConstMatrix b, MutableMatrix c) const {
    if (depth == loops_.size()) {
      Epilogue epilogue = epilogue_;
      ConstMatrix residual{nullptr, c.dtype, c.row_stride, c.column_stride};
      if (residual_.second) {
        residual.data = residual_.second + (c.data - residual_.first);
        epilogue.residual = &residual;
      }
      return gemm(a, b, c, m_, n_, k_, epilogue);
    }
    const Loop& loop = loops_[depth];
    for (int64_t i = 0; i < loop.count; ++i) {
      SINTER_TRY(repeat(depth + 1, a, b, c));
      a.data += loop.a_stride * whole_bytes(a.dtype);
      b.data += loop.b_stride * whole_bytes(b.dtype);
      c.data += loop.c_stride * whole_bytes(c.dtype);
    }
    return {};
  }

  template <typename Matrix>
  Status place(const GemmOperand& operand, Matrix& matrix) const {
    int64_t offset = 0;
    SINTER_TRY(evaluate(operand.offset, offset));
    SINTER_TRY(evaluate(operand.row_stride, matrix.row_stride));
    SINTER_TRY(evaluate(operand.column_stride, matrix.column_stride));
    matrix.data += offset * whole_bytes(matrix.dtype);
    return {};
  }

  Status evaluate(const SymExpr& expr, int64_t& value) const {
    const std::optional<int64_t> result = expr.evaluate(values_);
    if (!result)
      return fail(
          fmt::format("a size of the product, {}, exceeds 63 bits", to_string(expr, symbols_)));
    value = *result;
    return {};
  }

  llvm::ArrayRef<Symbol> symbols_;
  llvm::ArrayRef<int64_t> values_;
  int64_t m_ = 0, n_ = 0, k_ = 0;
  llvm::SmallVector<Loop, 2> loops_;
  Epilogue epilogue_;
  // Where c begins, and what of the residual stands there; null: no residual.
  std::pair<const std::byte*, const std::byte*> residual_;
};

}  // namespace

Status run_gemm(const GemmStep& step, const GemmBuffers& buffers, llvm::ArrayRef<Symbol> symbols,
                llvm::ArrayRef<int64_t> symbol_values) {
  return GemmRun(symbols, symbol_values).run(step, buffers);
}

}  // namespace sinter
