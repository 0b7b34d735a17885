// The time that the cost model gives a plan.
#pragma once

#include "driver/compile/compile.h"

namespace sinter {

/// Seconds of a call of an entry at these sizes: its kernels and library calls one after the other,
/// as the cost model of the fusion engine has them, at the rates of `board`; null: of the target.
/// nullopt: a stored plan, of which no fusion is
/// kept.
std::optional<double> predicted_seconds(const Compiled& compiled, std::string_view entry,
                                        llvm::ArrayRef<int64_t> sizes,
                                        const DeviceDescription* board = nullptr);

/// "a cost model's estimates for one H200": what the predicted times of a target are. measured:
/// they have the rates that were measured of a board.
std::string estimates_for(std::string_view target, bool measured = false);

}  // namespace sinter
