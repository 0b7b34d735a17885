// A text that a command was asked to leave in a file.
#pragma once

#include <string>
#include <string_view>

#include "ir/error.h"

namespace sinter {

/// The file is there as a whole or not at all.
Status write_text(const std::string& path, std::string_view text);

}  // namespace sinter
