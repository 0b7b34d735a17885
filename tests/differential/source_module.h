// A module as it was generated, before any pass, evaluated op by op.
//
// Passes may merge contractions (linear, einsum, attention) and choose another order for their
// sums; every other op has one value, bit for bit, but for sums down columns that the pass
// block_sums may reorder: they count as contractions. Contractions are given the values that a plan
// computed, and are compared one by one with float64 on the operands that they have here
// (contraction_bound.h). Everything else follows from them bit for bit: roundings of one op never
// reach the comparison of another, and no comparison or choice of a token after them can go the
// other way by luck.
#pragma once

#include <map>

#include "differential/contraction_bound.h"
#include "differential/random_tensors.h"

namespace sinter {

/// A module whose entry also returns its contractions, in this order, after its own results. Those
/// that nothing needs are left out: the passes remove them.
struct ObservedModule {
  Module module;
  std::vector<ValueId> contractions;
};
/// `with_sums`: with the sums that block_sums may reorder.
ObservedModule observe_contractions(const Module& module, bool with_sums);

class SourceModule {
 public:
  /// `contractions`: ops whose values are given. `test` and `data` outlive this; the weights are
  /// made of the data's files.
  SourceModule(const Case& test, const CaseData& data, llvm::ArrayRef<ValueId> contractions);

  /// The results of a call. Fails where a contraction's value is not its own; adds the elements
  /// that were compared with float64 to `elements`.
  Result<std::vector<HostTensor>> call(llvm::ArrayRef<HostTensor> inputs,
                                       llvm::ArrayRef<HostTensor> contractions,
                                       BoundedElements& elements);

  /// The states that the entry uses, as calls left them, by name; zeros at first.
  const std::map<std::string, HostTensor>& states() const { return states_; }

 private:
  Result<HostTensor> leaf(const Op& op);
  bool is_dead_attention(ValueId id) const;

  const Case& test_;
  const Graph& entry_;
  CaseFiles files_;
  std::vector<ValueId> contractions_;
  Graph graph_;  // weights, states and contractions are inputs after the entry's own
  std::vector<std::string> state_results_;  // of the results after the entry's own
  std::map<std::string, HostTensor> states_;
};

}  // namespace sinter
