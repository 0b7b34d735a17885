#include "driver/verify/error_bound.h"

#include <llvm/ADT/STLExtras.h>

#include "runtime/compare.h"

namespace sinter {
namespace {

/// The distance of the type's values around x.
double ulp_at(DType dtype, double x) {
  const DTypeInfo& type = dtype_info(dtype);
  int exponent = type.least_exponent;
  if (x != 0 && std::isfinite(x)) exponent = std::max(exponent, std::ilogb(x));
  return std::ldexp(1.0, exponent - type.digits + 1);
}

/// Adds the tensor's errors; true where its largest is the largest so far.
Result<bool> add(ErrorSum& sum, const HostTensor& tensor, std::span<const double> reference,
                 Accuracy& own) {
  SINTER_LET(measured, accuracy(tensor, reference));
  own = measured;
  const auto elements = static_cast<int64_t>(reference.size());
  sum.squares += own.rms * own.rms * static_cast<double>(elements);
  sum.elements += elements;
  sum.maxima += own.max;
  ++sum.calls;
  const bool farthest = own.max >= sum.max;
  if (farthest) sum.max = own.max;
  return farthest;
}

}  // namespace

bool ErrorBound::holds() const {
  if (chooses) return std::isfinite(fused.squares) || !std::isfinite(unfused.squares);
  return fused.rms() <= kMaxRmsRatio * unfused.rms() &&
         fused.mean_max() <= kMaxMaxRatio * unfused.mean_max() + ulp;
}

Status add_errors(const std::string& value, const HostTensor& fused, const HostTensor& unfused,
                  const HostTensor& precise, std::vector<ErrorBound>& bounds) {
  auto bound = llvm::find_if(bounds, [&](const ErrorBound& other) { return other.value == value; });
  if (bound == bounds.end()) bound = bounds.insert(bound, {value, {}, {}, 0});
  const std::vector<double> reference = to_doubles(precise);
  Accuracy own;
  SINTER_LET(farthest, add(bound->fused, fused, reference, own));
  if (farthest && !reference.empty())
    bound->ulp = ulp_at(fused.dtype, reference[static_cast<size_t>(own.max_index)]);
  SINTER_TRY(add(bound->unfused, unfused, reference, own));
  return {};
}

}  // namespace sinter
