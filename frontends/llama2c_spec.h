// A llama2.c checkpoint as a ModelSpec.
#pragma once

#include "frontends/files/llama2c.h"
#include "frontends/huggingface/config.h"

namespace sinter {

/// The model of a file at `path`: llama with interleaved rotary pairs.
Result<HfModel> llama2c_spec(const Llama2cHeader& header, const std::string& path,
                             std::string name);

}  // namespace sinter
