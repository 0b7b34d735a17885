// Random GEMM steps with their operands in host memory, and what they should give.
#pragma once

#include <functional>
#include <vector>

#include "differential/random.h"
#include "runtime/cuda/gemm_problem.h"
#include "support/float_types.h"

namespace sinter {

/// The choices that random_gemm_case may make.
struct GemmCaseLimits {
  bool any_stride = false;  // operands without a stride of 1, and of different types
  bool empty = false;       // extents of 0
  bool integers = false;    // elements are -2 .. 2: sums are exact in float32
  bool epilogues = false;   // residuals and activations
  int64_t most = 40;        // of m, n and k
};

/// A step over five buffers. Every operand has an offset, its axes (rows, columns, loops) in any
/// order of memory, and gaps.
struct GemmCase {
  struct Buffer {
    DType dtype = DType::f32;
    std::vector<std::byte> bytes;
  };
  GemmStep step;
  Buffer a, b, c, bias, residual;  // c is poisoned; the last two are empty where the step has none

  /// The step's operands with their buffers at these addresses.
  GemmOperands at(CudaAddress a, CudaAddress b, CudaAddress c, CudaAddress bias,
                  CudaAddress residual = kMaxAlignment) const;
  /// Gives the step a residual, random, and an activation.
  void add_epilogue(Random& random, bool with_residual, Activation activation,
                    bool integers = false);
  /// "16x8x3 ..", for messages.
  std::string text() const;

  /// One element of the result: where it stands in c, its terms a * b in the order of k, its bias
  /// and residual.
  struct Element {
    int64_t index = 0;
    llvm::ArrayRef<float> a, b;
    float bias = 0, residual = 0;
  };
  /// All elements, or every so manieth.
  void for_each(const std::function<void(const Element&)>& visit, int64_t every = 1) const;
};

/// A linear layer: A[m, k] and C[m, n] in row order, B[k, n] in column order, as weights stand.
GemmCase linear_gemm_case(Random& random, DType dtype, int64_t m, int64_t n, int64_t k, bool bias);

GemmCase random_gemm_case(Random& random, const GemmCaseLimits& limits);

/// Element `index` of a buffer as a number; the reverse rounds once.
double read_element(const GemmCase::Buffer& buffer, int64_t index);
void write_element(GemmCase::Buffer& buffer, int64_t index, float value);

}  // namespace sinter
