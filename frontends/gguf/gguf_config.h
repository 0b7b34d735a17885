// A GGUF model as the config.json that its Hugging Face folder has.
#pragma once

#include "frontends/files/json.h"
#include "frontends/gguf/gguf_tensors.h"
#include "frontends/model/model_spec.h"

namespace sinter {

/// The config of the model, for read_hf_config(). Metadata of the architecture that is not known
/// is a member of its own name, which that function refuses.
Result<JsonDocument> gguf_config(const GgufTensors& tensors);

/// The names of the weights that `spec` has.
WeightMap gguf_weight_map(const ModelSpec& spec, const GgufTensors& tensors);

}  // namespace sinter
