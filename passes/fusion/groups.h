// The groups of the fusion engine while they grow.
#pragma once

#include "passes/fusion/decision.h"
#include "passes/fusion/quotient_dag.h"

namespace sinter {

/// A group is named by one of its ops, its representative. At first every computing op is a group.
class Groups {
 public:
  explicit Groups(const FusionProblem& problem);

  uint32_t find(ValueId id) const { return dag_.find(id); }
  Members members(uint32_t group) const { return dag_.members(group); }
  const GroupShape& shape(uint32_t group) const { return shapes_[group]; }
  const QuotientDag& dag() const { return dag_; }
  int64_t merges() const { return merges_; }

  /// Joins the groups of an accepted decision, the last one made: nothing has merged since.
  void merge(const Decision& decision);
  /// The groups in an order in which they can run.
  Grouping grouping(const FusionProblem& problem) const;

 private:
  QuotientDag dag_;
  std::vector<GroupShape> shapes_;  // by representative
  int64_t merges_ = 0;
};

}  // namespace sinter
