// The list of passes, each run by one runner: timing, dump, verifier.
#pragma once

#include <functional>

#include "ir/graph.h"

namespace sinter {

/// Called after each pass with its name and the module as it left it.
using PassObserver = std::function<void(std::string_view pass, const Module& module)>;

/// Brings a verified module into the form that `fuse` takes. A verifier failure after a pass is a
/// bug of that pass and ends the program.
void run_passes(Module& module, const PassObserver& observer = {});

}  // namespace sinter
