// A plan's GEMM step with concrete sizes and addresses: one matrix product, at one or more places.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "plan/program.h"
#include "runtime/cuda/driver.h"

namespace sinter {

/// An extent of a product: A is m x k, B is k x n.
enum class GemmExtent : uint8_t { none, m, n, k };

/// A matrix product as an executor runs it: C[m, n] = round(activation(A[m, k] B[k, n] + bias[n] +
/// residual[m, n])) in `batch` copies, accumulated in float32. Strides are in elements and at least
/// 0.
///
/// make_gemm_calls makes it canonical, so that equal work has equal decisions: an extent of 1 has a
/// dense matrix's stride if the other stride is 1, else stride 1; the batch strides of one copy are
/// 0.
struct GemmProblem {
  struct Operand {
    DType dtype = DType::f32;
    int64_t row_stride = 1, column_stride = 1;
    int64_t batch_stride = 0;  // 0: shared by all copies
    int64_t alignment = 1;     // bytes, see kMaxAlignment; divides the address of every copy
    friend auto operator<=>(const Operand&, const Operand&) = default;
  };
  struct Bias {
    DType dtype = DType::f32;
    int64_t alignment = 1;  // bytes
    friend auto operator<=>(const Bias&, const Bias&) = default;
  };
  int64_t m = 0, n = 0, k = 0, batch = 1;
  Operand a, b, c;
  std::optional<Bias> bias;         // n elements, dense
  std::optional<int64_t> residual;  // its alignment in bytes; type and strides are C's
  Activation activation = Activation::none;
  /// The extent that the step leaves open, as a prefill its tokens, if one decision is for a class
  /// of its lengths (length_class.h); none: for these extents alone.
  GemmExtent open = GemmExtent::none;
  /// GemmStep::ascending: by the strided kernel, whatever a record says.
  bool ascending = false;

  /// "2x1x4096x64 A f16 4096,1,64@16 B ...": batch x m x n x k, then dtype, strides of row,
  /// column and copy, and alignment of each operand. A key of the record.
  std::string key() const;
  /// The key of the decision for its class: longest()'s key with the class instead of the open
  /// extent, "1x1793..2048x4096x4096 A ...". Without an open extent the same as key().
  std::string class_key() const;
  /// The product of the class's longest length, at which the class is decided.
  GemmProblem longest() const;
  /// Elements from an operand's first to its last, with all copies; 0 where it has none.
  int64_t span_a() const { return span(a, m, k); }
  int64_t span_b() const { return span(b, k, n); }
  int64_t span_c() const { return span(c, m, n); }

  friend auto operator<=>(const GemmProblem&, const GemmProblem&) = default;

 private:
  std::string key(const std::array<std::string, 3>& extents) const;
  int64_t span(const Operand& operand, int64_t rows, int64_t columns) const;
};

/// Alignments are powers of two up to this many bytes: the widest access of one thread and the
/// alignment that bulk copies ask for. A finer distinction would part problems that run alike: on
/// an H200, cuBLASLt 13.1 proposes the same algorithms at 256 as at 16 for 126 products of 1 to
/// 2048 tokens.
inline constexpr int64_t kMaxAlignment = 16;

/// Products of so few rows, and those with a residual, may round a sum in f16 or bf16 once before
/// its epilogue and once after: cuBLASLt does where it splits k, and with a residual now and then
/// without (13.1, bf16, k of 2 to 49). With few rows, splitting is worth it; a residual is there in
/// fast numerics alone, whose unfused plan rounds as often.
inline constexpr int64_t kFewRows = 8;
inline bool has_epilogue(const GemmProblem& problem) {
  return problem.bias || problem.residual || problem.activation != Activation::none;
}
inline bool sums_may_round_twice(const GemmProblem& problem) {
  return problem.c.dtype != DType::f32 &&
         (problem.residual || (has_epilogue(problem) && problem.m <= kFewRows));
}

/// Memory that a step may use while it runs.
struct FreeMemory {
  CudaAddress address = 0;
  size_t bytes = 0;
};

/// The buffers of a GEMM step: where they begin and their element types.
struct GemmOperands {
  struct Operand {
    CudaAddress address = 0;
    DType dtype = DType::f32;
  };
  Operand a, b, c;
  std::optional<Operand> bias;
  CudaAddress residual = 0;  // 0: none
  FreeMemory free = {};      // an algorithm works in it if that is enough
};

/// Where a product's operands stand, the first copy's first elements.
struct GemmPlace {
  CudaAddress a = 0, b = 0, c = 0;
  CudaAddress bias = 0, residual = 0;  // 0: none
};

/// A step's work: `problem`, once at each of `places`; none where the result is empty.
struct GemmCalls {
  GemmProblem problem;
  llvm::SmallVector<GemmPlace, 1> places;
};

/// The step's loop with the most rounds becomes the problem's batch; the others repeat it. One of
/// m, n and k is open if it alone has symbols: all strides and the loops have none, and its length
/// shares a class with others. So an attention that is composed of products, in which queries and
/// keys have lengths of their own, has none. Errors:
/// a size beyond 63 bits, more than 65536 places.
Result<GemmCalls> make_gemm_calls(const GemmStep& step, const GemmOperands& operands,
                                  llvm::ArrayRef<Symbol> symbols,
                                  llvm::ArrayRef<int64_t> symbol_values);

}  // namespace sinter
