#include "frontends/llama2c_spec.h"

#include <cmath>

namespace sinter {

Result<HfModel> llama2c_spec(const Llama2cHeader& header, const std::string& path,
                             std::string name) {
  ModelSpec spec;
  spec.name = std::move(name);
  spec.vocabulary = header.vocab_size;
  spec.hidden = header.dim;
  spec.layers = header.n_layers;
  spec.heads = header.n_heads;
  spec.kv_heads = header.n_kv_heads;
  spec.head_dim = header.head_size();
  spec.ffn = header.hidden_dim;
  spec.max_positions = header.seq_len;
  spec.norm = NormKind::rms_norm;
  spec.norm_eps = 1e-5;
  spec.rope = Rope{.rotary = spec.head_dim, .pairing = "interleaved"};
  spec.activation = OpKind::silu;
  spec.gated = true;
  spec.tied = header.shared_classifier;
  spec.attention_scale = 1.0 / std::sqrt(static_cast<double>(spec.head_dim));
  spec.eos = {1, 2};  // texts are delimited by the begin token
  SINTER_TRY(check_spec(
      spec, [&](std::string_view field) { return fmt::format("{}: header ({})", path, field); }));
  return HfModel{std::move(spec), llama_weight_map()};
}

}  // namespace sinter
