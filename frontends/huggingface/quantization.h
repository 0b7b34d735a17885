// Reads quantization_config of a Hugging Face config.json, or quantize_config.json, which AutoGPTQ
// wrote. Every key is used, known to change no weight, or refused by name. Settings of activations
// are not: weights alone are quantized here, activations stay as they are.
#pragma once

#include "frontends/huggingface/config.h"
#include "frontends/quantized/scheme.h"

namespace sinter {

/// `view` is the object in `document`. `method` counts where the object names none; empty: it must.
/// Errors name the place, the value and what is possible.
Result<Quantization> read_quantization(const JsonDocument& document, const JsonView& view,
                                       const IgnoredKeys& ignored, std::string_view method = {});

/// The same for an object's text; one that names no method is AutoGPTQ's. Errors call it `file`.
Result<Quantization> read_quantization_text(std::string_view text, std::string file);

/// The same for one of them, whose keys `config` reads.
Result<Quantization> read_compressed_tensors(const JsonDocument& document, HfConfig& config,
                                             const IgnoredKeys& ignored);

}  // namespace sinter
