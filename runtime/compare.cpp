#include "runtime/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/evaluate/host_view.h"

namespace sinter {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Status same_type(const HostTensor& a, const HostTensor& b) {
  if (a.dtype == b.dtype && a.dims == b.dims) return {};
  return fail(fmt::format("a tensor {}[{}] cannot be compared with {}[{}]", to_string(a.dtype),
                          fmt::join(a.dims, ", "), to_string(b.dtype), fmt::join(b.dims, ", ")));
}

Status same_volume(const HostTensor& tensor, std::span<const double> reference) {
  if (tensor.volume() == static_cast<int64_t>(reference.size())) return {};
  return fail(fmt::format("a tensor of {} elements cannot be compared with {} reference values",
                          tensor.volume(), reference.size()));
}

uint64_t bits_at(const HostTensor& tensor, int64_t index) {
  const auto width = static_cast<size_t>(whole_bytes(tensor.dtype));
  uint64_t bits = 0;
  std::memcpy(&bits, tensor.bytes.data() + static_cast<size_t>(index) * width, width);
  return bits;
}

/// The bit of a type that says that a number is negative.
uint64_t sign_bit(DType dtype) { return uint64_t{1} << (dtype_info(dtype).bits - 1); }

/// All ones in the exponent and a fraction.
bool is_nan(uint64_t bits, DType dtype) {
  if (!is_float(dtype)) return false;
  const uint64_t magnitude = sign_bit(dtype) - 1;
  const uint64_t fraction = (uint64_t{1} << (dtype_info(dtype).digits - 1)) - 1;
  return (bits & magnitude) > (magnitude & ~fraction);
}

// Position among the type's values in ascending order; both zeros stand at 0.
int64_t position(uint64_t bits, DType dtype) {
  if (dtype == DType::i32) return static_cast<int32_t>(bits);
  if (!is_float(dtype)) return static_cast<int64_t>(bits);
  const uint64_t sign = sign_bit(dtype);
  const auto magnitude = static_cast<int64_t>(bits & (sign - 1));
  return bits & sign ? -magnitude : magnitude;
}

double absolute_error(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double error = std::abs(a - b);
  return std::isnan(error) ? kInfinity : error;
}

}  // namespace

std::vector<double> to_doubles(const HostTensor& tensor) {
  const int64_t count = tensor.volume();
  std::vector<double> values(static_cast<size_t>(count));
  if (is_float(tensor.dtype)) {
    load_run<double>(storage_of(tensor.dtype), tensor.bytes.data(), 1, count, values.data());
    return values;
  }
  for (int64_t i = 0; i < count; ++i)
    values[static_cast<size_t>(i)] =
        static_cast<double>(position(bits_at(tensor, i), tensor.dtype));
  return values;
}

Result<std::optional<BitDifference>> compare_bits(const HostTensor& a, const HostTensor& b) {
  SINTER_TRY(same_type(a, b));
  if (a.bytes == b.bytes) return std::nullopt;
  BitDifference difference;
  difference.volume = a.volume();
  for (int64_t i = 0; i < difference.volume; ++i) {
    const uint64_t x = bits_at(a, i), y = bits_at(b, i);
    if (x == y || (is_nan(x, a.dtype) && is_nan(y, b.dtype))) continue;
    if (difference.count++ > 0) continue;
    difference.index = i;
    difference.a_bits = x;
    difference.b_bits = y;
  }
  if (difference.count == 0) return std::nullopt;
  const auto value = [&](const HostTensor& tensor) {
    const auto width = static_cast<size_t>(whole_bytes(tensor.dtype));
    HostTensor one{tensor.dtype, {}, {}};
    const std::byte* at = tensor.bytes.data() + static_cast<size_t>(difference.index) * width;
    one.bytes.assign(at, at + width);
    return to_doubles(one)[0];
  };
  difference.a = value(a);
  difference.b = value(b);
  return difference;
}

std::string to_string(const BitDifference& d) {
  return fmt::format("{} of {} elements differ, first {}: {} (0x{:x}) and {} (0x{:x})", d.count,
                     d.volume, d.index, d.a, d.a_bits, d.b, d.b_bits);
}

Result<Distance> distance(const HostTensor& a, const HostTensor& b) {
  SINTER_TRY(same_type(a, b));
  const std::vector<double> x = to_doubles(a), y = to_doubles(b);
  Distance result;
  for (size_t i = 0; i < x.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    const double error = absolute_error(x[i], y[i]);
    if (error > result.max_abs) {
      result.max_abs = error;
      result.max_abs_index = index;
    }
    if (error == 0) continue;
    const double ulps = std::isfinite(error)
                            ? std::abs(static_cast<double>(position(bits_at(a, index), a.dtype) -
                                                           position(bits_at(b, index), b.dtype)))
                            : kInfinity;
    if (ulps > result.max_ulp) {
      result.max_ulp = ulps;
      result.max_ulp_index = index;
    }
  }
  return result;
}

Result<Accuracy> accuracy(const HostTensor& tensor, std::span<const double> reference) {
  SINTER_TRY(same_volume(tensor, reference));
  const std::vector<double> values = to_doubles(tensor);
  Accuracy result;
  double squares = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double error = absolute_error(values[i], reference[i]);
    squares += error * error;
    if (error > result.max) {
      result.max = error;
      result.max_index = static_cast<int64_t>(i);
    }
  }
  if (!values.empty()) result.rms = std::sqrt(squares / static_cast<double>(values.size()));
  return result;
}

double unit_roundoff(DType dtype) {
  return is_float(dtype) ? std::ldexp(1.0, -dtype_info(dtype).digits) : 0;
}

Tolerance tolerance(DType dtype, int64_t reduction_length) {
  const double u = unit_roundoff(dtype);
  const double steps = std::sqrt(static_cast<double>(std::max<int64_t>(reduction_length, 1)));
  return {4 * u, 4 * u + (u > 0 ? 0x1p-24 * steps : 0)};
}

Result<std::optional<Excess>> exceeds(const HostTensor& tensor, std::span<const double> reference,
                                      const Tolerance& tolerance) {
  SINTER_TRY(same_volume(tensor, reference));
  double scale = 0;
  for (double r : reference)
    if (std::isfinite(r)) scale = std::max(scale, std::abs(r));
  const std::vector<double> values = to_doubles(tensor);
  Excess result;
  double worst = -1;
  for (size_t i = 0; i < values.size(); ++i) {
    const double error = absolute_error(values[i], reference[i]);
    const double size = std::isfinite(reference[i]) ? std::abs(reference[i]) : 0;
    const double allowed = tolerance.relative * size + tolerance.absolute * scale;
    if (error <= allowed) continue;
    ++result.count;
    if (error - allowed > worst) {
      worst = error - allowed;
      result.index = static_cast<int64_t>(i);
      result.value = values[i];
      result.reference = reference[i];
      result.allowed = allowed;
    }
  }
  if (result.count == 0) return std::nullopt;
  return result;
}

}  // namespace sinter
