// Reads standard input.
#pragma once

#include <string>

#include "ir/error.h"

namespace sinter {

/// All of it, at most as much as is read of a text file. Errors: reading fails; it is longer.
Result<std::string> read_input();

}  // namespace sinter
