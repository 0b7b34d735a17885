// A compiled plan and what people ask about it.
#pragma once

#include <mutex>

#include "api/model.h"
#include "driver/build.h"
#include "driver/explain/why.h"

struct sinter_decision {
  sinter::LedgerDecision decision;
  bool of_plan = false;            // which frees it
  int64_t launches[2] = {-1, -1};  // of the entry, that compute the two values; -1: none does
  std::string savings = {};        // of an accepted fusion, for people
  std::vector<int64_t> path_launches = {};              // of the path's values; of an answer
  std::unique_ptr<sinter_decision> first_refusal = {};  // on the path; of an answer
};

struct sinter_costs {
  int64_t launches = 0, kernels = 0, products = 0, moved_bytes = 0, arena_bytes = 0;
  double predicted_seconds = -1;
};

/// Names and types as texts that live as long as the plan.
struct sinter_plan_entry {
  struct Value {
    std::string name, type;
  };
  std::vector<Value> inputs, outputs;
  std::vector<std::string> step_values;
};

struct sinter_plan {
  sinter_model source;                             // what was compiled
  sinter::CompileOptions options;                  // how
  std::shared_ptr<const sinter::Program> program;  // of a stored plan: without the kernels' texts
  std::vector<sinter_plan_entry> entries;
  std::vector<sinter_plan_entry::Value> states;

  /// The fusion decisions: from the compilation or, for a stored plan, from its module, which is
  /// compiled again at the first request. Guarded by `asked`.
  struct Decisions {
    sinter::Compiled compiled;
    std::vector<std::vector<sinter_decision>> of_entry;
  };
  mutable std::mutex asked;
  mutable std::unique_ptr<Decisions> decisions;
};

namespace sinter {

Result<std::unique_ptr<sinter_plan>> compile_plan(const sinter_model& model,
                                                  const sinter_options* options);

/// How the plan was compiled, for compiling it again.
BuildRequest request_of(const sinter_plan& plan);

std::unique_ptr<sinter_plan::Decisions> decisions_of(Compiled compiled);
/// The plan's decisions; of a stored plan its module is compiled now, which must give the same
/// plan.
Result<const sinter_plan::Decisions*> asked_decisions(const sinter_plan& plan);

/// An error for an entry that the plan does not have.
Status check_entry(const sinter_plan& plan, size_t entry);

}  // namespace sinter
