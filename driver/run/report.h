// The results of a run, for people and programs.
#pragma once

#include "driver/run/run.h"

namespace sinter {

/// Every value with its shape and range, the likeliest next tokens of a language model, and the
/// tokens it went on with.
std::string run_text(const TokenRun& run);
/// One object: values: [{name, dtype, dims, min, max, mean}], next: [{token, logit}], tokens.
std::string run_json(const TokenRun& run);

/// run_text() of each rank; a list of run_json()s.
std::string ranks_text(llvm::ArrayRef<TokenRun> ranks);
std::string ranks_json(llvm::ArrayRef<TokenRun> ranks);

}  // namespace sinter
