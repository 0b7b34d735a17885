// The memory traffic of a plan's steps.
#pragma once

#include "ir/traffic.h"
#include "plan/program.h"

namespace sinter {

/// Bytes that steps read and write at given values of the symbols: every element of a buffer that a
/// step reads, and every one that it writes, once. Rows that a gather or an append leaves alone do
/// not count; of a cache that attention reads, all rows do.
class StepTraffic {
 public:
  /// `symbol_values`: in the symbols' ranges.
  StepTraffic(const Program& program, llvm::ArrayRef<int64_t> symbol_values);

  /// The bytes that a step of an entry of the program reads and writes.
  Bytes of(const EntryPlan& entry, const Step& step) const;

 private:
  Bytes of_call(const EntryPlan& entry, const GemmStep& gemm) const;
  double value(const SymExpr& expression) const;

  std::vector<int64_t> values_;
  std::vector<Bytes> kernels_;  // of a launch of each kernel of the program
};

}  // namespace sinter
