// Files that commands write beside their results.
#pragma once

#include <string>
#include <string_view>

#include "ir/error.h"

namespace sinter {

/// An error where write_output() could not write there; an empty path and "-" are no files.
Status check_output(const std::string& path);

/// Writes the file, as a whole or not at all, and says so on stderr: "page → FILE". `what`: the
/// content. "-": the text is the command's result.
Status write_output(std::string_view what, const std::string& path, std::string_view text);

}  // namespace sinter
