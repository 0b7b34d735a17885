// Reports the contents of a GGUF file: metadata, element types and tensors.
#pragma once

#include "frontends/gguf/gguf_file.h"

namespace sinter {

/// Tensors that differ in the numbers of their names alone, as those of several layers, are one
/// line.
std::string gguf_text(const GgufFile& file);
std::string gguf_json(const GgufFile& file);

}  // namespace sinter
