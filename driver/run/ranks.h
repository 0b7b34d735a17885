// A module's calls on several ranks.
#pragma once

#include "driver/run/run.h"

namespace sinter {

/// run_inputs() on each rank, with its model and its inputs (driver/ranks.h).
Result<std::vector<TokenRun>> run_ranks(const std::string& path, const OpenOptions& open,
                                        const CallsOptions& options, const RunOptions& run,
                                        size_t ranks);

}  // namespace sinter
