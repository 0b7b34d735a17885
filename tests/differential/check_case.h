// One random module through the compiler: its fused plan computes what the unfused one does.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "differential/contraction_bound.h"
#include "differential/random_tensors.h"
#include "driver/compile/compile.h"
#include "ir/fault.h"
#include "shim/kernel_shim.h"

namespace sinter {

/// Counts of the contractions and elements that were compared with float64 in all calls.
struct SourceCheck {
  int64_t contractions = 0;
  BoundedElements elements;
};

/// A case whose plans agree on the host, with what its kernels need to be run from their text.
struct CheckedCase {
  std::shared_ptr<const Program> fused;
  std::vector<int64_t> symbol_values;
  /// A kernel step of the fused plan in the last call: its inputs as they were before it ran.
  struct Launch {
    uint32_t kernel;
    std::vector<HostTensor> inputs;
  };
  std::vector<Launch> launches;
  std::optional<SourceCheck> source;  // none in fast numerics
  std::vector<std::string> verdicts;  // reason ids of the fused plan's ledger
  bool ended_outside = false;  // by a row number that the module computes; nothing more compared
};

/// Compiles a case with and without fusion and runs both plans on the host in two calls, so that
/// the second finds states that the first left; some modules with states have a second entry, whose
/// ops stand in another order, and the second call is one of it. All outputs and states must be
/// equal bit for bit. So must the evaluation of the module itself (source_module.h), whose
/// contractions are compared with float64; sums down columns too, where block_sums acted. A call
/// that ends with a row number outside ends so in both plans, and leaves the same states. In half
/// of the cases, by `data_seed`, passes run in another order first. Where `fault` is given (test
/// builds with planted faults only), it is on in the passes and while the fused plan is made.
/// `fast`: the fused plan has fast numerics; it is run, and nothing compared. With `keep_launches`
/// the inputs of every kernel are kept.
Result<CheckedCase> check_plans(const Case& test, uint64_t data_seed, bool keep_launches,
                                std::optional<Fault> fault = {},
                                Numerics numerics = Numerics::strict);

/// Runs the kernels of checked cases from their text, which is compiled in one go; `report` gets
/// the number of a case and how its kernels did, and is told before a case's kernels run.
void check_kernels(llvm::ArrayRef<CheckedCase> cases, const std::function<void(size_t)>& before,
                   const std::function<void(size_t, const Status&)>& report);

}  // namespace sinter
