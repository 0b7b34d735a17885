// Options that lift a refusal, as the fusion engine answers about the two kernels alone.
#pragma once

#include <optional>
#include <string_view>

#include "driver/compile/compile.h"
#include "passes/fusion/fusion_costs.h"

namespace sinter {

class OptionLifts {
 public:
  /// Keeps references to both. `costs`: of the entry's fusion.
  OptionLifts(const Compiled& compiled, size_t entry, const FusionCosts& costs);

  struct Lift {
    std::string_view option;  // "--products own"
    double seconds = 0;  // predicted for the two kernels, less for what the option makes of them
  };
  /// The option with which the engine puts `a` and `b`, of different groups, in one kernel; of
  /// several the one that saves most. nullopt: there is none.
  std::optional<Lift> lift(ValueId a, ValueId b, Reason reason) const;

 private:
  const Compiled& compiled_;
  const FusionCosts& costs_;
  const Entry& entry_;
  const Fusion& fusion_;
  std::vector<Symbol> symbols_;  // narrowed to the entry's range
};

}  // namespace sinter
