// The bytes and operations that a step of a plan needs at least, for concrete sizes.
#pragma once

#include "plan/step_traffic.h"

namespace sinter {

struct StepCost {
  double read_bytes = 0, written_bytes = 0;
  double flops = 0;  // of contractions and attention: other arithmetic is small beside its bytes
  double bytes() const { return read_bytes + written_bytes; }
};

/// The rows of a cache that a call's tokens see: `each` in each of the sequences, or the window if
/// that is smaller.
struct VisibleRows {
  int64_t each = INT64_MAX;
  int64_t sequences = 1;
};

/// The traffic of steps at these symbol values, and what they compute. Of a cache that attention
/// reads, only the visible rows count.
class StepCosts {
 public:
  /// Keeps a reference to the program.
  StepCosts(const Program& program, llvm::ArrayRef<int64_t> sizes, VisibleRows visible);
  StepCost of(const EntryPlan& entry, const Step& step) const;

 private:
  const Program& program_;
  std::vector<int64_t> sizes_;
  VisibleRows visible_;
  StepTraffic traffic_;
};

/// The name of a step in tables: a kernel's name; "gemm 1x4096x4096 bf16" (m, n, k), with "32 of"
/// before it where the step repeats the product; "copy 4096 bf16" (elements).
std::string step_title(const Program& program, const EntryPlan& entry, const Step& step,
                       llvm::ArrayRef<int64_t> sizes);

}  // namespace sinter
