// Which files of a folder belong to the plan in it, so that replacing the plan loses nothing else.
#pragma once

#include <filesystem>
#include <string>

#include "ir/error.h"

namespace sinter {

/// The least path, relative to `folder`, of what is no part of a plan of Sinter, whatever its
/// version; empty: there is none. The kernels of a plan are those that its plan.json names, with
/// machine code beside each; without a plan.json every file in `kernels` is foreign.
Result<std::string> foreign_file(const std::filesystem::path& folder);

/// Is there a plan.json that a Sinter wrote?
bool holds_plan(const std::filesystem::path& folder);

}  // namespace sinter
