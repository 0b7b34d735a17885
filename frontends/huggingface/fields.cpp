// HfConfig: typed access to a config's keys with their aliases, and the account of what was read.
#include "frontends/huggingface/config.h"
#include "frontends/huggingface/harmless.h"

namespace sinter {

namespace {

/// A scalar as text, such that equal texts mean equal values: 10000 is 10000.0.
std::string scalar_text(const JsonValue& value) {
  if (const int64_t* whole = value.integer()) return fmt::format("{}", static_cast<double>(*whole));
  if (const double* real = value.real()) return fmt::format("{}", *real);
  if (const JsonOversized* number = value.oversized()) return printable(number->spelling, 60);
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
  if (!found) found = keys.empty() ? JsonView(document_.file, nullptr) : root_[keys.front()];
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

Status HfConfig::sizes(ModelSpec& spec) {
  SINTER_TRY(size(spec.vocabulary, "vocabulary", {"vocab_size"}));
  SINTER_TRY(size(spec.hidden, "hidden", {"hidden_size"}));
  SINTER_TRY(size(spec.layers, "layers", {"num_hidden_layers"}));
  SINTER_TRY(size(spec.heads, "heads", {"num_attention_heads"}));
  SINTER_TRY(size(spec.ffn, "ffn", {"intermediate_size"}));
  return size(spec.max_positions, "max_positions", {"max_position_embeddings"});
}

Status HfConfig::number(double& out, std::string_view field, const Keys& keys, double fallback) {
  SINTER_LET(view, find(field, keys));
  SINTER_LET(value, view.number_or(fallback));
  out = value;
  return {};
}

Status HfConfig::optional_size(std::optional<int64_t>& out, std::string_view field,
                               const Keys& keys, std::optional<int64_t> absent) {
  SINTER_LET(view, find(field, keys));
  out = view.value() ? std::nullopt : absent;
  return view.present() ? size(out.emplace(), field, keys) : Status();
}

Status HfConfig::optional_number(std::optional<double>& out, std::string_view field,
                                 const Keys& keys, std::optional<double> absent) {
  SINTER_LET(view, find(field, keys));
  out = view.value() ? std::nullopt : absent;
  return view.present() ? number(out.emplace(), field, keys, 0.0) : Status();
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

Status HfConfig::head_dim(ModelSpec& spec, const Keys& keys, std::optional<int64_t> fallback) {
  if (!keys.empty()) {
    SINTER_LET(view, find("head_dim", keys));
    if (view.present() || fallback) return size(spec.head_dim, "head_dim", keys, fallback);
  }
  if (spec.hidden % spec.heads != 0)
    return fail(fmt::format("hidden size {} is not divisible by {} heads", spec.hidden, spec.heads),
                places()("heads"), "give the model's true sizes");
  spec.head_dim = spec.hidden / spec.heads;
  SINTER_LET(copy, find("head_dim", {"head_dim"}));
  SINTER_LET(said, copy.integer_or(spec.head_dim));
  if (said != spec.head_dim)
    return copy.mismatch(fmt::format("{}, hidden size by heads", spec.head_dim),
                         "other sizes are not supported for this model_type");
  places_["head_dim"] = places_["heads"];
  return {};
}

Status HfConfig::windows(ModelSpec& spec, std::optional<int64_t> size, bool typed,
                         llvm::function_ref<bool(int64_t)> slides) {
  spec.window = size;
  for (int64_t layer = 0; layer < std::min(spec.layers, kMaxLayers); ++layer)
    spec.windowed.push_back(spec.window && slides(layer));
  SINTER_LET(types, find("windowed", {"layer_types"}));
  if (types.present()) {
    SINTER_LET(list, types.array());
    if (static_cast<int64_t>(list->size()) != spec.layers)
      return types.fail(fmt::format("{} layer types for {} layers", list->size(), spec.layers),
                        "give one type a layer");
    for (size_t i = 0; i < list->size(); ++i) {
      SINTER_LET(type, types[i].string());
      if (type != "full_attention" && type != "sliding_attention")
        return types[i].mismatch("full_attention or sliding_attention",
                                 "other layer types are not supported");
      const bool sliding = type == "sliding_attention";
      if (sliding && !spec.window)
        return types[i].mismatch("full_attention, as there is no window",
                                 fmt::format("give the window's size ({})", places()("window")));
      if (!typed && sliding != spec.windowed[i])
        return types[i].mismatch(spec.windowed[i] ? "sliding_attention" : "full_attention",
                                 "all layers of this model_type are alike");
      spec.windowed[i] = sliding;
    }
  }
  // One spec for one meaning.
  if (!llvm::is_contained(spec.windowed, true)) spec.window.reset();
  if (!spec.window || !llvm::is_contained(spec.windowed, false)) spec.windowed.clear();
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

Status HfConfig::refuse_unread(const IgnoredKeys& ignored,
                               llvm::ArrayRef<std::string_view> others) const {
  SINTER_LET(members, root_.object());
  for (const JsonMember& member : *members) {
    const JsonView view = root_[member.key];
    const bool wished = llvm::is_contained(ignored.names, member.key);
    const bool read = read_.contains(member.key);
    if (wished && read && view.present())
      return sinter::fail("a key that is read for this model_type cannot be ignored",
                          fmt::format("{}: {}", document_.file, printable(view.pointer())),
                          fmt::format("leave out --ignore-key {}", printable(member.key)),
                          ExitCode::usage);
    if (wished || read || !view.present() || is_harmless_key(member.key) ||
        llvm::is_contained(others, member.key))
      continue;
    if (!member.key.starts_with('_'))
      return view.mismatch("no such key for this model_type",
                           "if it does not change the model's results, remove the key or give "
                           "--ignore-key " +
                               printable(member.key));
    if (ignored.note)
      ignored.note(fmt::format("{}: {}: the key is not known and is ignored", document_.file,
                               printable(view.pointer())));
  }
  return {};
}

}  // namespace sinter
