// The reads of an op and the axes over which it runs, derived from its meaning in primitives. The
// fusion engine knows ops by these facts alone.
#pragma once

#include "ir/column_space.h"
#include "ir/index_map.h"

namespace sinter {

/// The elements of a part of a concat: begin <= (variable - shift) mod modulus < end, where
/// variable >= shift.
struct LoopRange {
  uint32_t variable;  // of the loop
  int64_t modulus;    // the variable's extent in the part's loop, or a divisor of it
  int64_t begin, end;
  int64_t shift = 0;

  bool holds(int64_t at) const {
    return at >= shift && (at - shift) % modulus >= begin && (at - shift) % modulus < end;
  }
};

/// One read of a value that an op makes.
struct Read {
  ValueId root;         // the value in memory, through all views
  IndexMap coords;      // in the loop variables of `space`
  Dims space;           // extents of the loop variables: the op's dims, or a reduction's operand
  bool loaded = false;  // the place depends on another operand's value: coords is not valid
  /// Only elements of all these parts read; even of them some may not.
  llvm::SmallVector<LoopRange, 0> only = {};
};

struct OpFacts {
  /// Extents of the loop over the op's elements: its dims, or the dims of the rows that it writes
  /// into a state.
  Dims dims;
  /// Without repetition. A contraction or an anchor has one for each operand, in order: role `row`
  /// by coordinates, the others as loaded.
  llvm::SmallVector<Read, 0> reads;
  bool reduces = false;
  bool sums_runs = false;  // run_sums: `dims` and its reads' dims are the operands' dims
  /// reduces: the number of leading axes that are kept. Absent: the reduced axes are not the
  /// trailing ones.
  std::optional<uint32_t> kept_axes;
  /// The space of an op that is one reduction, if the reduced axes are followed by kept ones.
  std::optional<ColumnSpace> columns;
  int64_t reduced_upper_bound = 0;  // elements of the longest reduction

  /// Extents of the loop that a kernel walks: a reduction written in primitives leaves one element
  /// and walks its operand.
  DimsRef walked() const { return reduces && !reads.empty() ? reads[0].space : dims; }
};

OpFacts op_facts(const Graph& graph, ValueId id, llvm::ArrayRef<Symbol> symbols);
/// The same of a value, with everything that it is computed from, in a graph of primitives: reads
/// are of the graph's inputs, each in a loop over as many elements in the same order.
OpFacts value_facts(const Graph& primitives, ValueId id, llvm::ArrayRef<Symbol> symbols);

}  // namespace sinter
