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

/// The text of an object that read_quantization() took, without the keys that were ignored: it is
/// read again where nobody says which they are. `method` as above: the text names it.
std::string quantization_text(JsonValue object, const IgnoredKeys& ignored,
                              std::string_view method = {});

/// read_quantization() of such a text. Errors call it `file`.
Result<Quantization> read_quantization_text(std::string_view text, std::string file);

/// The object of compressed-tensors for linears of one scheme, and for embedding tables of another
/// (null: they stay), of layouts `packed` and `plain` and without zero points, all but the modules
/// `ignored`; as transformers reads it, too.
std::string compressed_tensors_text(const WeightScheme& linears, const WeightScheme* tables,
                                    llvm::ArrayRef<std::string> ignored);

/// read_quantization() for this method, whose keys `config` reads.
Result<Quantization> read_compressed_tensors(const JsonDocument& document, HfConfig& config,
                                             const IgnoredKeys& ignored);

}  // namespace sinter
