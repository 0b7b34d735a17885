// HfConfig: typed access to a config's keys with their aliases, and the account of what was read.
#include "frontends/hf_config.h"
#include "frontends/hf_harmless.h"

namespace sinter {

namespace {

/// A scalar as text, such that equal texts mean equal values: 10000 is 10000.0.
std::string scalar_text(const JsonValue& value) {
  if (const int64_t* whole = value.integer()) return fmt::format("{}", static_cast<double>(*whole));
  if (const double* real = value.real()) return fmt::format("{}", *real);
  if (const bool* truth = value.boolean()) return *truth ? "true" : "false";
  if (const std::string* text = value.string()) return fmt::format("\"{}\"", printable(*text, 60));
  return "not a scalar";
}

struct ActivationName {
  std::string_view name;
  OpKind kind;
};
// The names of transformers' ACT2FN; "gelu" is the exact one, with erf.
constexpr ActivationName kActivationNames[] = {
    {"gelu", OpKind::gelu},           {"gelu_python", OpKind::gelu},
    {"gelu_new", OpKind::gelu_tanh},  {"gelu_pytorch_tanh", OpKind::gelu_tanh},
    {"gelu_fast", OpKind::gelu_tanh}, {"quick_gelu", OpKind::quick_gelu},
    {"silu", OpKind::silu},           {"swish", OpKind::silu},
    {"relu", OpKind::relu},           {"tanh", OpKind::tanh},
    {"sigmoid", OpKind::sigmoid},
};

}  // namespace

Result<JsonView> HfConfig::find(std::string_view field, const Keys& keys) {
  std::optional<JsonView> found;
  for (std::string_view key : keys) {
    read_.emplace(key);
    const JsonView view = root_[key];
    if (!view.present()) continue;
    if (!found) found = view;
    const std::string first = scalar_text(*found->value()), own = scalar_text(*view.value());
    if (first != own)
      return view.fail(fmt::format("the value is {}, but {}, which says the same thing, is {}", own,
                                   found->pointer(), first),
                       "remove the wrong one");
  }
  if (!found) found = root_[keys.front()];
  place(field, *found);
  return *std::move(found);
}

Status HfConfig::size(int64_t& out, std::string_view field, const Keys& keys,
                      std::optional<int64_t> fallback) {
  SINTER_LET(view, find(field, keys));
  if (!view.present() && fallback) {
    out = *fallback;
    return {};
  }
  SINTER_LET(value, view.integer(1, kLargestSize));
  out = value;
  return {};
}

Status HfConfig::number(double& out, std::string_view field, const Keys& keys, double fallback) {
  SINTER_LET(view, find(field, keys));
  SINTER_LET(value, view.number_or(fallback));
  out = value;
  return {};
}

Status HfConfig::flag(bool& out, std::string_view field, const Keys& keys, bool fallback) {
  SINTER_LET(view, find(field, keys));
  SINTER_LET(value, view.boolean_or(fallback));
  out = value;
  return {};
}

Status HfConfig::activation(OpKind& out, const Keys& keys, std::string_view fallback) {
  SINTER_LET(view, find("activation", keys));
  SINTER_LET(name, view.string_or(std::string(fallback)));
  std::string known;
  for (const ActivationName& candidate : kActivationNames) {
    if (candidate.name == name) {
      out = candidate.kind;
      return {};
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", candidate.name);
  }
  return view.fail(fmt::format("activation '{}' is not supported", printable(name)),
                   "supported: " + known);
}

Status HfConfig::head_dim(ModelSpec& spec, const Keys& keys) {
  if (!keys.empty()) {
    SINTER_LET(view, find("head_dim", keys));
    if (view.present()) return size(spec.head_dim, "head_dim", keys);
  }
  if (spec.hidden % spec.heads != 0)
    return fail(fmt::format("hidden size {} is not divisible by {} heads", spec.hidden, spec.heads),
                places()("heads"), "give the model's true sizes");
  spec.head_dim = spec.hidden / spec.heads;
  places_["head_dim"] = places_["heads"];
  return {};
}

void HfConfig::place(std::string_view field, const JsonView& view) {
  places_.insert_or_assign(std::string(field), printable(view.pointer()));
}

FieldPlace HfConfig::places() const {
  return [file = document_.file, places = places_](std::string_view field) {
    const auto at = places.find(field);
    return at == places.end() ? file : fmt::format("{}: {}", file, at->second);
  };
}

Status HfConfig::refuse_unread() const {
  SINTER_LET(members, root_.object());
  for (const JsonMember& member : *members) {
    const JsonView view = root_[member.key];
    if (!view.present() || read_.contains(member.key) || is_harmless_key(member.key)) continue;
    return view.mismatch("no such key for this model_type",
                         "remove the key if it does not change the model's results");
  }
  return {};
}

}  // namespace sinter
