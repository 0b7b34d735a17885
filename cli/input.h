// Reads standard input, and lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/error.h"

namespace sinter {

/// All of it, at most as much as is read of a text file. Errors: reading fails; it is longer.
Result<std::string> read_input();

/// Appends the lines of `text`, without their ends, to `lines`.
void append_lines(std::string_view text, std::vector<std::string>& lines);

/// Lines of standard input, each as soon as it is there, without its end (\n or \r\n).
class InputLines {
 public:
  /// Nothing after the last line.
  Result<std::optional<std::string>> next();

 private:
  std::string read_;  // behind the last line that was given
  bool ended_ = false;
};

}  // namespace sinter
