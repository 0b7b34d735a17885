// The savings of `--attention relaxed` where rounded scores keep attention composed.
#pragma once

#include "driver/explain/choices.h"
#include "driver/opened_model.h"

namespace sinter {

/// Runs passes and fusion again, with relaxed attention, if some entry has such an attention.
/// `wanted`: the options of the compilation.
Result<EntrySavings> relaxed_savings(const OpenedModel& model, const CompileOptions& wanted,
                                     const Compiled& compiled);

}  // namespace sinter
