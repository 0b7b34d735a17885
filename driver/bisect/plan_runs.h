// The calls that plans are compared by, and what they give.
#pragma once

#include "driver/compile/compile.h"
#include "driver/opened_model.h"
#include "driver/run/entry_calls.h"
#include "runtime/compare.h"
#include "runtime/executable.h"

namespace sinter {

struct RunsOptions {
  CallsOptions calls;  // of a module
  uint64_t seed = 1;   // of random tokens and inputs
  int64_t steps = 4;   // of decoding after a language model's prompt
  /// Texts of one length that a language model reads, in calls of text_calls, with no steps
  /// after them; empty: seeded ones.
  std::vector<std::vector<int32_t>> sequences;
  std::string sequences_origin = {};  // the file that has them
};

/// An element that two plans compute differently.
struct ElementDifference {
  size_t call = 0;  // its number
  std::string entry, value;
  std::vector<int64_t> index;
  BitDifference bits;  // a: of the plan, b: of the reference
};

/// The values that one call left, by name, in the order of the entry's ops, then the states.
using CallValues = std::vector<std::pair<std::string, HostTensor>>;

/// The calls of one session: calls of a module's entries, or a prompt and decoding steps of a
/// language model, or texts of an encoder.
class PlanRuns {
 public:
  struct Call {
    std::string entry;
    std::vector<int64_t> symbol_values;
    std::vector<HostTensor> inputs;
  };

  static Result<PlanRuns> create(const OpenedModel& model, const RunsOptions& options);

  const std::vector<Call>& calls() const { return calls_; }

  /// All calls. `keep`: the values of a variant that are returned beside its outputs; null: those
  /// that it stores. Poison fills memory without a value.
  Result<std::vector<CallValues>> run(const Executable& executable) const;
  /// Values that call `number` computes, and all states as they are before it.
  struct Captured {
    std::vector<std::pair<std::string, HostTensor>> values, states;
  };
  Result<Captured> capture(const Executable& executable, size_t number,
                           std::vector<std::string> keep) const;

 private:
  std::vector<Call> calls_;
};

/// The first value of `plan` that `reference` has and that is not equal to it, bit for bit.
Result<std::optional<ElementDifference>> first_difference(const PlanRuns& runs,
                                                          llvm::ArrayRef<CallValues> plan,
                                                          llvm::ArrayRef<CallValues> reference);

/// "entry main, %y[3, 17]: 1.5 (0x3fc00000), unfused 1.25 (0x3fa00000); 12 of 64 elements differ".
std::string to_string(const ElementDifference& difference);

}  // namespace sinter
