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
//     "norm": "rms_norm",          or layer_norm (weight and bias), rms_norm_wide,
//                                  rms_norm_plus_one
//     "norm_eps": 1e-05,
//     "norm_place": "before",      default; after, branch, both (NormPlace)
//     "residual": "sequential",    default; or parallel
//     "shared_norm": false,        default; parallel branches after one norm
//     "qk_norm": "none",           default; head, projection (QkNorm)
//     "rope": {                    null: a learned table of positions
//       "theta": 10000,
//       "rotary": 128,             leading elements of a head that turn; default: head_dim
//       "pairing": "half",         default; or interleaved
//       "scaling": "none",         default; linear (factor), llama3 (factor, low_freq_factor,
//                                  high_freq_factor, original_max_positions), yarn (factor,
//                                  original_max_positions, beta_fast, beta_slow, truncate),
//                                  longrope (short_factors, long_factors, original_max_positions)
//       "attention_factor": 1      default
//     },
//     "local_rope": null,          default; as rope, of layers with a window
//     "activation": "silu",        gelu (erf), gelu_tanh, quick_gelu, silu, relu, sigmoid, tanh
//     "gated": true,               default false: down(activation(up(x)))
//     "qkv_bias": false, "attention_out_bias": false, "mlp_bias": false, "tied": false,
//     "head_bias": false, "final_norm": true,                                           defaults
//     "attention_scale": 0.0884,   default: 1 / sqrt(head_dim)
//     "scale_by_inverse_layer": false,                                                  default
//     "attention_softcap": null, "logit_softcap": null,                                 defaults
//     "window": null,              default; keys a query sees, itself included
//     "windowed": [true, false],   the layers that have the window; default: all
//     "embed_width": null,         default; width of the embedding table if not hidden
//     "embed_scale": 1,            default; rows of the table are multiplied by it
//     "encoder": false, "token_types": 0, "embed_norm": false,                          defaults
//     "eos": [2]                   default: []
//   }
//
// Any other key is an error. A spec has no weights; its file tensors bear the names of the weights.
#pragma once

#include "frontends/files/json.h"
#include "frontends/model/model_spec.h"

namespace sinter {

/// Reads and checks. Errors name file, JSON pointer and value.
Result<ModelSpec> read_spec(const JsonDocument& document);

/// The spec with every field written out; read_spec gives back the same spec. `spec.name` is UTF-8.
std::string print_spec(const ModelSpec& spec);

}  // namespace sinter
