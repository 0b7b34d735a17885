// What a decoder-only transformer is, whatever family it comes from: the one description that
// config readers produce and build_model turns into a Module.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace sinter {

/// Bound of every size: far above any model, low enough that products of a few stay below 2^63.
inline constexpr int64_t kLargestSize = int64_t{1} << 28;

enum class NormKind : uint8_t { layer_norm, rms_norm };  // layer_norm: with weight and bias

enum class ResidualForm : uint8_t {
  sequential,  // x1 = x + attention(norm1(x)); x2 = x1 + mlp(norm2(x1))
  parallel,    // x1 = x + attention(norm1(x)) + mlp(norm2(x))
};

enum class RopeScaling : uint8_t { none, linear, llama3 };

/// Rotary positions. Pair i of a head turns by position * f(i), f(i) = theta^(-2i/rotary), scaled:
///   linear: f / factor
///   llama3: wavelengths above original_max_positions / low_freq_factor are divided by `factor`,
///           those below original_max_positions / high_freq_factor stay, a linear blend in between
struct Rope {
  double theta = 10000.0;
  int64_t rotary = 0;            // leading elements of a head that turn; even
  std::string pairing = "half";  // as attribute `pairing` of op rope
  RopeScaling scaling = RopeScaling::none;
  double factor = 1.0;                                   // linear, llama3
  double low_freq_factor = 1.0, high_freq_factor = 4.0;  // llama3
  int64_t original_max_positions = 0;                    // llama3
  double attention_factor = 1.0;                         // cos and sin are multiplied by it
  friend bool operator==(const Rope&, const Rope&) = default;
};

/// A cache of bounded size: the first `sink` tokens and the last `window` others, the current one
/// among them. Keys are stored before rotation and turned by their place in the cache, as if the text
/// had no more tokens than that (attention sinks: Xiao et al., StreamingLLM, 2023).
struct StreamingCache {
  int64_t sink = 4;
  int64_t window = 1020;
  int64_t rows() const { return sink + window; }
  friend bool operator==(const StreamingCache&, const StreamingCache&) = default;
};

struct ModelSpec {
  std::string name;
  DType dtype = DType::f32;  // of weights, activations and caches
  int64_t vocabulary = 0;
  int64_t hidden = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;  // divides heads
  int64_t head_dim = 0;
  int64_t ffn = 0;            // width of the MLP
  int64_t max_positions = 0;  // longest sequence
  NormKind norm = NormKind::layer_norm;
  double norm_eps = 1e-5;
  ResidualForm residual = ResidualForm::sequential;
  std::optional<Rope> rope;          // absent: a learned table of positions is added
  OpKind activation = OpKind::gelu;  // one of the activations below
  bool gated = false;  // down(activation(gate(x)) * up(x)), else down(activation(up(x)))
  bool qkv_bias = false;
  bool attention_out_bias = false;
  bool mlp_bias = false;
  bool tied = false;                    // the output projection is the embedding table
  double attention_scale = 0.0;         // of q·k
  bool scale_by_inverse_layer = false;  // layer i divides attention_scale by i + 1
  std::optional<int64_t> window;        // keys a query sees, itself included
  std::optional<StreamingCache> streaming;  // how a run keeps keys and values; of no file
  std::vector<int64_t> eos;             // ids that end a text; may lie outside the vocabulary

  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

/// Activations an MLP may have.
llvm::ArrayRef<OpKind> activation_kinds();
/// Their names, separated by commas, for messages.
std::string activation_list();
std::string_view to_string(NormKind kind);
std::string_view to_string(ResidualForm form);
std::string_view to_string(RopeScaling scaling);

/// Where a field of a spec stands in its file, for messages: "config.json: /num_attention_heads".
/// Field names are those of ModelSpec and, with "rope." before them, of Rope.
using FieldPlace = std::function<std::string(std::string_view field)>;

/// Every rule between the fields: ranges, divisibility, finite positive numbers, sizes that fit.
Status check_spec(const ModelSpec& spec, const FieldPlace& place);

/// Frequencies f(i) of a Rope that passed check_spec, computed in double; rotary/2 of them.
std::vector<double> rope_frequencies(const Rope& rope);

/// How a weight of the model is cut out of a tensor of the model's files: the tensor is transposed
/// if it is stored [in, out]; its output axis is then seen as [groups, group_rows], of which the
/// weight is rows `begin` .. of every group.
///   fused q|k|v blocks:             groups = 1, group_rows = all rows
///   q, k, v interleaved per head:   groups = heads, group_rows = 3 * head_dim
struct TensorRule {
  std::string tensor;  // "{p}" stands for the checkpoint's prefix, "{i}" for the layer
  bool transposed = false;
  int64_t groups = 1;
  int64_t group_rows = 0;  // 0: the tensor is the whole weight
  int64_t begin = 0;
};

/// The names of one checkpoint layout. Keys are weight names as build_model gives them, with "{i}"
/// for the layer ("embed.weight", "l{i}.q.bias").
struct WeightMap {
  std::vector<std::string> prefixes;  // what "{p}" may be; the first is the usual one
  std::map<std::string, TensorRule, std::less<>> rules;
  std::vector<std::string> ignorable;  // ends of names of tensors that no model needs

  /// The layout of a model without files: every weight is the tensor of its own name.
  static WeightMap identity() { return {}; }
};

}  // namespace sinter
