// The text of an attention's operands in memory, in the structs of
// kernels/common/attention_operands.cuh.
#pragma once

#include <string>

#include "codegen/emission/config_text.h"
#include "codegen/emission/emit_context.h"
#include "ir/attention_operands.h"

namespace sinter {

/// For the anchor of a group. A function that fails was asked for an operand that the family does
/// not address.
class AttentionText {
 public:
  explicit AttentionText(const EmitContext& context)
      : context_(context), op_(context.anchor_op()) {}

  /// "x0 + 64, 4096ll": the queries of the first token, and the step to the next token's queries.
  Result<std::string> queries();
  /// AttentionRows of keys or values (operand 1 or 2); of a gradient, of queries and `grad` too.
  Result<std::string> rows(size_t operand);
  /// The mask with the seed of the dropout, of type mask_type().
  Result<std::string> mask() const;
  std::string mask_type() const;
  /// Adds the types First, Last and Mask: the ports of operands 3 and 4, and the mask.
  void add_types(ConfigText& config) const;
  bool adds_mask() const;
  /// The operands that were asked for begin and continue at multiples of 8 elements.
  bool aligned() const { return aligned_; }
  std::string size(const SymExpr& expression) const;

 private:
  Result<std::string> mask_alone() const;
  std::string mask_type_alone() const;
  /// The mask, or the summary of its tiles, as a MaskInMemory.
  Result<std::string> steps(size_t operand) const;
  /// The op has a summary of its mask's tiles.
  bool has_tiles() const;
  /// The MaskRows of the mask.
  std::string_view mask_rows() const;
  std::string first_element(size_t operand, const SymExpr& offset) const;
  void note_alignment(llvm::ArrayRef<SymExpr> places);

  const EmitContext& context_;
  const Op& op_;
  bool aligned_ = true;
};

/// Adds the constants kHeads, kKvHeads, kWidth and kValueWidth.
void add_heads(const AttentionHeads& heads, ConfigText& config);
/// Adds the constant kSink, where the attention has a sink.
void add_sink(const Op& attention, ConfigText& config);

}  // namespace sinter
