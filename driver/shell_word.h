// Words of the command lines that are printed and run.
#pragma once

#include <string>
#include <string_view>

namespace sinter {

/// The text as one word of a POSIX shell: in quotes where a shell would read something else.
std::string shell_word(std::string_view text);

/// A line of a report with such words: like printable(), but quotes and backslashes stay, and a
/// newline or a tab is a blank.
std::string line_with_words(std::string_view text, size_t limit);

}  // namespace sinter
