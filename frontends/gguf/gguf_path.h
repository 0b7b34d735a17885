// Which paths are GGUF models.
#pragma once

#include <optional>
#include <string>

namespace sinter {

/// The GGUF file that `path` names: a file that ends so, or the only one of a folder that has no
/// config.json and no model.sir, where the files of a split model count as one. Nothing: it names
/// something else.
std::optional<std::string> gguf_model(const std::string& path);

}  // namespace sinter
