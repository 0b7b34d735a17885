#include "frontends/gguf/gguf_config.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "frontends/gguf/gguf_metadata.h"

namespace sinter {
namespace {

/// Keys of all architectures.
constexpr GgufKey kKeys[] = {
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"rope.freq_base", "rope_theta"},
    {"expert_count", "num_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"attention.sliding_window", ""},  // this and the others are read by functions below
    {"attention.sliding_window_pattern", ""},
    {"attention.key_length", ""},
    {"attention.value_length", ""},
    {"vocab_size", ""},
    {"rope.dimension_count", ""},
    {"rope.scaling.type", ""},
    {"rope.scaling.factor", ""},
    {"rope.scaling.finetuned", ""},
    {"rope.scaling.original_context_length", ""},
    {"rope.scaling.attn_factor", ""},
    {"rope.scaling.yarn_beta_fast", ""},
    {"rope.scaling.yarn_beta_slow", ""},
};

/// Tokens that end an answer, beside those that the metadata name.
constexpr std::string_view kEnds[] = {"<|eot_id|>",   "<|im_end|>",    "<|end|>",
                                      "<|eom_id|>",   "<end_of_turn>", "<|end_of_text|>",
                                      "<|endoftext|>"};

const GgufKey* find_key(llvm::ArrayRef<GgufKey> keys, std::string_view key) {
  const auto at =
      std::find_if(keys.begin(), keys.end(), [&](const GgufKey& row) { return row.key == key; });
  return at == keys.end() ? nullptr : &*at;
}

class ConfigMaker {
 public:
  explicit ConfigMaker(const GgufTensors& tensors)
      : tensors_(tensors),
        file_(tensors.file()),
        architecture_(tensors.architecture()),
        metadata_(file_, architecture_.name) {}

  Result<JsonDocument> run() {
    SINTER_LET(layers, metadata_.integer("block_count"));
    layers_ = layers;
    SINTER_TRY(find_head_dim());
    SINTER_TRY(add_plain_members());
    SINTER_TRY(add_type());
    SINTER_TRY(add_rope());
    SINTER_TRY(add_window());
    SINTER_TRY(add_tables());
    add_biases();
    SINTER_TRY(add_own());
    add_ends();
    return JsonDocument{file_.files().front(), JsonValue(std::move(members_))};
  }

 private:
  template <typename T>
  void add(std::string_view member, T value) {
    for (const JsonMember& given : members_)
      if (given.key == member) return;
    members_.push_back({std::string(member), JsonValue(JsonValue::Variant(std::move(value)))});
  }

  bool has(std::string_view tensor) const { return tensors_.tensor(tensor) != nullptr; }
  bool is(std::string_view architecture) const { return architecture_.name == architecture; }

  Status find_head_dim() {
    SINTER_LET(heads, metadata_.integer("attention.head_count"));
    SINTER_LET(hidden, metadata_.integer("embedding_length"));
    if (heads <= 0) return metadata_.refuse("attention.head_count", "expected a positive number");
    SINTER_LET(key, metadata_.integer_or("attention.key_length", hidden / heads));
    SINTER_LET(value, metadata_.integer_or("attention.value_length", key));
    if (key != value || key <= 0)
      return metadata_.refuse("attention.value_length",
                              fmt::format("expected {}, as wide as the keys", key));
    hidden_ = hidden;
    heads_ = heads;
    head_dim_ = key;
    add("head_dim", key);
    return {};
  }

  /// The members that have a key's value.
  Status add_plain_members() {
    const std::string& prefix = metadata_.prefix();
    for (const auto& [name, value] : file_.metadata()) {
      if (!name.starts_with(prefix)) continue;
      const std::string key = name.substr(prefix.size());
      const GgufKey* row = find_key(architecture_.keys, key);
      if (!row) row = find_key(kKeys, key);
      const std::string member(row ? row->member : std::string_view(name));
      if (member.empty()) continue;
      if (const auto* flag = std::get_if<bool>(&value)) {
        add(member, *flag);
      } else if (const auto* text = std::get_if<std::string>(&value)) {
        add(member, *text);
      } else if (!row && !std::holds_alternative<double>(value) &&
                 !std::holds_alternative<int64_t>(value)) {
        add(member, std::string("a list"));
      } else if (std::holds_alternative<double>(value)) {
        SINTER_LET(number, metadata_.number_or(key, 0));
        add(member, number);
      } else {
        SINTER_LET(number, metadata_.integer_or(key, 0));
        add(member, number);
      }
    }
    return {};
  }

  Status add_type() {
    std::string type(architecture_.model_type);
    SINTER_LET(experts, metadata_.integer_or("expert_count", 0));
    SINTER_LET(window, metadata_.integer_or("attention.sliding_window", 0));
    if (is("llama") && experts > 0)
      type = "mixtral";
    else if (is("llama") && window > 0)
      type = "mistral";
    has_bias_members_ = type == architecture_.model_type;
    add("model_type", std::move(type));
    return {};
  }

  Status add_rope() {
    SINTER_LET(rotary, metadata_.integer_or("rope.dimension_count", head_dim_));
    if (!architecture_.partial.empty()) {
      add(architecture_.partial, static_cast<double>(rotary) / static_cast<double>(head_dim_));
    } else if (rotary != head_dim_ && !find_key(architecture_.keys, "rope.dimension_count")) {
      return metadata_.refuse("rope.dimension_count",
                              fmt::format("expected the width of a head, {}", head_dim_));
    }
    const bool has_factor = metadata_.find("rope.scaling.factor") != nullptr;
    SINTER_LET(type, metadata_.text_or("rope.scaling.type", has_factor ? "linear" : "none"));
    if (has("rope_freqs.weight")) {
      if (type == "linear" || type == "yarn")
        return metadata_.refuse("rope.scaling.type", "expected none beside rope_freqs.weight");
      return add_factors("rope_freqs.weight", "rope_freqs.weight");
    }
    if (has("rope_factors_long.weight"))
      return add_factors("rope_factors_short.weight", "rope_factors_long.weight");
    if (type == "none") return {};
    return add_scaling(type);
  }

  /// Divisors of the frequencies, up to the original context and above it.
  Status add_factors(std::string_view usual, std::string_view long_ones) {
    JsonValue::Object scaling;
    scaling.push_back({"rope_type", JsonValue(std::string("longrope"))});
    for (const auto& [member, name] :
         {std::pair("short_factor", usual), std::pair("long_factor", long_ones)}) {
      SINTER_LET(factors, tensors_.floats(name));
      JsonValue::Array list;
      for (float factor : factors)
        list.push_back(JsonValue(shortest_double(static_cast<double>(factor))));
      scaling.push_back({member, JsonValue(std::move(list))});
    }
    SINTER_LET(positions, metadata_.integer("context_length"));
    const bool one_list = usual == long_ones;
    SINTER_LET(original,
               one_list ? Result<int64_t>(positions)
                        : metadata_.integer_or("rope.scaling.original_context_length", positions));
    if (original < 2)
      return metadata_.refuse("rope.scaling.original_context_length", "expected 2 or more");
    const double longer = static_cast<double>(positions) / static_cast<double>(original);
    const double usual_factor =
        longer <= 1 ? 1.0
                    : std::sqrt(1 + std::log(longer) / std::log(static_cast<double>(original)));
    SINTER_LET(said, metadata_.number_or("rope.scaling.attn_factor", usual_factor));
    // The file has the usual factor as float32.
    const double factor = std::abs(said - usual_factor) < 1e-6 ? usual_factor : said;
    if (one_list) scaling.push_back({"original_max_position_embeddings", JsonValue(positions)});
    scaling.push_back({"attention_factor", JsonValue(factor)});
    add("rope_scaling", std::move(scaling));
    return {};
  }

  Status add_scaling(const std::string& type) {
    SINTER_LET(factor, metadata_.number_or("rope.scaling.factor", 1));
    JsonValue::Object scaling;
    scaling.push_back({"rope_type", JsonValue(type)});
    scaling.push_back({"factor", JsonValue(factor)});
    if (type == "yarn") {
      SINTER_LET(original, metadata_.integer("rope.scaling.original_context_length"));
      SINTER_LET(fast, metadata_.number_or("rope.scaling.yarn_beta_fast", 32));
      SINTER_LET(slow, metadata_.number_or("rope.scaling.yarn_beta_slow", 1));
      SINTER_LET(said, metadata_.number_or("rope.scaling.attn_factor", 1));
      scaling.push_back({"original_max_position_embeddings", JsonValue(original)});
      scaling.push_back({"beta_fast", JsonValue(fast)});
      scaling.push_back({"beta_slow", JsonValue(slow)});
      if (said != 1)
        scaling.push_back({"attention_factor", JsonValue(said * (1 + 0.1 * std::log(factor)))});
    }
    add("rope_scaling", std::move(scaling));
    return {};
  }

  Status add_window() {
    SINTER_LET(window, metadata_.integer_or("attention.sliding_window", 0));
    if (window > 0)
      add("sliding_window", window);
    else
      add("sliding_window", std::monostate());
    const GgufValue* pattern = metadata_.find("attention.sliding_window_pattern");
    if (!pattern) return {};
    const auto* list = std::get_if<GgufNumbers>(pattern);
    if (!list) {
      SINTER_LET(period, metadata_.integer("attention.sliding_window_pattern"));
      add("sliding_window_pattern", period);
      return {};
    }
    if (list->type() != GgufValueType::boolean)
      return metadata_.refuse("attention.sliding_window_pattern", "expected truth values");
    JsonValue::Array types;
    for (size_t i = 0; i < list->size(); ++i)
      types.push_back(
          JsonValue(std::string(list->integer(i) != 0 ? "sliding_attention" : "full_attention")));
    add("layer_types", std::move(types));
    return {};
  }

  /// Members that the shapes of tensors say.
  Status add_tables() {
    const GgufTensor* table = tensors_.tensor("token_embd.weight");
    if (!table || table->dims.size() != 2)
      return fail("no embedding table, token_embd.weight", file_.files().front(),
                  "give the file of the model; of a split one, all files");
    add("vocab_size", table->dims[0]);
    add("tie_word_embeddings", !has("output.weight"));
    add("dtype", dtype_name());
    return {};
  }

  /// The type of most elements that are not quantized, if they are most of all; else bfloat16.
  std::string dtype_name() const {
    std::map<std::string_view, double> counts;
    for (const GgufTensor& tensor : file_.tensors())
      if (tensor.dims.size() > 1) {
        double count = 1;
        for (int64_t dim : tensor.dims) count *= static_cast<double>(dim);
        counts[tensor.type == GgufType::F32   ? "float32"
               : tensor.type == GgufType::F16 ? "float16"
                                              : "bfloat16"] += count;
      }
    const auto most = std::max_element(counts.begin(), counts.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
    return std::string(most == counts.end() ? "float32" : most->first);
  }

  void add_biases() {
    if (architecture_.biases && has_bias_members_) add("attention_bias", has("blk.0.attn_q.bias"));
    if (architecture_.mlp_biases && has_bias_members_) add("mlp_bias", has("blk.0.ffn_up.bias"));
  }

  /// Facts of one architecture that its files do not say.
  Status add_own() {
    if (is("gemma2") || is("gemma3")) {
      // The models of 27B scale scores by the width of the model.
      const bool large = layers_ == (is("gemma2") ? 46 : 62);
      add("query_pre_attn_scalar", large ? hidden_ / heads_ : head_dim_);
      if (is("gemma3")) add("rope_local_base_freq", 10000.0);
    } else if (is("gpt2")) {
      const GgufTensor* up = tensors_.tensor("blk.0.ffn_up.weight");
      if (up) add("n_inner", up->dims[0]);
    } else if (is("falcon")) {
      SINTER_LET(kv_heads, metadata_.integer_or("attention.head_count_kv", 1));
      const bool two_norms = has("blk.0.attn_norm_2.weight");
      const bool renewed = two_norms || kv_heads != 1;
      add("new_decoder_architecture", renewed);
      add("multi_query", !renewed);
      add("num_ln_in_parallel_attn", int64_t{two_norms ? 2 : 1});
      add("bias", has("blk.0.attn_qkv.bias"));
    } else if (is("gptneox")) {
      add("attention_bias", has("blk.0.attn_qkv.bias"));
    } else if (is("phi2")) {
      add("qk_layernorm", has("blk.0.attn_q_norm.weight"));
    } else if (is("qwen3moe")) {
      add("norm_topk_prob", true);
    } else if (is("llama")) {
      add("rope_theta", 10000.0);  // other families' default is another
    } else if (is("bert")) {
      const GgufValue* causal = metadata_.find("attention.causal");
      const bool* sees_past = causal ? std::get_if<bool>(causal) : nullptr;
      if (sees_past && *sees_past)
        return metadata_.refuse("attention.causal", "expected false of an encoder");
      const GgufTensor* types = tensors_.tensor("token_types.weight");
      add("type_vocab_size", types && types->dims.size() == 2 ? types->dims[0] : int64_t{1});
    }
    return {};
  }

  void add_ends() {
    std::vector<int64_t> ids;
    const auto add_id = [&](int64_t id) {
      if (id >= 0 && id < INT32_MAX && !llvm::is_contained(ids, id)) ids.push_back(id);
    };
    for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                            "tokenizer.ggml.eom_token_id"})
      if (const GgufValue* value = file_.find(key))
        if (const auto* id = std::get_if<int64_t>(value)) add_id(*id);
    if (const GgufValue* value = file_.find("tokenizer.ggml.tokens"))
      if (const auto* tokens = std::get_if<GgufStrings>(value))
        for (size_t id = 0; id < tokens->size(); ++id)
          if (llvm::is_contained(kEnds, (*tokens)[id])) add_id(static_cast<int64_t>(id));
    JsonValue::Array list;
    for (int64_t id : ids) list.push_back(JsonValue(id));
    add("eos_token_id", std::move(list));
  }

  const GgufTensors& tensors_;
  const GgufFile& file_;
  const GgufArchitecture& architecture_;
  const GgufMetadata metadata_;
  JsonValue::Object members_;
  int64_t layers_ = 0, hidden_ = 0, heads_ = 1, head_dim_ = 0;
  bool has_bias_members_ = true;  // the config has the members for biases
};

/// The rule of `weight`, if the map has none, or in its place.
void set_rule(WeightMap& map, const std::string& weight, const std::string& tensor,
              const TensorRule& cut = {}) {
  for (const std::string end : {".weight", ".bias"}) {
    TensorRule& rule = map.rules[weight + end] = cut;
    rule.tensor = tensor + end;
  }
}

}  // namespace

Result<JsonDocument> gguf_config(const GgufTensors& tensors) { return ConfigMaker(tensors).run(); }

WeightMap gguf_weight_map(const ModelSpec& spec, const GgufTensors& tensors) {
  const auto has = [&](std::string_view name) { return tensors.tensor(name) != nullptr; };
  WeightMap map{
      .prefixes = {""},
      .ignorable = {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"}};
  for (const GgufName& name : gguf_names())
    set_rule(map, std::string(name.weight), std::string(name.tensor));
  if (spec.norm_place == NormPlace::after) {
    set_rule(map, "l{i}.norm1", "blk.{i}.attn_output_norm");
    set_rule(map, "l{i}.norm2", "blk.{i}.layer_output_norm");
  } else if (tensors.architecture().name == "falcon" && has("blk.0.attn_norm_2.weight")) {
    set_rule(map, "l{i}.norm1", "blk.{i}.attn_norm_2");
    set_rule(map, "l{i}.norm2", "blk.{i}.attn_norm");
  }
  const int64_t q = spec.heads * spec.head_dim, kv = spec.kv_heads * spec.head_dim;
  if (has("blk.0.attn_qkv.weight"))
    for (const auto& [part, begin] :
         {std::pair("q", int64_t{0}), std::pair("k", q), std::pair("v", q + kv)})
      set_rule(map, fmt::format("l{{i}}.{}", part), "blk.{i}.attn_qkv",
               {.group_rows = q + 2 * kv, .begin = begin});
  if (spec.gated && !has("blk.0.ffn_gate.weight") && has("blk.0.ffn_up.weight"))
    for (const auto& [part, begin] : {std::pair("gate", int64_t{0}), std::pair("up", spec.ffn)})
      set_rule(map, fmt::format("l{{i}}.mlp.{}", part), "blk.{i}.ffn_up",
               {.group_rows = 2 * spec.ffn, .begin = begin});
  const auto of_expert = [](std::string_view part) {
    return fmt::format("blk.{{i}}.ffn_{}_exps.{{e}}.weight", part);
  };
  map.rules["l{i}.experts.gate_up.weight"] = {.tensor = of_expert("gate"),
                                              .second = of_expert("up")};
  map.rules["l{i}.experts.down.weight"] = {.tensor = of_expert("down")};
  return map;
}

}  // namespace sinter
