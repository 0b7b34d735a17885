// The reader of signatures: one pass over the text.
#include <llvm/ADT/STLExtras.h>

#include "ir/characters.h"
#include "ir/custom_op.h"
#include "ir/custom_signature.h"

namespace sinter {
namespace {

constexpr size_t kMaxOperands = 8;

}  // namespace

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
  static constexpr int64_t kMaxExtent = CustomSignature::kMaxExtent;

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
      return expected(is_operand
                          ? "f32, f16, bf16, i32, i64, i1, float or an earlier operand's name"
                          : "f32, f16, bf16, i32, i64, i1 or an operand's name");
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

}  // namespace sinter
