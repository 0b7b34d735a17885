// Values of a graph from terms of positions.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

#include "ir/builder.h"
#include "ir/position_terms.h"

namespace sinter {

/// Builds values of terms in another graph: their elements for all positions of `axes`, loop
/// variables of the reader, one axis each. An axis on which a term does not depend has the extent
/// 1; with `whole`, a term that is no constant has all extents.
class TermBuilder {
 public:
  /// `moved`: the value of the builder's graph that stands for one of the reader's graph.
  TermBuilder(Builder& builder, const PositionTerms& terms, llvm::ArrayRef<uint32_t> axes,
              llvm::function_ref<ValueId(ValueId)> moved, bool whole)
      : b_(builder), terms_(terms), axes_(axes), moved_(moved), whole_(whole) {}

  /// Elements in memory are read through views.
  static bool can_build(const PositionTerms& terms, const Term& term,
                        llvm::ArrayRef<uint32_t> axes);

  /// i32, or i64 where a sum may leave i32; elements of i64 are bounded by 2^40 on both sides.
  ValueId build(const Term& term);
  /// i1.
  ValueId build_truth(const Term& truth);

 private:
  bool is_i32(const Term& term) const;
  static bool is_view(const PositionTerms& terms, const TermNode& element,
                      llvm::ArrayRef<uint32_t> axes);
  ValueId build_sum(const Term& term);
  ValueId build_at_most_zero(const Term& x);
  ValueId build_node(uint32_t number_of_node);
  ValueId view(const TermNode& element);
  ValueId position(uint32_t variable);
  /// The extents of the loop variables on their axes, 1 on all others.
  Dims extents(llvm::ArrayRef<uint32_t> variables) const;
  ValueId number(int64_t value) { return b_.constant(static_cast<double>(value), dtype_); }

  Builder& b_;
  const PositionTerms& terms_;
  llvm::ArrayRef<uint32_t> axes_;
  llvm::function_ref<ValueId(ValueId)> moved_;
  bool whole_;
  DType dtype_ = DType::i64;  // of the integer that is being built
};

}  // namespace sinter
