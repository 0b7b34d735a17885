// Operands' types against a signature.
#include "ir/custom_signature.h"

namespace sinter {

/// Operands' types against the patterns: what the variables and the leading axes are.
class CustomSignature::Match {
 public:
  Match(const CustomSignature& signature, llvm::ArrayRef<TensorType> operands,
        llvm::ArrayRef<Symbol> symbols)
      : signature_(signature),
        operands_(operands),
        symbols_(symbols),
        extents_(signature.variables_.size()) {}

  Result<TensorType> run() {
    const size_t wanted = signature_.operands_.size();
    if (operands_.size() != wanted)
      return fail(fmt::format("{} operands, the signature has {}", operands_.size(), wanted));
    for (size_t i = 0; i < wanted; ++i) SINTER_TRY(match(i));
    return result();
  }

 private:
  std::string show(DimsRef dims) const {
    return to_string(TensorType{DType::f32, Dims(dims)}, symbols_).substr(3);
  }
  std::string label(size_t i) const {
    return fmt::format("operand {} ({})", i, signature_.operands_[i].name);
  }
  tl::unexpected<Error> mismatch(size_t i, std::string_view why) const {
    return fail(fmt::format("{} has dims {}, the signature wants {}{}", label(i),
                            show(operands_[i].dims), signature_.operands_[i].text, why));
  }

  Status match(size_t i) {
    const Pattern& pattern = signature_.operands_[i];
    const TensorType& type = operands_[i];
    const auto wrong_type = [&](const std::string& wanted) {
      return fail(fmt::format("{} has elements of {}, the signature wants {}", label(i),
                              to_string(type.dtype), wanted));
    };
    if (pattern.any_float && !is_float(type.dtype)) return wrong_type("a float type");
    if (pattern.dtype && type.dtype != *pattern.dtype)
      return wrong_type(std::string(to_string(*pattern.dtype)));
    if (pattern.same_as >= 0 && type.dtype != operands_[pattern.same_as].dtype)
      return wrong_type(fmt::format("{}, as {} has", to_string(operands_[pattern.same_as].dtype),
                                    label(static_cast<size_t>(pattern.same_as))));
    const size_t own = pattern.dims.size();
    if (type.rank() < own || (type.rank() > own && !pattern.has_leading)) return mismatch(i, "");
    const DimsRef leading = DimsRef(type.dims).drop_back(own),
                  dims = DimsRef(type.dims).take_back(own);
    if (pattern.has_leading) {
      if (leading_ && DimsRef(*leading_) != leading)
        return mismatch(i, fmt::format(" with ... = {}", show(*leading_)));
      leading_ = Dims(leading);
    }
    for (size_t k = 0; k < own; ++k) {
      const Extent& extent = pattern.dims[k];
      if (extent.variable < 0) {
        if (!dims[k].is(extent.times)) return mismatch(i, "");
        continue;
      }
      std::optional<Dim>& known = extents_[static_cast<size_t>(extent.variable)];
      if (known && *known != dims[k])
        return mismatch(i, fmt::format(" with {} = {}", signature_.variables_[extent.variable],
                                       to_string(*known, symbols_)));
      known = dims[k];
    }
    return {};
  }

  Result<TensorType> result() const {
    const Pattern& pattern = signature_.result_;
    TensorType type{pattern.dtype ? *pattern.dtype : operands_[pattern.same_as].dtype, {}};
    if (pattern.has_leading) type.dims = *leading_;
    for (const Extent& extent : pattern.dims) {
      SINTER_LET(dim, dim_of(extent));
      type.dims.push_back(dim);
    }
    return type;
  }

  Result<Dim> dim_of(const Extent& extent) const {
    if (extent.variable < 0) return Dim(extent.times);
    const Dim dim = *extents_[static_cast<size_t>(extent.variable)];
    if (extent.times == 1 && extent.over == 1) return dim;
    const std::string wanted =
        fmt::format("{} with {} = {}", signature_.result_.text,
                    signature_.variables_[extent.variable], to_string(dim, symbols_));
    if (!dim.is_constant())
      return fail(fmt::format("the result {} is computed of a symbol", wanted), {},
                  "only constant dims can be multiplied or divided");
    int64_t product = 0;
    if (__builtin_mul_overflow(dim.constant(), extent.times, &product) || product > kMaxExtent)
      return fail(fmt::format("the result {} exceeds 2^48", wanted));
    if (product % extent.over != 0)
      return fail(fmt::format("the result {} does not divide", wanted));
    return Dim(product / extent.over);
  }

  const CustomSignature& signature_;
  llvm::ArrayRef<TensorType> operands_;
  llvm::ArrayRef<Symbol> symbols_;
  std::vector<std::optional<Dim>> extents_;  // by variable
  std::optional<Dims> leading_;
};

Result<TensorType> CustomSignature::result_of(llvm::ArrayRef<TensorType> operands,
                                              llvm::ArrayRef<Symbol> symbols) const {
  return Match(*this, operands, symbols).run();
}

}  // namespace sinter
