// A text that a command was asked to leave in a file.
#pragma once

#include <string>
#include <string_view>

#include "ir/error.h"

namespace sinter {

/// From now on no output replaces a file that was read (frontends/files/read_files.h). The program
/// says so when a command begins.
void keep_inputs();

/// Could a command write this file? Asked before the work whose result it takes. "": none is asked
/// for.
Status check_output_file(const std::string& path);

/// The file is there as a whole or not at all.
Status write_text(const std::string& path, std::string_view text);

}  // namespace sinter
