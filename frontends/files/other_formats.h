// Models in formats that Sinter does not read, told by the end of their names.
#pragma once

#include <string>

#include "ir/error.h"

namespace sinter {

/// An error, with the way to a format that is read, for a path that ends as files of another format
/// do: .onnx, .pt, .npz, ... The file need not be there.
Status refuse_other_format(const std::string& path);

/// What a folder holds that has no model, and what one with a model holds.
std::string folder_hint(const std::string& folder);

/// The command that makes model.safetensors of the files pytorch_model*.bin of a folder.
std::string safetensors_command(const std::string& folder);

}  // namespace sinter
