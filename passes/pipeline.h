// The list of passes, each run by one runner: pass, then verifier.
#pragma once

#include <functional>

#include "passes/passes.h"

namespace sinter {

struct Pass {
  std::string_view name;
  bool (*run)(Module&, const PassOptions&);  // true if something changed
};

/// The passes in the order in which a compilation runs them; no two have the same name.
llvm::ArrayRef<Pass> pipeline();

/// Runs a pass on a verified module and verifies the result. A verifier failure after a pass is a
/// bug of that pass and ends the program. The first pass of a module finds its entries' outputs by
/// the names that they keep (Entry::output_names).
void run_pass(const Pass& pass, Module& module, const PassOptions& options = {});

/// Called after each pass with its name and the module as it left it.
using PassObserver = std::function<void(std::string_view pass, const Module& module)>;

/// Runs the pipeline, which brings a verified module into the form that `fuse` takes.
void run_passes(Module& module, const PassObserver& observer = {}, const PassOptions& options = {});

}  // namespace sinter
