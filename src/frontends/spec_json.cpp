#include "frontends/spec_json.h"

#include <cmath>
#include <set>

namespace sinter {

namespace {

/// Reads the members of one object, defaults included, and refuses the members nobody asked for.
class Reader {
 public:
  explicit Reader(JsonView view) : view_(std::move(view)) {}

  JsonView at(std::string_view key) {
    read_.emplace(key);
    return view_[key];
  }

  Status size(int64_t& out, std::string_view key, std::optional<int64_t> fallback = std::nullopt) {
    const JsonView value = at(key);
    SINTER_LET(number, fallback ? value.integer_or(*fallback, 1, kLargestSize)
                                : value.integer(1, kLargestSize));
    out = number;
    return {};
  }

  Status number(double& out, std::string_view key, std::optional<double> fallback = std::nullopt) {
    const JsonView value = at(key);
    SINTER_LET(number, fallback ? value.number_or(*fallback) : value.number());
    out = number;
    return {};
  }

  Status flag(bool& out, std::string_view key) {
    SINTER_LET(value, at(key).boolean_or(false));
    out = value;
    return {};
  }

  /// One of the enumerators `choices`, by its name.
  template <typename T>
  Status choice(T& out, std::string_view key, std::initializer_list<T> choices,
                std::optional<T> fallback = std::nullopt) {
    const JsonView value = at(key);
    if (!value.present() && fallback) {
      out = *fallback;
      return {};
    }
    SINTER_LET(name, value.string());
    std::string known;
    for (T choice : choices) {
      if (to_string(choice) == name) {
        out = choice;
        return {};
      }
      known += fmt::format("{}{}", known.empty() ? "" : ", ", to_string(choice));
    }
    return value.fail(fmt::format("'{}' is not a known {}", printable(name), key),
                      "use one of " + known);
  }

  Status refuse_others() const {
    SINTER_LET(members, view_.object());
    for (const JsonMember& member : *members)
      if (!read_.contains(member.key))
        return view_[member.key].mismatch("no such key", "correct or remove the key");
    return {};
  }

 private:
  JsonView view_;
  std::set<std::string, std::less<>> read_;
};

Status read_version(const JsonDocument& document, Reader& reader) {
  const JsonView version = reader.at("sinter_spec");
  if (!version.value() && document.view()["model_type"].value())
    return document.view().fail("this is a Hugging Face config, not a spec",
                                "give the folder that it lies in");
  SINTER_LET(number, version.integer());
  if (number != 1)
    return version.mismatch("format version 1", "use a newer version of this program");
  return {};
}

Status read_activation(ModelSpec& spec, Reader& reader) {
  const JsonView view = reader.at("activation");
  SINTER_LET(name, view.string());
  const std::optional<OpKind> kind = parse_op_kind(name);
  if (!kind || !llvm::is_contained(activation_kinds(), *kind))
    return view.fail(fmt::format("activation '{}' is not supported", printable(name)),
                     "supported: " + activation_list());
  spec.activation = *kind;
  return {};
}

Status read_rope(ModelSpec& spec, Reader& outer) {
  const JsonView view = outer.at("rope");
  if (view.value() && !view.present()) return {};
  if (!view.value() || !view.value()->object())
    return view.mismatch("an object, or null for learned positions");
  Reader reader(view);
  Rope rope;
  SINTER_TRY(reader.number(rope.theta, "theta"));
  SINTER_TRY(reader.size(rope.rotary, "rotary", spec.head_dim));
  SINTER_LET(pairing, reader.at("pairing").string_or("half"));
  rope.pairing = pairing;
  SINTER_TRY(reader.choice(rope.scaling, "scaling",
                           {RopeScaling::none, RopeScaling::linear, RopeScaling::llama3},
                           std::optional(RopeScaling::none)));
  SINTER_TRY(reader.number(rope.attention_factor, "attention_factor", 1.0));
  if (rope.scaling != RopeScaling::none) SINTER_TRY(reader.number(rope.factor, "factor"));
  if (rope.scaling == RopeScaling::llama3) {
    SINTER_TRY(reader.number(rope.low_freq_factor, "low_freq_factor"));
    SINTER_TRY(reader.number(rope.high_freq_factor, "high_freq_factor"));
    SINTER_TRY(reader.size(rope.original_max_positions, "original_max_positions"));
  }
  SINTER_TRY(reader.refuse_others());
  spec.rope = std::move(rope);
  return {};
}

Status read_sizes(ModelSpec& spec, Reader& reader) {
  SINTER_TRY(reader.size(spec.vocabulary, "vocabulary"));
  SINTER_TRY(reader.size(spec.hidden, "hidden"));
  SINTER_TRY(reader.size(spec.layers, "layers"));
  SINTER_TRY(reader.size(spec.heads, "heads"));
  SINTER_TRY(reader.size(spec.kv_heads, "kv_heads", spec.heads));
  const JsonView head_dim = reader.at("head_dim");
  if (!head_dim.present() && spec.hidden % spec.heads != 0)
    return head_dim.fail(
        fmt::format("hidden {} is not divisible by {} heads", spec.hidden, spec.heads),
        "correct them or give head_dim");
  SINTER_TRY(reader.size(spec.head_dim, "head_dim", spec.hidden / spec.heads));
  SINTER_TRY(reader.size(spec.ffn, "ffn"));
  return reader.size(spec.max_positions, "max_positions");
}

}  // namespace

Result<ModelSpec> read_spec(const JsonDocument& document) {
  SINTER_TRY(document.view().object());
  Reader reader(document.view());
  SINTER_TRY(read_version(document, reader));
  ModelSpec spec;
  SINTER_LET(name, reader.at("name").string());
  spec.name = name;
  SINTER_TRY(reader.choice(spec.dtype, "dtype", {DType::f32, DType::f16, DType::bf16}));
  SINTER_TRY(read_sizes(spec, reader));
  SINTER_TRY(reader.choice(spec.norm, "norm", {NormKind::layer_norm, NormKind::rms_norm}));
  SINTER_TRY(reader.number(spec.norm_eps, "norm_eps"));
  SINTER_TRY(reader.choice(spec.residual, "residual",
                           {ResidualForm::sequential, ResidualForm::parallel},
                           std::optional(ResidualForm::sequential)));
  SINTER_TRY(read_rope(spec, reader));
  SINTER_TRY(read_activation(spec, reader));
  SINTER_TRY(reader.flag(spec.gated, "gated"));
  SINTER_TRY(reader.flag(spec.qkv_bias, "qkv_bias"));
  SINTER_TRY(reader.flag(spec.attention_out_bias, "attention_out_bias"));
  SINTER_TRY(reader.flag(spec.mlp_bias, "mlp_bias"));
  SINTER_TRY(reader.flag(spec.tied, "tied"));
  SINTER_TRY(reader.number(spec.attention_scale, "attention_scale",
                           1.0 / std::sqrt(static_cast<double>(spec.head_dim))));
  SINTER_TRY(reader.flag(spec.scale_by_inverse_layer, "scale_by_inverse_layer"));
  if (const JsonView window = reader.at("window"); window.present())
    SINTER_TRY(reader.size(spec.window.emplace(), "window"));
  if (const JsonView eos = reader.at("eos"); eos.present()) {
    SINTER_LET(ids, eos.array());
    for (size_t i = 0; i < ids->size(); ++i) {
      SINTER_LET(id, eos[i].integer(0, INT32_MAX));
      spec.eos.push_back(id);
    }
  }
  SINTER_TRY(reader.refuse_others());
  const auto place = [&](std::string_view field) {
    std::string pointer(field);
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    return fmt::format("{}: /{}", document.file, pointer);
  };
  SINTER_TRY(check_spec(spec, place));
  return spec;
}

std::string print_spec(const ModelSpec& spec) {
  std::string out = "{\n  \"sinter_spec\": 1";
  const auto put = [&](std::string_view key, const std::string& value) {
    out += fmt::format(",\n  \"{}\": {}", key, value);
  };
  const auto text = [&](std::string_view key, std::string_view value) {
    put(key, json_quoted(value));
  };
  const auto number = [&](std::string_view key, auto value) { put(key, fmt::format("{}", value)); };
  text("name", spec.name);
  text("dtype", to_string(spec.dtype));
  number("vocabulary", spec.vocabulary);
  number("hidden", spec.hidden);
  number("layers", spec.layers);
  number("heads", spec.heads);
  number("kv_heads", spec.kv_heads);
  number("head_dim", spec.head_dim);
  number("ffn", spec.ffn);
  number("max_positions", spec.max_positions);
  text("norm", to_string(spec.norm));
  number("norm_eps", spec.norm_eps);
  text("residual", to_string(spec.residual));
  if (spec.rope) {
    const Rope& rope = *spec.rope;
    std::string value =
        fmt::format("{{\"theta\": {}, \"rotary\": {}, \"pairing\": \"{}\", \"scaling\": \"{}\"",
                    rope.theta, rope.rotary, rope.pairing, to_string(rope.scaling));
    if (rope.scaling != RopeScaling::none) value += fmt::format(", \"factor\": {}", rope.factor);
    if (rope.scaling == RopeScaling::llama3)
      value += fmt::format(
          ", \"low_freq_factor\": {}, \"high_freq_factor\": {}, \"original_max_positions\": {}",
          rope.low_freq_factor, rope.high_freq_factor, rope.original_max_positions);
    put("rope", value + fmt::format(", \"attention_factor\": {}}}", rope.attention_factor));
  } else {
    put("rope", "null");
  }
  text("activation", op_info(spec.activation).name);
  number("gated", spec.gated);
  number("qkv_bias", spec.qkv_bias);
  number("attention_out_bias", spec.attention_out_bias);
  number("mlp_bias", spec.mlp_bias);
  number("tied", spec.tied);
  number("attention_scale", spec.attention_scale);
  number("scale_by_inverse_layer", spec.scale_by_inverse_layer);
  put("window", spec.window ? std::to_string(*spec.window) : "null");
  put("eos", fmt::format("[{}]", fmt::join(spec.eos, ", ")));
  return out + "\n}\n";
}

}  // namespace sinter
