// The time of a plan in which kernels that fusion kept apart were one: what a refusal costs.
#pragma once

#include "passes/fusion/fusion_costs.h"

namespace sinter {

class JoinedCosts {
 public:
  /// Keeps references to both; `costs` belong to `fusion`.
  JoinedCosts(const Fusion& fusion, const FusionCosts& costs);

  /// The time of the group of the grouping, as FusionCosts::seconds() gives it.
  double seconds(uint32_t group) const { return kernels_[group].seconds; }
  /// The time of one launch that replaces the groups' launches. By the cost model's formula
  /// (kernels/cost.h) it moves each element once, at the rate of the widest of the kernels, and
  /// does the operations of all. Whether such a kernel can be built is not asked. A single group:
  /// seconds().
  double seconds(llvm::ArrayRef<uint32_t> groups) const;
  /// The traffic of that launch.
  Bytes bytes(llvm::ArrayRef<uint32_t> groups) const;

 private:
  struct Kernel {
    double seconds = 0;     // by its family
    double blocks = 0;      // of rows: a block of products counts as two (product_cost)
    double operations = 0;  // in seconds at the device's rates
    double beyond = 0;      // seconds that its family counts beside bytes and operations
  };
  double formula(double blocks, const Moved& moved, double operations) const;
  std::vector<ValueId> members(llvm::ArrayRef<uint32_t> groups) const;

  const Fusion& fusion_;
  const FusionCosts& costs_;
  std::vector<Kernel> kernels_;  // by group
};

}  // namespace sinter
