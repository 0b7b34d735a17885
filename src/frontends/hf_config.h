// Reads a Hugging Face config.json of any of its three generations into a ModelSpec. Every key is
// used, known to be harmless, or refused by name; a key that is null counts as absent.
#pragma once

#include <set>

#include "frontends/json.h"
#include "frontends/model_spec.h"

namespace sinter {

/// A model as its config describes it, and how its checkpoint names the weights.
struct HfModel {
  ModelSpec spec;
  WeightMap map;
};

/// `name` is what the model is called; `generation` (generation_config.json) may be null, its
/// eos_token_id wins. Errors name file, JSON pointer, the value and what is possible.
Result<HfModel> read_hf_config(const JsonDocument& config, const JsonDocument* generation,
                               std::string name);

/// A config being read: remembers which keys were used and where each field of the spec came from.
/// Borrows the document.
class HfConfig {
 public:
  using Keys = std::vector<std::string_view>;

  explicit HfConfig(const JsonDocument& document) : document_(document), root_(document.view()) {}

  /// The value under the first of `keys` that is set, else the missing place of the first. It
  /// becomes the place of `field`. Other generations' copies of the fact must agree.
  Result<JsonView> find(std::string_view field, const Keys& keys);

  // Each fills `out`; without a fallback the key is required.
  Status size(int64_t& out, std::string_view field, const Keys& keys,
              std::optional<int64_t> fallback = std::nullopt);
  Status number(double& out, std::string_view field, const Keys& keys, double fallback);
  Status flag(bool& out, std::string_view field, const Keys& keys, bool fallback);
  Status activation(OpKind& out, const Keys& keys, std::string_view fallback);

  /// spec.head_dim: the key if given and set, else hidden / heads, which must be exact.
  Status head_dim(ModelSpec& spec, const Keys& keys);

  struct RopeKeys {
    Keys theta, partial;  // top-level keys
    double default_partial = 1.0;
  };
  /// Rotary facts: rope_scaling, else rope_parameters, else top-level keys. Needs spec.head_dim and
  /// spec.max_positions.
  Status rope(ModelSpec& spec, const RopeKeys& keys);

  /// `field` stands at `view`.
  void place(std::string_view field, const JsonView& view);
  /// Where a field was found: "file: /pointer", or the file alone.
  FieldPlace places() const;

  /// Fails if a key that is set was neither read nor named harmless.
  Status refuse_unread() const;

 private:
  Status read_rope_scaling(Rope& rope, const JsonView& dict, const ModelSpec& spec);

  const JsonDocument& document_;
  JsonView root_;
  std::set<std::string, std::less<>> read_;
  std::map<std::string, std::string, std::less<>> places_;
};

// The families: their fields and the names of their weights, nothing else.
Result<HfModel> read_hf_gpt2(HfConfig& config);
Result<HfModel> read_hf_gpt_neox(HfConfig& config);
Result<HfModel> read_hf_llama(HfConfig& config);

/// Weight names of a Hugging Face llama checkpoint.
WeightMap llama_weight_map();

}  // namespace sinter
