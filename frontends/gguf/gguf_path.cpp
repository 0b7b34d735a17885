#include "frontends/gguf/gguf_path.h"

#include <filesystem>

#include "frontends/files/bounded_file.h"
#include "frontends/gguf/gguf_file.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

bool is_gguf(const fs::path& path) { return path.extension() == ".gguf"; }

}  // namespace

std::optional<std::string> gguf_model(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    if (is_gguf(path)) return path;
    return std::nullopt;
  }
  const fs::path folder(path);
  if (path_exists(folder / "config.json") || path_exists(folder / "model.sir")) return std::nullopt;
  std::optional<std::string> found;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (!is_gguf(at->path())) continue;
    const std::string file = first_gguf_file(at->path().string());
    if (found && *found != file) return std::nullopt;
    found = file;
  }
  return found;
}

}  // namespace sinter
