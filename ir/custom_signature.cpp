#include "ir/custom_signature.h"

#include <llvm/ADT/STLExtras.h>

#include "ir/custom_op.h"
#include "ir/sym_expr.h"

namespace sinter {
namespace {

constexpr size_t kMaxOperands = 8;
constexpr int64_t kMaxExtent = int64_t{1} << 48;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

/// One pass over the text.
class CustomSignatureParser {
 public:
  explicit CustomSignatureParser(std::string_view text) : text_(text) {}

  Result<CustomSignature> run() {
    do SINTER_TRY(operand());
    while (accept(","));
    if (!accept("->")) return expected("',' or '->'");
    SINTER_TRY(type(signature_.result_, false));
    if (at_ != text_.size()) return expected("the end");
    return std::move(signature_);
  }

 private:
  using Pattern = CustomSignature::Pattern;
  using Extent = CustomSignature::Extent;

  tl::unexpected<Error> error(std::string what, size_t at) const {
    return fail(std::move(what), fmt::format("signature, character {}", at + 1),
                "write it like \"x: float[..., D], w: x[D] -> x[..., D]\"");
  }
  tl::unexpected<Error> expected(std::string_view what) const {
    const std::string_view rest = text_.substr(at_, 20);
    return error(fmt::format("expected {}, got {}", what,
                             rest.empty() ? "the end" : fmt::format("'{}'", printable(rest))),
                 at_);
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    skip();
    return true;
  }
  std::string word() {
    skip();
    size_t end = at_;
    while (end < text_.size() && (is_letter(text_[end]) || (end > at_ && is_digit(text_[end]))))
      ++end;
    std::string found(text_.substr(at_, end - at_));
    at_ = end;
    skip();
    return found;
  }
  bool at_number() const { return at_ < text_.size() && is_digit(text_[at_]); }
  Result<int64_t> number() {
    const size_t begin = at_;
    int64_t value = 0;
    for (; at_number() && value <= kMaxExtent; ++at_) value = value * 10 + (text_[at_] - '0');
    if (value > kMaxExtent) return error("a number exceeds 2^48", begin);
    skip();
    return value;
  }

  Status operand() {
    skip();
    const size_t begin = at_;
    Pattern pattern;
    pattern.name = word();
    if (pattern.name.empty()) return expected("an operand's name");
    if (pattern.name == "float" || parse_dtype(pattern.name))
      return error(fmt::format("operand {} has the name of a type", pattern.name), begin);
    if (find(pattern.name) >= 0)
      return error(fmt::format("two operands are named {}", pattern.name), begin);
    if (signature_.operands_.size() == kMaxOperands)
      return error(fmt::format("more than {} operands", kMaxOperands), begin);
    if (!accept(":")) return expected("':'");
    SINTER_TRY(type(pattern, true));
    signature_.operands_.push_back(std::move(pattern));
    return {};
  }

  int find(std::string_view name) const {
    const auto at = llvm::find_if(signature_.operands_,
                                  [&](const Pattern& known) { return known.name == name; });
    return at == signature_.operands_.end() ? -1
                                            : static_cast<int>(at - signature_.operands_.begin());
  }

  Status type(Pattern& pattern, bool is_operand) {
    skip();
    const size_t begin = at_;
    const std::string name = word();
    pattern.dtype = parse_dtype(name);
    pattern.same_as = find(name);
    pattern.any_float = name == "float";
    if (!pattern.dtype && pattern.same_as < 0 && !(pattern.any_float && is_operand)) {
      at_ = begin;
      return expected(is_operand ? "f32, f16, bf16, i32, i1, float or an earlier operand's name"
                                 : "f32, f16, bf16, i32, i1 or an operand's name");
    }
    const size_t dims = at_;
    if (!accept("[")) return expected("'['");
    while (!accept("]")) {
      const bool first = pattern.dims.empty() && !pattern.has_leading;
      if (!first && !accept(",")) return expected("',' or ']'");
      if (accept("...")) {
        if (!first) return error("'...' stands at the front of the dims alone", at_ - 3);
        const bool known =
            llvm::any_of(signature_.operands_, [](const Pattern& one) { return one.has_leading; });
        if (!is_operand && !known) return error("no operand has '...'", dims);
        pattern.has_leading = true;
        continue;
      }
      SINTER_LET(extent, this->extent(is_operand));
      pattern.dims.push_back(extent);
      if (pattern.dims.size() > kMaxCustomRank)
        return error(fmt::format("more than {} dims", kMaxCustomRank), dims);
    }
    const size_t end = text_.find(']', dims);
    pattern.text = std::string(text_.substr(dims, end + 1 - dims));
    return {};
  }

  Result<Extent> extent(bool is_operand) {
    Extent extent;
    skip();
    if (at_number()) {
      SINTER_LET(times, number());
      extent.times = times;
      if (is_operand || !accept("*")) return extent;
    }
    const size_t begin = at_;
    const std::string name = word();
    if (name.empty()) return expected("a number or a variable");
    auto at = llvm::find(signature_.variables_, name);
    if (at == signature_.variables_.end() && !is_operand)
      return error(fmt::format("no operand has the dim {}", name), begin);
    extent.variable = static_cast<int>(at - signature_.variables_.begin());
    if (at == signature_.variables_.end()) signature_.variables_.push_back(name);
    if (!is_operand && accept("/")) {
      const size_t divisor = at_;
      SINTER_LET(over, number());
      if (over == 0) return error("expected a number above 0 to divide by", divisor);
      extent.over = over;
    }
    return extent;
  }

  std::string_view text_;
  size_t at_ = 0;
  CustomSignature signature_;
};

Result<CustomSignature> CustomSignature::parse(std::string_view text) {
  return CustomSignatureParser(text).run();
}

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
