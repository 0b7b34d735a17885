// Passes run on a module by name, and the module after them as text.
#pragma once

#include <string>
#include <vector>

#include "passes/pipeline.h"

namespace sinter {

struct OptRequest {
  std::string path;                 // a model, or "-": a module's text on the standard input
  std::vector<std::string> passes;  // in this order; empty: the whole pipeline
  PassOptions options;
};

/// The text of the module after the passes, each of which is followed by the verifier. Errors: a
/// pass that does not exist (usage); a module that cannot be read.
Result<std::string> opt(const OptRequest& request);

/// "canonicalize, merge_linears, ...": the passes that a request may name, in the pipeline's order.
std::string pass_names();

}  // namespace sinter
