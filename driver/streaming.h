// The text of an option that describes a streaming cache.
#pragma once

#include <string>

#include "frontends/model/model_spec.h"

namespace sinter {

/// "sink=4,window=1020". An error names `--kv`.
Result<StreamingCache> parse_streaming(const std::string& text);

}  // namespace sinter
