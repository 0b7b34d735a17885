#include "frontends/model/spec_keys.h"

namespace sinter {
namespace {

using V = SpecValue;

constexpr SpecKey kSpecKeys[] = {
    {"sinter_spec", V::version, "", "version of the format"},
    {"name", V::text, "", "what to call the model"},
    {"dtype", V::choice, "", "element type of weights, activations and caches", "f32, f16, bf16"},
    {"vocabulary", V::size, "", "tokens that there are; of a decoder at most 2^20"},
    {"hidden", V::size, "", "width of the residual stream"},
    {"layers", V::size, "", "blocks; at most 4096"},
    {"heads", V::size, "", "query heads"},
    {"kv_heads", V::size, "the value of `heads`", "key/value heads; a divisor of `heads`"},
    {"head_dim", V::size, "`hidden` / `heads`", "elements of a head"},
    {"ffn", V::size, "", "width of the MLP"},
    {"max_positions", V::size, "", "tokens of the longest sequence; at most 2^26"},
    {"encoder", V::flag, "false",
     "tokens see all of their sequence, and the result is the last hidden state; without "
     "`embed_width`"},
    {"embed_width", V::size, "null",
     "width of the embedding table, where it is not `hidden`: rows are projected"},
    {"embed_scale", V::number, "1", "rows of the embedding table are multiplied by it"},
    {"token_types", V::count, "0",
     "of an encoder: rows of a table of token types, which are added; 0: no table"},
    {"embed_norm", V::flag, "false", "of an encoder: a norm of the embedded tokens"},
    {"final_norm", V::flag, "true", "a norm before the output projection"},
    {"tied", V::flag, "false", "the output projection is the embedding table"},
    {"head_bias", V::flag, "false", "a bias of the output projection"},
    {"logit_divisor", V::number, "1", "logits are divided by it"},
    {"logit_softcap", V::number, "null", "logits become c · tanh(logits / c)"},
    {"norm", V::choice, "",
     "`layer_norm` has weight and bias; `rms_norm` rounds, then multiplies by the weight; "
     "`rms_norm_wide` multiplies in float32, then rounds (OLMo 2); `rms_norm_plus_one` multiplies "
     "by 1 + weight in float32, then rounds (Gemma)",
     "layer_norm, rms_norm, rms_norm_wide, rms_norm_plus_one"},
    {"norm_bias", V::flag, "true", "biases of a `layer_norm`"},
    {"norm_eps", V::number, "", "added to the variance"},
    {"norm_place", V::choice, "\"before\"",
     "of a branch f: `before`: x + f(norm(x)); `after`: norm(x + f(x)); `branch`: x + norm(f(x)); "
     "`both`: x + norm(f(norm(x)))",
     "before, after, branch, both"},
    {"first_norm", V::flag, "true",
     "a norm before the attention of layer 0; false needs `norm_place` before"},
    {"residual", V::choice, "\"sequential\"",
     "`sequential`: x1 = x + attention(norm1(x)), x2 = x1 + mlp(norm2(x1)); `parallel`: x + "
     "attention(norm1(x)) + mlp(norm2(x)), with norms before the branches",
     "sequential, parallel"},
    {"residual_scale", V::number, "1",
     "factor of a branch before it is added; of sequential branches"},
    {"shared_norm", V::flag, "false", "parallel branches after one norm"},
    {"qk_norm", V::choice, "\"none\"",
     "norms of queries and keys before rotation: of each head, or of the whole projection",
     "none, head, projection"},
    {"rope", V::rope, "",
     "rotary positions; null: a learned table of positions is added to the embedding"},
    {"local_rope", V::rope, "null",
     "rotary positions of the layers with a window, if they differ; needs `window`"},
    {"rotated", V::flags, "all layers", "for each layer whether its heads rotate; needs `rope`"},
    {"qkv_bias", V::flag, "false", "biases of the projections to queries, keys and values"},
    {"attention_out_bias", V::flag, "false", "a bias of the projection behind attention"},
    {"attention_scale", V::number, "1 / sqrt(`head_dim`)", "factor of q·k"},
    {"scale_by_inverse_layer", V::flag, "false", "layer i (from 0) divides the factor by i + 1"},
    {"attention_softcap", V::number, "null", "scores become c · tanh(scores / c)"},
    {"window", V::size, "null",
     "keys that a query sees, itself included; null: all before it; of an encoder odd: half of the "
     "others on each side"},
    {"windowed", V::flags, "all layers",
     "for each layer whether it has the window; needs `window`"},
    {"bias_distance", V::count, "0",
     "of an encoder: scores get a learned bias for each head and distance of key and query from "
     "-bias_distance to bias_distance; larger distances count as the largest; 0: none"},
    {"activation", V::choice, "", "of the MLP; `gelu` is the one with erf",
     "gelu, gelu_tanh, quick_gelu, silu, relu, sigmoid, tanh"},
    {"gated", V::flag, "false",
     "true: down(activation(gate(x)) · up(x)); false: down(activation(up(x)))"},
    {"mlp_bias", V::flag, "false", "biases of the MLP's projections"},
    {"experts", V::experts, "null",
     "a router and several MLPs in place of one; needs `gated`, and no `mlp_bias`"},
    {"eos", V::ids, "[]", "ids of tokens that end a text"},
};

constexpr SpecKey kRopeKeys[] = {
    {"theta", V::number, "", "base of the frequencies theta^(-2i/rotary)"},
    {"rotary", V::size, "the value of `head_dim`", "leading elements of a head that turn; even"},
    {"pairing", V::choice, "\"half\"",
     "`half`: elements i and i + rotary/2 turn together; `interleaved`: 2i and 2i + 1",
     "half, interleaved"},
    {"scaling", V::choice, "\"none\"",
     "`linear`: frequencies are divided by `factor`; `llama3`: those with wavelengths above "
     "original_max_positions / low_freq_factor are, those below original_max_positions / "
     "high_freq_factor are not, a blend in between; `yarn`: those of pairs that turn fewer than "
     "beta_slow times in original_max_positions are, those that turn more than beta_fast times are "
     "not, a blend in between; `longrope`: frequency i is divided by short_factors[i] in texts of "
     "at most original_max_positions tokens, else by long_factors[i]",
     "none, linear, llama3, yarn, longrope"},
    {"factor", V::number, "", "divides frequencies", "", "linear, llama3, yarn"},
    {"original_max_positions", V::size, "", "positions that the model was trained for", "",
     "llama3, yarn, longrope"},
    {"low_freq_factor", V::number, "", "see `scaling`", "", "llama3"},
    {"high_freq_factor", V::number, "", "see `scaling`", "", "llama3"},
    {"beta_fast", V::number, "32", "see `scaling`", "", "yarn"},
    {"beta_slow", V::number, "1", "see `scaling`", "", "yarn"},
    {"truncate", V::flag, "true", "the bounds of the blend are whole pairs", "", "yarn"},
    {"short_factors", V::numbers, "", "rotary/2 of them", "", "longrope"},
    {"long_factors", V::numbers, "", "rotary/2 of them", "", "longrope"},
    {"attention_factor", V::number, "1", "cos and sin are multiplied by it"},
};

constexpr SpecKey kExpertsKeys[] = {
    {"count", V::size, "", "experts of a layer; at most 1024"},
    {"chosen", V::size, "",
     "experts of a token: with `softmax_first` those with the largest probabilities, with "
     "`choice_first` with the largest logits, of equal ones the first; at most 64 and `count`"},
    {"ffn", V::size, "the value of the model's `ffn`", "width of an expert"},
    {"routing", V::choice, "\"softmax_first\"",
     "the weights of the chosen experts, in float32: `softmax_first`: their part of a softmax over "
     "all experts; `choice_first`: a softmax over the chosen ones",
     "softmax_first, choice_first"},
    {"normalized", V::flag, "false",
     "with `softmax_first`: the weights of a token are divided by their sum"},
    {"wide_weights", V::flag, "false",
     "true: weights stay float32 (Mixtral); false: they are rounded to `dtype`"},
    {"shared_ffn", V::count, "0",
     "width of a shared expert, whose result is added for every token; 0: none"},
    {"shared_gate", V::flag, "false",
     "the shared expert's result is multiplied by sigmoid(linear(x)), one number for each token"},
    {"sparse", V::flags, "all layers",
     "for each layer whether it has experts; the others have an MLP of the model's `ffn`"},
};

}  // namespace

llvm::ArrayRef<SpecKey> spec_keys() { return kSpecKeys; }
llvm::ArrayRef<SpecKey> rope_keys() { return kRopeKeys; }
llvm::ArrayRef<SpecKey> experts_keys() { return kExpertsKeys; }

}  // namespace sinter
