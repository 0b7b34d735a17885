// How far two tensors are apart: bit for bit, in units of the last place, against float64.
#pragma once

#include <optional>
#include <span>

#include "runtime/evaluate/host_tensor.h"

namespace sinter {

/// Elements of different bits; NaNs are equal, -0 and +0 are not.
struct BitDifference {
  int64_t count = 0;
  int64_t volume = 0;
  int64_t index = 0;  // of the first, row-major
  double a = 0, b = 0;
  uint64_t a_bits = 0, b_bits = 0;
};
/// nullopt: none. Tensors of different types are an error.
Result<std::optional<BitDifference>> compare_bits(const HostTensor& a, const HostTensor& b);
/// "3 of 4096 elements differ, first 17: 1.5 (0x3fc00000) and 1.25 (0x3fa00000)".
std::string to_string(const BitDifference& difference);

/// Largest differences; infinite where just one of the elements is NaN or the infinities differ.
struct Distance {
  double max_abs = 0;
  int64_t max_abs_index = 0;
  double max_ulp =
      0;  // of the element type: representable values between the two, 1 for neighbours
  int64_t max_ulp_index = 0;
};
Result<Distance> distance(const HostTensor& a, const HostTensor& b);

/// Error of a float tensor against float64.
struct Accuracy {
  double rms = 0;
  double max = 0;
  int64_t max_index = 0;
};
Result<Accuracy> accuracy(const HostTensor& tensor, std::span<const double> reference);

/// The largest relative error of rounding to a float type; 0 for other types.
double unit_roundoff(DType dtype);

/// An element x may differ from its reference r by relative * |r| + absolute * s, s the largest
/// finite |r| of the tensor.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
};
/// The allowed error of a value of this type that is a sum of `reduction_length` products of values
/// of the type, accumulated in float32. With u the unit roundoff of the type, the result's and its
/// operands' roundings make 4u of r; where terms cancel, the operands' stay: 4u of s; and the
/// accumulation adds 2^-24 a step, in the random walk of its roundings.
Tolerance tolerance(DType dtype, int64_t reduction_length);

/// Elements beyond the tolerance, and the one that exceeds it most.
struct Excess {
  int64_t count = 0;
  int64_t index = 0;
  double value = 0, reference = 0, allowed = 0;
};
Result<std::optional<Excess>> exceeds(const HostTensor& tensor, std::span<const double> reference,
                                      const Tolerance& tolerance);

/// The elements as float64, exactly.
std::vector<double> to_doubles(const HostTensor& tensor);

}  // namespace sinter
