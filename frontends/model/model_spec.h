// The description of a transformer of any family: config readers produce it, and build_model turns
// it into a Module.
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
inline constexpr int64_t kMaxLayers = 4096;
/// Bound of a decoder's vocabulary, from which op `sample` chooses.
inline constexpr int64_t kMaxChosenFrom = int64_t{1} << 20;

enum class NormKind : uint8_t {
  layer_norm,         // with weight and bias
  rms_norm,           // rounded, then times the weight
  rms_norm_wide,      // times the weight in float32, then rounded (OLMo 2)
  rms_norm_plus_one,  // times 1 + weight in float32, then rounded (Gemma)
};

enum class ResidualForm : uint8_t {
  sequential,  // x1 = branch1(x, attention); x2 = branch2(x1, mlp)
  parallel,    // x1 = x + attention(norm1(x)) + mlp(norm2(x)); norms stand before
};

/// Where the norms of a branch f stand.
enum class NormPlace : uint8_t {
  before,  // x + f(norm(x))
  after,   // norm(x + f(x))
  branch,  // x + post_norm(f(x))
  both,    // x + post_norm(f(norm(x)))
};

/// The row over which queries and keys are normalized, before rotation.
enum class QkNorm : uint8_t {
  none,
  head,        // the elements of one head; one weight for all heads
  projection,  // the elements of all heads
};

enum class RopeScaling : uint8_t { none, linear, llama3, yarn, longrope };

/// Rotary positions. Pair i of a head turns by position * f(i), f(i) = theta^(-2i/rotary), scaled:
///   linear:   f / factor
///   llama3:   wavelengths above original_max_positions / low_freq_factor are divided by `factor`,
///             those below original_max_positions / high_freq_factor stay, a linear blend in
///             between
///   yarn:     f / factor for pairs that turn fewer than beta_slow times in original_max_positions,
///             f for those that turn more than beta_fast times, a linear blend over the pairs in
///             between, whose bounds are whole pairs if `truncate`
///   longrope: f / short_factors[i] in a model of at most original_max_positions, else
///             f / long_factors[i]
struct Rope {
  double theta = 10000.0;
  int64_t rotary = 0;            // leading elements of a head that turn; even
  std::string pairing = "half";  // as attribute `pairing` of op rope
  RopeScaling scaling = RopeScaling::none;
  double factor = 1.0;                                        // linear, llama3, yarn
  double low_freq_factor = 1.0, high_freq_factor = 4.0;       // llama3
  double beta_fast = 32.0, beta_slow = 1.0;                   // yarn
  bool truncate = true;                                       // yarn
  std::vector<double> short_factors = {}, long_factors = {};  // longrope: rotary / 2 each
  int64_t original_max_positions = 0;                         // llama3, yarn, longrope
  double attention_factor = 1.0;                              // cos and sin are multiplied by it
  friend bool operator==(const Rope&, const Rope&) = default;
};

/// When a router chooses a token's experts.
enum class Routing : uint8_t {
  softmax_first,  // softmax over all logits, then the largest probabilities
  choice_first,   // the largest logits, then softmax over them
};

inline constexpr int64_t kMaxExperts = 1024, kMaxChosenExperts = 64;

/// A mixture of experts in place of the MLP: the sum of the chosen experts' results, each times its
/// weight, plus the result of the shared expert. An expert is a gated MLP. Softmax is in float32.
struct Experts {
  int64_t count = 0;   // of a layer
  int64_t chosen = 0;  // for each token
  int64_t ffn = 0;     // width of an expert
  Routing routing = Routing::softmax_first;
  bool normalized = false;    // softmax_first: chosen probabilities are divided by their sum
  bool wide_weights = false;  // weights stay float32; else they are rounded to the model's type
  int64_t shared_ffn = 0;     // width of the shared expert, which every token has; 0: none
  bool shared_gate = false;   // its result is multiplied by sigmoid(linear(x)), one number a token
  std::vector<bool> sparse = {};  // the layers with experts; empty: all. Others have an MLP.
  friend bool operator==(const Experts&, const Experts&) = default;
};

/// A cache of bounded size: the first `sink` tokens and the last `window` others, the current one
/// among them. Keys are stored before rotation and turned by their place in the cache, as if the
/// text had no more tokens than that (attention sinks: Xiao et al., StreamingLLM, 2023).
struct StreamingCache {
  int64_t sink = 4;
  int64_t window = 1020;
  int64_t rows() const { return sink + window; }
  friend bool operator==(const StreamingCache&, const StreamingCache&) = default;
};

inline constexpr int64_t kUsualSequences = 8, kMaxSequences = 256;

struct ModelSpec {
  std::string name;
  DType dtype = DType::f32;  // of weights, activations and caches
  bool encoder = false;  // tokens see all of their sequence; the result is the last hidden state
  int64_t vocabulary = 0;
  int64_t hidden = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;  // divides heads
  int64_t head_dim = 0;
  int64_t ffn = 0;            // width of the MLP
  int64_t max_positions = 0;  // longest sequence

  // From tokens to the residual stream: rows of the table, times embed_scale, projected to hidden
  // if the table has another width, plus rows of the tables of positions and token types, normed.
  std::optional<int64_t> embed_width;  // of the table; absent: hidden
  double embed_scale = 1.0;
  int64_t token_types = 0;  // 0: none
  bool embed_norm = false;
  bool final_norm = true;
  bool tied = false;                    // the output projection is the embedding table
  bool head_bias = false;               // of the output projection
  double logit_divisor = 1.0;           // logits are divided by it
  std::optional<double> logit_softcap;  // logits = cap * tanh(logits / cap)

  NormKind norm = NormKind::layer_norm;
  bool norm_bias = true;  // of a layer_norm
  double norm_eps = 1e-5;
  NormPlace norm_place = NormPlace::before;
  bool first_norm = true;  // layer 0 has a norm before its attention
  ResidualForm residual = ResidualForm::sequential;
  double residual_scale = 1.0;  // a branch is multiplied by it before the addition
  bool shared_norm = false;     // parallel: norm2 is norm1

  std::optional<Rope> rope;        // absent: a learned table of positions is added
  std::optional<Rope> local_rope;  // of the layers with a window, where it differs
  std::vector<bool> rotated;       // the layers whose heads rotate; empty: all
  QkNorm qk_norm = QkNorm::none;
  bool qkv_bias = false;
  bool attention_out_bias = false;
  double attention_scale = 0.0;             // of q·k
  bool scale_by_inverse_layer = false;      // layer i divides attention_scale by i + 1
  std::optional<double> attention_softcap;  // scores = cap * tanh(scores / cap)
  /// Keys a query sees, itself included; of an encoder odd: half of the others on each side.
  std::optional<int64_t> window;
  std::vector<bool> windowed;  // the layers with the window; empty: all
  /// Encoders: scores get a learned bias, one for each head and distance of key and query from
  /// -bias_distance to bias_distance; larger distances count as the largest. 0: none.
  int64_t bias_distance = 0;
  std::optional<StreamingCache> streaming;  // how a run keeps keys and values; of no file
  /// Sequences that decode together at most, each as long as the model allows; of no file.
  int64_t sequences = kUsualSequences;

  OpKind activation = OpKind::gelu;  // one of the activations below
  bool gated = false;  // down(activation(gate(x)) * up(x)), else down(activation(up(x)))
  bool mlp_bias = false;
  std::optional<Experts> experts;
  std::vector<int64_t> eos;  // ids that end a text; may lie outside the vocabulary

  bool has_window(int64_t layer) const {
    return window && (windowed.empty() || windowed[static_cast<size_t>(layer)]);
  }
  bool rotates(int64_t layer) const {
    return rope && (rotated.empty() || rotated[static_cast<size_t>(layer)]);
  }
  /// The layer has a norm before its attention, or after it where all norms are there.
  bool has_first_norm(int64_t layer) const { return first_norm || layer != 0; }
  bool has_experts(int64_t layer) const {
    return experts && (experts->sparse.empty() || experts->sparse[static_cast<size_t>(layer)]);
  }
  int64_t table_width() const { return embed_width.value_or(hidden); }
  /// Norms multiply by a float32 weight before they round.
  bool wide_norm() const {
    return norm == NormKind::rms_norm_wide || norm == NormKind::rms_norm_plus_one;
  }

  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

/// Activations an MLP may have.
llvm::ArrayRef<OpKind> activation_kinds();
/// Their names, separated by commas, for messages.
std::string activation_list();
std::string_view to_string(NormKind kind);
std::string_view to_string(ResidualForm form);
std::string_view to_string(RopeScaling scaling);
std::string_view to_string(NormPlace place);
std::string_view to_string(QkNorm norm);
std::string_view to_string(Routing routing);

/// Where a field of a spec is in its file, for messages: "config.json: /num_attention_heads". Field
/// names are members of ModelSpec or, after "rope." or "local_rope.", of Rope, after "experts.", of
/// Experts.
using FieldPlace = std::function<std::string(std::string_view field)>;

/// Every rule between the fields: ranges, divisibility, finite positive numbers, sizes that fit.
Status check_spec(const ModelSpec& spec, const FieldPlace& place);

/// Scaled frequencies of a Rope that passed check_spec, for a model of `max_positions`, computed in
/// double; rotary/2 of them.
std::vector<double> rope_frequencies(const Rope& rope, int64_t max_positions);

/// How a weight of the model is cut out of a tensor of the model's files: the tensor is transposed
/// if it is stored [in, out]; its output axis is then seen as [groups, group_rows], of which the
/// weight is rows `begin` .. of every group.
///   fused q|k|v blocks:             groups = 1, group_rows = all rows
///   q, k, v interleaved per head:   groups = heads, group_rows = 3 * head_dim
///   a tensor for each expert:       "{e}" in the name; the weight [experts, rows, columns] stacks
///                                   them, and neither transposes nor cuts
struct TensorRule {
  // "{p}" stands for the checkpoint's prefix, "{i}" for the layer, "{e}" for the expert.
  std::string tensor = {};
  std::string second = {};  // of an expert: its rows follow those of `tensor`; empty: none
  bool transposed = false;
  int64_t groups = 1;
  int64_t group_rows = 0;  // 0: the tensor is the whole weight
  int64_t begin = 0;
  /// Row i of the weight is row rows[i] of the tensor's `group_rows`; empty: as said above.
  std::vector<int64_t> rows = {};
};

/// The names of one checkpoint layout. Keys are weight names as build_model gives them, with "{i}"
/// for the layer ("embed.weight", "l{i}.q.bias").
struct WeightMap {
  std::vector<std::string> prefixes = {};  // what "{p}" may be; the first is the usual one
  std::map<std::string, TensorRule, std::less<>> rules = {};
  std::vector<std::string> ignorable = {};  // ends of names of tensors that no model needs
  std::vector<std::string> foreign = {};    // beginnings of names of other models' tensors
  /// Parts of names that older checkpoints spell otherwise: {usual, old}.
  std::vector<std::pair<std::string, std::string>> spellings = {};
  /// By key, another rule: it replaces the key's rule where the files have its tensor in any layer.
  std::map<std::string, TensorRule, std::less<>> others = {};

  /// The layout of a model without files: every weight is the tensor of its own name.
  static WeightMap identity() { return {}; }
};

}  // namespace sinter
