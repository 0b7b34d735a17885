// A model without files: ModelSpec as JSON. The keys are the names of ModelSpec's fields;
// spec_keys.h lists them, docs/spec.md explains them. Any other key is an error. A spec has no
// weights; its file tensors bear the names of the weights.
#pragma once

#include "frontends/files/json.h"
#include "frontends/model/model_spec.h"

namespace sinter {

/// Reads and checks. Errors name file, JSON pointer and value.
Result<ModelSpec> read_spec(const JsonDocument& document);

/// The spec with every field written out; read_spec gives back the same spec. `spec.name` is UTF-8.
std::string print_spec(const ModelSpec& spec);

}  // namespace sinter
