// Texts that tests expect and that stand in files. With SINTER_BLESS=1 in the environment a test
// writes its files in place of checking them.
#pragma once

#include <string>

namespace sinter::test {

/// The whole file.
std::string read_text(const std::string& path);

/// Lines of `wanted` and `got` that differ, marked - and +, with a line of context.
std::string line_difference(const std::string& wanted, const std::string& got);

/// Compares a text with the file at `path`. Returns the lines that differ, "" if there are none.
/// With SINTER_BLESS=1 the file is written, and nothing differs.
std::string compare_text_file(const std::string& text, const std::string& path);

}  // namespace sinter::test
