// The functions that the formulas of ops.def name, in float64: for accuracy checks.
#pragma once

#include <cmath>
#include <limits>

namespace sinter::precise {

inline double neg(double a) { return -a; }
inline double abs(double a) { return std::fabs(a); }
inline double exp(double a) { return std::exp(a); }
inline double exp_neg_abs(double a) { return std::exp(-std::fabs(a)); }
inline double sigmoid(double a) { return 1.0 / (1.0 + std::exp(-a)); }
inline double expm1(double a) { return std::expm1(a); }
inline double log1p(double a) { return std::log1p(a); }
inline double floor(double a) { return std::floor(a); }
inline double round(double a) { return std::nearbyint(a); }
inline double pow(double a, double b) { return std::pow(a, b); }
inline double log(double a) { return std::log(a); }
inline double sqrt(double a) { return std::sqrt(a); }
inline double rsqrt(double a) { return 1.0 / std::sqrt(a); }
inline double tanh(double a) { return std::tanh(a); }
inline double erf(double a) { return std::erf(a); }
inline double sin(double a) { return std::sin(a); }
inline double cos(double a) { return std::cos(a); }
inline double atan(double a) { return std::atan(a); }
inline double add(double a, double b) { return a + b; }
inline double sub(double a, double b) { return a - b; }
inline double mul(double a, double b) { return a * b; }
inline double div(double a, double b) { return a / b; }

inline double maximum(double a, double b) {
  if (a != a || b != b) return std::numeric_limits<double>::quiet_NaN();
  if (a == b) return std::signbit(a) ? b : a;
  return a < b ? b : a;
}
inline double minimum(double a, double b) { return -maximum(-a, -b); }

}  // namespace sinter::precise
