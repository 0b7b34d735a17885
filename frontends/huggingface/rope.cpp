// Rotary facts of a config: one dict, or the same facts in top-level keys of older files.
#include <cmath>

#include "frontends/huggingface/config.h"

namespace sinter {

/// One dict laid over another.
struct RopeDict {
  JsonView upper, lower;
  JsonView operator[](std::string_view key) const {
    if (!upper.present()) return lower[key];
    return upper[key].present() || !lower[key].value() ? upper[key] : lower[key];
  }
};

namespace {

constexpr std::string_view kPlainKeys[] = {"rope_type", "type", "rope_theta",
                                           "partial_rotary_factor"};
constexpr std::string_view kLinearKeys[] = {"factor"};
constexpr std::string_view kLlama3Keys[] = {"factor", "low_freq_factor", "high_freq_factor",
                                            "original_max_position_embeddings"};
// "finetuned" says where the weights come from, "attn_factor" is read by no class.
constexpr std::string_view kYarnKeys[] = {"factor",    "attention_factor",
                                          "beta_fast", "attn_factor",
                                          "beta_slow", "finetuned",
                                          "mscale",    "mscale_all_dim",
                                          "truncate",  "original_max_position_embeddings"};
constexpr std::string_view kLongKeys[] = {"factor", "attention_factor", "short_factor",
                                          "long_factor", "original_max_position_embeddings"};

struct RopeType {
  std::string_view name;
  RopeScaling scaling;
  llvm::ArrayRef<std::string_view> keys;  // beside the plain ones
};
// dynamic: theta grows with lengths beyond max_position_embeddings, which no sequence here has.
// su: what longrope was called first.
constexpr RopeType kTypes[] = {
    {"default", RopeScaling::none, {}},          {"linear", RopeScaling::linear, kLinearKeys},
    {"dynamic", RopeScaling::none, kLinearKeys}, {"llama3", RopeScaling::llama3, kLlama3Keys},
    {"yarn", RopeScaling::yarn, kYarnKeys},      {"longrope", RopeScaling::longrope, kLongKeys},
    {"su", RopeScaling::longrope, kLongKeys}};

Result<const RopeType*> find_type(const RopeDict& dict, llvm::ArrayRef<std::string_view> types) {
  // Some files hold both names of the key and differ; the newer one counts.
  const JsonView view = dict["rope_type"].present() ? dict["rope_type"] : dict["type"];
  SINTER_LET(name, view.string_or("default"));
  // The first files of Phi-3 with two lists of factors said yarn.
  if (name == "yarn" && dict["short_factor"].present()) name = "longrope";
  std::string known;
  for (const RopeType& type : kTypes) {
    if (!types.empty() && !llvm::is_contained(types, type.name)) continue;
    if (type.name == name) return &type;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", type.name);
  }
  return view.fail(fmt::format("rope type '{}' is not supported", printable(name)),
                   "supported: " + known);
}

Status refuse_unknown(const JsonView& dict, const RopeType& type) {
  if (!dict.present()) return {};
  SINTER_LET(members, dict.object());
  for (const JsonMember& member : *members)
    if (!member.value.is_null() && !llvm::is_contained(kPlainKeys, member.key) &&
        !llvm::is_contained(type.keys, member.key))
      return dict[member.key].mismatch(
          fmt::format("no such key in rotary positions of type {}", type.name),
          "remove the key if it does not change the model's results");
  return {};
}

Result<std::vector<double>> read_factors(const JsonView& view) {
  SINTER_LET(list, view.array());
  std::vector<double> factors;
  for (size_t i = 0; i < list->size(); ++i) {
    SINTER_LET(factor, view[i].number());
    factors.push_back(factor);
  }
  return factors;
}

/// YaRN's temperature of attention for a text that is `scale` times as long.
double yarn_temperature(double scale, double mscale) {
  return scale <= 1.0 ? 1.0 : 0.1 * mscale * std::log(scale) + 1.0;
}

}  // namespace

/// Reads one dict and what older files say at top level into a Rope whose fields' places begin with
/// `prefix`.
class HfConfig::RopeReader {
 public:
  RopeReader(HfConfig& config, const ModelSpec& spec, std::string prefix, RopeDict dict)
      : config_(config), spec_(spec), prefix_(std::move(prefix)), dict_(std::move(dict)) {}

  Result<Rope> run(const RopeKeys& keys) {
    SINTER_LET(outer_theta, config_.find(prefix_ + "theta", keys.theta));
    const JsonView theta = dict_["rope_theta"].present() ? dict_["rope_theta"] : outer_theta;
    config_.place(prefix_ + "theta", theta);
    SINTER_LET(base, theta.number_or(keys.default_theta));
    rope_.theta = base;
    SINTER_TRY(read_rotary(keys));
    SINTER_LET(type, find_type(dict_, keys.types));
    rope_.scaling = type->scaling;
    SINTER_TRY(refuse_unknown(dict_.upper, *type));
    SINTER_TRY(refuse_unknown(dict_.lower, *type));
    SINTER_TRY(read_scaling(keys));
    return std::move(rope_);
  }

 private:
  Status read_rotary(const RopeKeys& keys) {
    SINTER_LET(outer, config_.find(prefix_ + "rotary", keys.partial));
    const JsonView inner = dict_["partial_rotary_factor"];
    const JsonView part = inner.present() ? inner : outer;
    SINTER_LET(partial, part.number_or(keys.default_partial, 0.0, 1.0));
    if (!keys.turns_part && partial != 1.0)
      return part.mismatch("1", "heads of this model_type turn as a whole");
    if (part.present())
      config_.place(prefix_ + "rotary", part);
    else
      config_.places_[prefix_ + "rotary"] = config_.places_["head_dim"];
    rope_.rotary = static_cast<int64_t>(static_cast<double>(spec_.head_dim) * partial);
    return {};
  }

  Status number(double& out, std::string_view field, std::string_view key,
                std::optional<double> fallback = std::nullopt) {
    config_.place(prefix_ + std::string(field), dict_[key]);
    SINTER_LET(value, fallback ? dict_[key].number_or(*fallback) : dict_[key].number());
    out = value;
    return {};
  }

  Status read_scaling(const RopeKeys& keys) {
    SINTER_LET(outer, config_.find(prefix_ + "original_max_positions",
                                   {"original_max_position_embeddings"}));
    if (rope_.scaling == RopeScaling::none) return {};
    if (rope_.scaling == RopeScaling::linear) return number(rope_.factor, "factor", "factor");
    const bool outer_counts = outer.present() || keys.original_max_positions;
    const JsonView original = outer_counts ? outer : dict_["original_max_position_embeddings"];
    config_.place(prefix_ + "original_max_positions", original);
    SINTER_LET(positions,
               original.integer_or(keys.original_max_positions.value_or(spec_.max_positions), 1));
    rope_.original_max_positions = positions;
    // A null of yarn says: as many times as the text is longer.
    std::optional<double> stretch;
    if (rope_.scaling == RopeScaling::yarn && dict_["factor"].value())
      stretch = static_cast<double>(spec_.max_positions) / static_cast<double>(positions);
    if (rope_.scaling != RopeScaling::longrope)
      SINTER_TRY(number(rope_.factor, "factor", "factor", stretch));
    switch (rope_.scaling) {
      case RopeScaling::llama3:
        SINTER_TRY(number(rope_.low_freq_factor, "low_freq_factor", "low_freq_factor"));
        return number(rope_.high_freq_factor, "high_freq_factor", "high_freq_factor");
      case RopeScaling::yarn:
        return read_yarn();
      default:
        return read_long();
    }
  }

  Status read_yarn() {
    SINTER_TRY(number(rope_.beta_fast, "beta_fast", "beta_fast", 32.0));
    SINTER_TRY(number(rope_.beta_slow, "beta_slow", "beta_slow", 1.0));
    if (rope_.beta_fast == 0.0) rope_.beta_fast = 32.0;  // transformers takes 0 for absent
    if (rope_.beta_slow == 0.0) rope_.beta_slow = 1.0;
    SINTER_LET(truncate, dict_["truncate"].boolean_or(true));
    rope_.truncate = truncate;
    SINTER_LET(mscale, dict_["mscale"].number_or(0.0));
    SINTER_LET(mscale_all, dict_["mscale_all_dim"].number_or(0.0));
    const double usual =
        mscale != 0.0 && mscale_all != 0.0
            ? yarn_temperature(rope_.factor, mscale) / yarn_temperature(rope_.factor, mscale_all)
            : yarn_temperature(rope_.factor, 1.0);
    return number(rope_.attention_factor, "attention_factor", "attention_factor", usual);
  }

  Status read_long() {
    for (auto [factors, field, key] :
         {std::tuple(&rope_.short_factors, "short_factors", "short_factor"),
          std::tuple(&rope_.long_factors, "long_factors", "long_factor")}) {
      config_.place(prefix_ + field, dict_[key]);
      SINTER_LET(list, read_factors(dict_[key]));
      *factors = std::move(list);
    }
    const auto original = static_cast<double>(rope_.original_max_positions);
    SINTER_LET(factor,
               dict_["factor"].number_or(static_cast<double>(spec_.max_positions) / original));
    const double usual =
        factor <= 1.0 ? 1.0 : std::sqrt(1.0 + std::log(factor) / std::log(original));
    return number(rope_.attention_factor, "attention_factor", "attention_factor", usual);
  }

  HfConfig& config_;
  const ModelSpec& spec_;
  std::string prefix_;
  RopeDict dict_;
  Rope rope_;
};

Result<JsonView> HfConfig::rope_dict() {
  SINTER_LET(scaling, find("rope", {"rope_scaling"}));
  SINTER_LET(parameters, find("rope", {"rope_parameters"}));
  for (const JsonView* view : {&scaling, &parameters})
    if (view->present()) SINTER_TRY(view->object());
  const bool old_form = scaling.present() && !scaling.value()->object()->empty();
  return old_form ? scaling : parameters;
}

Status HfConfig::rope(ModelSpec& spec, const RopeKeys& keys) {
  SINTER_LET(dict, rope_dict());
  const JsonView none(document_.file, nullptr);
  SINTER_LET(rope, RopeReader(*this, spec, "rope.", {dict, none}).run(keys));
  spec.rope = std::move(rope);
  return {};
}

Status HfConfig::layered_rope(ModelSpec& spec, const RopeKeys& full, const RopeKeys& local) {
  SINTER_TRY(rope_dict());  // marks both as read
  const JsonView scaling = root_["rope_scaling"], parameters = root_["rope_parameters"];
  if (parameters.present()) {
    SINTER_LET(members, parameters.object());
    for (const JsonMember& member : *members)
      if (!member.value.is_null() && member.key != "full_attention" &&
          member.key != "sliding_attention")
        return parameters[member.key].mismatch("full_attention or sliding_attention",
                                               "correct or remove the key");
  }
  const JsonView none(document_.file, nullptr);
  SINTER_LET(rope,
             RopeReader(*this, spec, "rope.", {scaling, parameters["full_attention"]}).run(full));
  SINTER_LET(
      other,
      RopeReader(*this, spec, "local_rope.", {parameters["sliding_attention"], none}).run(local));
  if (spec.window && other != rope) spec.local_rope = std::move(other);
  spec.rope = std::move(rope);
  return {};
}

}  // namespace sinter
