// A model without files: ModelSpec as JSON. The keys are the names of ModelSpec's fields.
//
//   {
//     "sinter_spec": 1,              format version
//     "name": "llama-2-7b",
//     "dtype": "f16",                f32, f16 or bf16
//     "vocabulary": 32000, "hidden": 4096, "layers": 32, "heads": 32, "ffn": 11008,
//     "max_positions": 4096,
//     "kv_heads": 32,                default: heads
//     "head_dim": 128,               default: hidden / heads
//     "norm": "rms_norm",            or layer_norm (weight and bias)
//     "norm_eps": 1e-05,
//     "residual": "sequential",      default; or parallel
//     "rope": {                      null: a learned table of positions
//       "theta": 10000,
//       "rotary": 128,               leading elements of a head that turn; default: head_dim
//       "pairing": "half",           default; or interleaved
//       "scaling": "none",           default; linear (factor), llama3 (factor, low_freq_factor,
//                                    high_freq_factor, original_max_positions)
//       "attention_factor": 1        default
//     },
//     "activation": "silu",          gelu (erf), gelu_tanh, quick_gelu, silu, relu, sigmoid, tanh
//     "gated": true,                 default false: down(activation(up(x)))
//     "qkv_bias": false, "attention_out_bias": false, "mlp_bias": false, "tied": false,   defaults
//     "attention_scale": 0.0884,     default: 1 / sqrt(head_dim)
//     "scale_by_inverse_layer": false,                                                    default
//     "window": null,                default; keys a query sees, itself included
//     "eos": [2]                     default: []
//   }
//
// Any other key is an error. A spec has no weights; its file tensors bear the names of the weights.
#pragma once

#include "frontends/json.h"
#include "frontends/model_spec.h"

namespace sinter {

/// Reads and checks. Errors name file, JSON pointer and value.
Result<ModelSpec> read_spec(const JsonDocument& document);

/// The spec with every field written out; read_spec gives back the same spec. `spec.name` is UTF-8.
std::string print_spec(const ModelSpec& spec);

}  // namespace sinter
