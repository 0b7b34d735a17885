#include "driver/text_file.h"

#include "frontends/files/atomic_file.h"
#include "frontends/files/read_files.h"

namespace sinter {

void keep_inputs() { remember_inputs(); }

Status check_output_file(const std::string& path) {
  if (path.empty()) return {};
  SINTER_TRY(AtomicFile::create(path));
  return {};
}

Status write_text(const std::string& path, std::string_view text) {
  SINTER_LET(file, AtomicFile::create(path));
  SINTER_TRY(file.write(std::as_bytes(std::span(text))));
  return file.commit();
}

}  // namespace sinter
