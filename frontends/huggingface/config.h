// Reads a Hugging Face config.json of any of its three generations into a ModelSpec. Every key is
// used, known to be harmless, ignored with a note (an unknown one with an underscore in front) or
// at the caller's wish, or refused by name; a key that is null counts as absent.
#pragma once

#include <functional>
#include <set>

#include "frontends/files/json.h"
#include "frontends/model/model_spec.h"
#include "frontends/quantized/scheme.h"

namespace sinter {

/// A model as its config describes it, and how its checkpoint names the weights.
struct HfModel {
  ModelSpec spec;
  WeightMap map;
  bool tied_said = false;                         // spec.tied is a key's value, not a default
  std::optional<Quantization> quantization = {};  // of quantization_config
  std::string quantization_text = {};             // the object, for read_quantization_text()
};

/// Keys that a family does not read and that are not refused.
struct IgnoredKeys {
  std::vector<std::string> names = {};  // by the caller; one that the family reads is an error
  /// Gets a line for each key with an underscore in front that is ignored without being known.
  std::function<void(const std::string&)> note = {};
};

/// `name` is what the model is called; `generation` (generation_config.json) may be null, its
/// eos_token_id wins. Errors name file, JSON pointer, the value and what is possible.
Result<HfModel> read_hf_config(const JsonDocument& config, const JsonDocument* generation,
                               std::string name, const IgnoredKeys& ignored = {});

/// A config being read: remembers which keys were used and where each field of the spec came from.
/// Borrows the document.
class HfConfig {
 public:
  using Keys = std::vector<std::string_view>;

  /// `root` is the object that describes the model: the document's, or one inside it.
  HfConfig(const JsonDocument& document, JsonView root)
      : document_(document), root_(std::move(root)) {}

  /// The value under the first of `keys` that is set, else the missing place of the first (without
  /// keys: a place that is missing). It becomes the place of `field`. Other generations' copies of
  /// the fact must agree.
  Result<JsonView> find(std::string_view field, const Keys& keys);

  // Each fills `out`; without a fallback the key is required.
  Status size(int64_t& out, std::string_view field, const Keys& keys,
              std::optional<int64_t> fallback = std::nullopt);
  /// The sizes that every model has, all required, under the names that most families use.
  Status sizes(ModelSpec& spec);
  Status number(double& out, std::string_view field, const Keys& keys, double fallback);
  // Here null says that there is none; `absent` is what no key says.
  Status optional_size(std::optional<int64_t>& out, std::string_view field, const Keys& keys,
                       std::optional<int64_t> absent = std::nullopt);
  Status optional_number(std::optional<double>& out, std::string_view field, const Keys& keys,
                         std::optional<double> absent = std::nullopt);
  Status flag(bool& out, std::string_view field, const Keys& keys, bool fallback);
  Status activation(OpKind& out, const Keys& keys, std::string_view fallback);

  /// spec.head_dim: the key if given and set, else the fallback, else hidden / heads, which must be
  /// exact. Without `keys`, a key head_dim must say the latter.
  Status head_dim(ModelSpec& spec, const Keys& keys,
                  std::optional<int64_t> fallback = std::nullopt);

  struct RopeKeys {
    Keys theta = {}, partial = {"partial_rotary_factor"};  // top-level keys; theta may be empty
    double default_theta = 10000.0, default_partial = 1.0;
    bool turns_part = false;                      // the family may turn a part of a head
    llvm::ArrayRef<std::string_view> types = {};  // empty: all
    /// Where no top-level key says it: counts before the dict's.
    std::optional<int64_t> original_max_positions = {};
  };
  /// Rotary facts: rope_scaling, else rope_parameters, else top-level keys. Needs spec.head_dim and
  /// spec.max_positions.
  Status rope(ModelSpec& spec, const RopeKeys& keys);
  /// The same for layers without and with a window, which rope_parameters tells apart; rope_scaling
  /// adds to what it says of the first. Needs spec.window.
  Status layered_rope(ModelSpec& spec, const RopeKeys& full, const RopeKeys& local);

  /// spec.window and spec.windowed: layer_types where `typed` and set, else `slides`. Layer types
  /// of a family that is not `typed` must say the same as `slides`. Needs spec.layers; `size`: of
  /// the window, if there is one.
  Status windows(ModelSpec& spec, std::optional<int64_t> size, bool typed,
                 llvm::function_ref<bool(int64_t layer)> slides);

  /// `field` stands at `view`.
  void place(std::string_view field, const JsonView& view);
  /// Where a field was found: "file: /pointer", or the file alone.
  FieldPlace places() const;

  /// Fails if a key that is set was neither read, nor named harmless, nor is ignored, nor is one of
  /// `others`; also if a key is to be ignored that was read.
  Status refuse_unread(const IgnoredKeys& ignored,
                       llvm::ArrayRef<std::string_view> others = {}) const;
  bool was_read(std::string_view key) const { return read_.contains(key); }

 private:
  class RopeReader;
  Result<JsonView> rope_dict();

  const JsonDocument& document_;
  JsonView root_;
  std::set<std::string, std::less<>> read_;
  std::map<std::string, std::string, std::less<>> places_;
};

/// Defaults for fields of Llama and the families after it that their files may omit.
struct LlamaDefaults {
  // Absent: required.
  std::optional<int64_t> vocabulary = {}, hidden = {}, layers = {}, heads = {}, ffn = {},
                         max_positions = {};
  std::optional<int64_t> kv_heads = {};  // absent: as many as query heads
  std::optional<int64_t> head_dim = {};  // absent: hidden / heads
  bool own_head_dim = true;              // there is a key head_dim
  double norm_eps = 1e-6;
  HfConfig::Keys activation = {"hidden_act"};
  std::string_view default_activation = "silu";
  bool tied = false;
};
/// Sizes, RMSNorm, gated MLP, scale of attention; not the rotary positions.
Result<ModelSpec> read_llama_fields(HfConfig& config, const LlamaDefaults& defaults = {});

/// Reads the fields that BERT and the encoders after it share: sizes, norms after the branches and
/// of the embeddings, biases everywhere, learned positions.
Result<ModelSpec> read_bert_fields(HfConfig& config);
/// Weight names of a Hugging Face bert checkpoint; `model` is the class's name for its part without
/// a head.
WeightMap bert_weight_map(const std::string& model);
/// Learned positions whose table begins with `unused` rows: spec.max_positions counts the others.
void skip_positions(ModelSpec& spec, WeightMap& map, int64_t unused);
/// Fails if the config asks for a decoder (`is_decoder`).
Status refuse_decoder(HfConfig& config);

/// Weight names of a Hugging Face llama checkpoint.
WeightMap llama_weight_map();
/// `weight` and its bias are the tensor "{p}`tensor`" and its bias, cut as `cut` says.
void add_rules(WeightMap& map, const std::string& weight, const std::string& tensor,
               const TensorRule& cut = {});
/// The same for "l{i}.`weight`" and "{p}layers.{i}.`tensor`".
void add_layer_rule(WeightMap& map, const std::string& weight, const std::string& tensor,
                    const TensorRule& cut = {});
/// The rules of router and experts: tensors "layers.{i}.`block`.gate" and, for each expert,
/// "layers.{i}.`block`.experts.{e}.`gate`", `up` and `down`. Files may have the names that
/// transformers has in memory instead: the experts of a layer in one tensor.
void add_expert_rules(WeightMap& map, const std::string& block, const std::string& gate,
                      const std::string& up, const std::string& down);

/// The window of a Qwen, which `use_sliding_window` turns on.
Result<std::optional<int64_t>> read_qwen_window(HfConfig& config);

// The families: their fields and the names of their weights, nothing else.
Result<HfModel> read_hf_bert(HfConfig& config);
Result<HfModel> read_hf_distilbert(HfConfig& config);
Result<HfModel> read_hf_falcon(HfConfig& config);
Result<HfModel> read_hf_gemma(HfConfig& config);
Result<HfModel> read_hf_gemma2(HfConfig& config);
Result<HfModel> read_hf_gemma3(HfConfig& config);
Result<HfModel> read_hf_gpt2(HfConfig& config);
Result<HfModel> read_hf_gpt_neox(HfConfig& config);
Result<HfModel> read_hf_granite(HfConfig& config);
Result<HfModel> read_hf_granitemoe(HfConfig& config);
Result<HfModel> read_hf_llama(HfConfig& config);
Result<HfModel> read_hf_mistral(HfConfig& config);
Result<HfModel> read_hf_mixtral(HfConfig& config);
Result<HfModel> read_hf_modernbert(HfConfig& config);
Result<HfModel> read_hf_mpnet(HfConfig& config);
Result<HfModel> read_hf_olmo2(HfConfig& config);
Result<HfModel> read_hf_olmoe(HfConfig& config);
Result<HfModel> read_hf_opt(HfConfig& config);
Result<HfModel> read_hf_phi(HfConfig& config);
Result<HfModel> read_hf_phi3(HfConfig& config);
Result<HfModel> read_hf_qwen2(HfConfig& config);
Result<HfModel> read_hf_qwen2_moe(HfConfig& config);
Result<HfModel> read_hf_qwen3(HfConfig& config);
Result<HfModel> read_hf_qwen3_moe(HfConfig& config);
Result<HfModel> read_hf_roberta(HfConfig& config);
Result<HfModel> read_hf_smollm3(HfConfig& config);

}  // namespace sinter
