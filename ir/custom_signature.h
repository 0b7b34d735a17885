// The shape rule of a caller's op; ir/custom_op.h describes its text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/types.h"

namespace sinter {

class CustomSignature {
 public:
  /// Names and variables of the result must stand in an operand.
  static Result<CustomSignature> parse(std::string_view text);

  /// The result's type for operands of these types, or which dim or type does not fit.
  Result<TensorType> result_of(llvm::ArrayRef<TensorType> operands,
                               llvm::ArrayRef<Symbol> symbols) const;
  size_t operand_count() const { return operands_.size(); }

 private:
  friend class CustomSignatureParser;
  static constexpr int64_t kMaxExtent = int64_t{1} << 48;

  /// times * variable / over, or the number `times` where there is no variable.
  struct Extent {
    int variable = -1;  // index into variables_
    int64_t times = 1, over = 1;
  };
  struct Pattern {
    std::string name;
    std::optional<DType> dtype;
    int same_as = -1;  // the operand whose element type it has
    bool any_float = false;
    bool has_leading = false;  // begins with `...`
    std::vector<Extent> dims;
    std::string text;  // "[..., D]"
  };
  class Match;

  std::vector<Pattern> operands_;
  Pattern result_;
  std::vector<std::string> variables_;
};

/// The rule of a registered op; null: none is registered. Stays valid. Thread-safe.
const CustomSignature* find_custom_signature(std::string_view name);

}  // namespace sinter
