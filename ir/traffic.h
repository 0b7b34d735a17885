// The memory traffic of ops that are computed together.
#pragma once

#include <vector>

#include "ir/index_set.h"
#include "ir/op_facts.h"

namespace sinter {

struct Bytes {
  double read = 0, written = 0;

  double total() const { return read + written; }
  Bytes& operator+=(const Bytes& other) {
    read += other.read;
    written += other.written;
    return *this;
  }
};

/// The elements that an op reads, by the value in memory that they belong to.
struct Reached {
  ValueId root;
  IndexSet elements;
};

/// The traffic of sets of a graph's ops at given values of the symbols. An element that several ops
/// of a set read is read once. Of a table the rows that ids name count, each as often as it is
/// named; of a cache that attention reads, all rows; of a state that an op writes, the rows
/// written.
class Traffic {
 public:
  Traffic(const Graph& graph, llvm::ArrayRef<Symbol> symbols,
          llvm::ArrayRef<int64_t> symbol_values);
  /// The same with facts that are known, by value.
  Traffic(const Graph& graph, llvm::ArrayRef<OpFacts> facts, llvm::ArrayRef<int64_t> symbol_values);

  /// Bytes of what the ops read of values that none of them computes. `ops`: ascending.
  double read(llvm::ArrayRef<ValueId> ops) const;
  /// The same by value, in the order of the first reads.
  llvm::SmallVector<std::pair<ValueId, double>, 4> reads(llvm::ArrayRef<ValueId> ops) const;
  /// Bytes of a value, or of the rows that the op writes into a state.
  double written(ValueId op) const { return ops_[op.index].written; }

 private:
  struct OpTraffic {
    llvm::SmallVector<Reached, 2> reads;
    double written = 0;
    double element_bytes = 0;
  };
  void add(const Graph& graph, ValueId op, const OpFacts& facts,
           llvm::ArrayRef<int64_t> symbol_values);

  std::vector<OpTraffic> ops_;  // by value; only ops that compute have reads
};

}  // namespace sinter
