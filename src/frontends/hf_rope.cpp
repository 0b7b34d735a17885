// Rotary facts of a config: one dict, or the same facts in top-level keys of older files.
#include "frontends/hf_config.h"

namespace sinter {

namespace {

// What a rope dict may hold. attention_factor and the rest belong to types that are not supported.
constexpr std::string_view kPlainKeys[] = {"rope_type", "type", "rope_theta",
                                           "partial_rotary_factor"};
constexpr std::string_view kLinearKeys[] = {"factor"};
constexpr std::string_view kLlama3Keys[] = {"factor", "low_freq_factor", "high_freq_factor",
                                            "original_max_position_embeddings"};

llvm::ArrayRef<std::string_view> keys_of(RopeScaling scaling) {
  switch (scaling) {
    case RopeScaling::none:
      return {};
    case RopeScaling::linear:
      return kLinearKeys;
    case RopeScaling::llama3:
      return kLlama3Keys;
  }
  return {};
}

Status refuse_unknown(const JsonView& dict, RopeScaling scaling) {
  SINTER_LET(members, dict.object());
  for (const JsonMember& member : *members)
    if (!member.value.is_null() && !llvm::is_contained(kPlainKeys, member.key) &&
        !llvm::is_contained(keys_of(scaling), member.key))
      return dict[member.key].mismatch(
          fmt::format("no such key in rotary positions of type {}", to_string(scaling)),
          "remove the key if it does not change the model's results");
  return {};
}

}  // namespace

Status HfConfig::read_rope_scaling(Rope& rope, const JsonView& dict, const ModelSpec& spec) {
  // Some files hold both names of the key and differ; the newer one counts.
  const JsonView type = dict["rope_type"].present() ? dict["rope_type"] : dict["type"];
  SINTER_LET(name, type.string_or("default"));
  if (name == "linear")
    rope.scaling = RopeScaling::linear;
  else if (name == "llama3")
    rope.scaling = RopeScaling::llama3;
  else if (name != "default")
    return type.fail(fmt::format("rope type '{}' is not supported", printable(name)),
                     "supported: default, linear, llama3");
  if (dict.present()) SINTER_TRY(refuse_unknown(dict, rope.scaling));
  SINTER_LET(outer, find("rope.original_max_positions", {"original_max_position_embeddings"}));
  if (rope.scaling == RopeScaling::none) return {};

  const auto number = [&](double& out, std::string_view field, std::string_view key) -> Status {
    place(field, dict[key]);
    SINTER_LET(value, dict[key].number());
    out = value;
    return {};
  };
  SINTER_TRY(number(rope.factor, "rope.factor", "factor"));
  if (rope.scaling != RopeScaling::llama3) return {};
  SINTER_TRY(number(rope.low_freq_factor, "rope.low_freq_factor", "low_freq_factor"));
  SINTER_TRY(number(rope.high_freq_factor, "rope.high_freq_factor", "high_freq_factor"));
  const JsonView original = outer.present() ? outer : dict["original_max_position_embeddings"];
  place("rope.original_max_positions", original);
  SINTER_LET(positions, original.integer_or(spec.max_positions, 1));
  rope.original_max_positions = positions;
  return {};
}

Status HfConfig::rope(ModelSpec& spec, const RopeKeys& keys) {
  SINTER_LET(scaling, find("rope", {"rope_scaling"}));
  SINTER_LET(parameters, find("rope", {"rope_parameters"}));
  for (const JsonView* view : {&scaling, &parameters})
    if (view->present()) SINTER_TRY(view->object());
  const bool old_form = scaling.present() && !scaling.value()->object()->empty();
  const JsonView dict = old_form ? scaling : parameters;

  Rope rope;
  SINTER_LET(outer_theta, find("rope.theta", keys.theta));
  const JsonView theta = dict["rope_theta"].present() ? dict["rope_theta"] : outer_theta;
  place("rope.theta", theta);
  SINTER_LET(base, theta.number_or(10000.0));
  rope.theta = base;

  SINTER_LET(outer_part, find("rope.rotary", keys.partial));
  const JsonView inner_part = dict["partial_rotary_factor"];
  const JsonView part = inner_part.present() ? inner_part : outer_part;
  SINTER_LET(partial, part.number_or(keys.default_partial, 0.0, 1.0));
  if (part.present())
    place("rope.rotary", part);
  else
    places_["rope.rotary"] = places_["head_dim"];
  rope.rotary = static_cast<int64_t>(static_cast<double>(spec.head_dim) * partial);
  SINTER_TRY(read_rope_scaling(rope, dict, spec));
  spec.rope = std::move(rope);
  return {};
}

}  // namespace sinter
