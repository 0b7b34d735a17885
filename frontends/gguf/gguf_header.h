// One file of a GGUF model: its header.
#pragma once

#include "frontends/gguf/gguf_file.h"

namespace sinter {

struct GgufHeader {
  uint32_t version = 0;
  std::map<std::string, GgufValue, std::less<>> metadata;
  std::vector<GgufTensor> tensors;
};

/// Reads and checks all but the tensors' bytes.
Result<GgufHeader> read_gguf_header(const BoundedFile& file);

}  // namespace sinter
