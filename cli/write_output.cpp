#include "cli/write_output.h"

#include "cli/output.h"
#include "driver/text_file.h"

namespace sinter {

Status check_output(const std::string& path) {
  return path == "-" ? Status() : check_output_file(path);
}

Status write_output(std::string_view what, const std::string& path, std::string_view text) {
  if (path == "-") {
    print_result(text);
    return {};
  }
  SINTER_TRY(write_text(path, text));
  note(fmt::format("{} → {}", what, path));
  return {};
}

}  // namespace sinter
