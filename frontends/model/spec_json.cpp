#include "frontends/model/spec_json.h"

#include <cmath>
#include <set>

#include "frontends/model/spec_keys.h"

namespace sinter {

namespace {

/// Reads the members of one object, defaults included, and refuses the members nobody asked for.
class Reader {
 public:
  Reader(JsonView view, llvm::ArrayRef<SpecKey> keys) : view_(std::move(view)), keys_(keys) {}

  JsonView at(std::string_view key) {
    SINTER_CHECK(llvm::any_of(keys_, [&](const SpecKey& row) { return row.name == key; }), "{}",
                 key);
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

  /// The fallback is the value that `out` has.
  Status flag(bool& out, std::string_view key) {
    SINTER_LET(value, at(key).boolean_or(out));
    out = value;
    return {};
  }

  Status optional_size(std::optional<int64_t>& out, std::string_view key) {
    return at(key).present() ? size(out.emplace(), key) : Status();
  }

  Status optional_number(std::optional<double>& out, std::string_view key) {
    return at(key).present() ? number(out.emplace(), key) : Status();
  }

  Status count(int64_t& out, std::string_view key) {
    SINTER_LET(value, at(key).integer_or(0, 0, kLargestSize));
    out = value;
    return {};
  }

  /// Empty where the key is missing.
  Status flags(std::vector<bool>& out, std::string_view key) {
    const JsonView view = at(key);
    if (!view.present()) return {};
    SINTER_LET(list, view.array());
    for (size_t i = 0; i < list->size(); ++i) {
      SINTER_LET(value, view[i].boolean());
      out.push_back(value);
    }
    return {};
  }

  Status numbers(std::vector<double>& out, std::string_view key) {
    const JsonView view = at(key);
    SINTER_LET(list, view.array());
    for (size_t i = 0; i < list->size(); ++i) {
      SINTER_LET(value, view[i].number());
      out.push_back(value);
    }
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
  llvm::ArrayRef<SpecKey> keys_;
  std::set<std::string, std::less<>> read_;
};

Status read_dtype(Reader& reader, DType& dtype) {
  const JsonView value = reader.at("dtype");
  SINTER_LET(name, value.string());
  const auto known = parse_dtype(name);
  if (!known || !is_float(*known))
    return value.fail(fmt::format("'{}' is not a known dtype", printable(name)),
                      "use one of f32, f16, bf16");
  dtype = *known;
  return {};
}

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

Status read_rope_scaling(Rope& rope, Reader& reader) {
  SINTER_TRY(reader.choice(rope.scaling, "scaling",
                           {RopeScaling::none, RopeScaling::linear, RopeScaling::llama3,
                            RopeScaling::yarn, RopeScaling::longrope},
                           std::optional(RopeScaling::none)));
  SINTER_TRY(reader.number(rope.attention_factor, "attention_factor", 1.0));
  if (rope.scaling == RopeScaling::none) return {};
  if (rope.scaling != RopeScaling::longrope) SINTER_TRY(reader.number(rope.factor, "factor"));
  if (rope.scaling == RopeScaling::linear) return {};
  SINTER_TRY(reader.size(rope.original_max_positions, "original_max_positions"));
  if (rope.scaling == RopeScaling::llama3) {
    SINTER_TRY(reader.number(rope.low_freq_factor, "low_freq_factor"));
    return reader.number(rope.high_freq_factor, "high_freq_factor");
  }
  if (rope.scaling == RopeScaling::yarn) {
    SINTER_TRY(reader.number(rope.beta_fast, "beta_fast", 32.0));
    SINTER_TRY(reader.number(rope.beta_slow, "beta_slow", 1.0));
    return reader.flag(rope.truncate, "truncate");
  }
  SINTER_TRY(reader.numbers(rope.short_factors, "short_factors"));
  return reader.numbers(rope.long_factors, "long_factors");
}

Result<Rope> read_rope(const JsonView& view, int64_t head_dim) {
  Reader reader(view, rope_keys());
  Rope rope;
  SINTER_TRY(reader.number(rope.theta, "theta"));
  SINTER_TRY(reader.size(rope.rotary, "rotary", head_dim));
  SINTER_LET(pairing, reader.at("pairing").string_or("half"));
  rope.pairing = pairing;
  SINTER_TRY(read_rope_scaling(rope, reader));
  SINTER_TRY(reader.refuse_others());
  return rope;
}

Status read_ropes(ModelSpec& spec, Reader& outer) {
  const JsonView view = outer.at("rope"), local = outer.at("local_rope");
  if (view.present() || !view.value()) {
    if (!view.value() || !view.value()->object())
      return view.mismatch("an object, or null for learned positions");
    SINTER_LET(rope, read_rope(view, spec.head_dim));
    spec.rope = std::move(rope);
  }
  if (local.present()) {
    SINTER_TRY(local.object());
    SINTER_LET(rope, read_rope(local, spec.head_dim));
    spec.local_rope = std::move(rope);
  }
  return outer.flags(spec.rotated, "rotated");
}

Status read_experts(ModelSpec& spec, Reader& outer) {
  const JsonView view = outer.at("experts");
  if (!view.present()) return {};
  SINTER_TRY(view.object());
  Reader reader(view, experts_keys());
  Experts& experts = spec.experts.emplace();
  SINTER_TRY(reader.size(experts.count, "count"));
  SINTER_TRY(reader.size(experts.chosen, "chosen"));
  SINTER_TRY(reader.size(experts.ffn, "ffn", spec.ffn));
  SINTER_TRY(reader.choice(experts.routing, "routing",
                           {Routing::softmax_first, Routing::choice_first},
                           std::optional(Routing::softmax_first)));
  SINTER_TRY(reader.flag(experts.normalized, "normalized"));
  SINTER_TRY(reader.flag(experts.wide_weights, "wide_weights"));
  SINTER_TRY(reader.count(experts.shared_ffn, "shared_ffn"));
  SINTER_TRY(reader.flag(experts.shared_gate, "shared_gate"));
  SINTER_TRY(reader.flags(experts.sparse, "sparse"));
  return reader.refuse_others();
}

Status read_embedding(ModelSpec& spec, Reader& reader) {
  SINTER_TRY(reader.flag(spec.encoder, "encoder"));
  SINTER_TRY(reader.optional_size(spec.embed_width, "embed_width"));
  SINTER_TRY(reader.number(spec.embed_scale, "embed_scale", 1.0));
  SINTER_TRY(reader.count(spec.token_types, "token_types"));
  SINTER_TRY(reader.flag(spec.embed_norm, "embed_norm"));
  SINTER_TRY(reader.flag(spec.final_norm, "final_norm"));
  SINTER_TRY(reader.flag(spec.tied, "tied"));
  SINTER_TRY(reader.flag(spec.head_bias, "head_bias"));
  SINTER_TRY(reader.number(spec.logit_divisor, "logit_divisor", 1.0));
  return reader.optional_number(spec.logit_softcap, "logit_softcap");
}

Status read_norms(ModelSpec& spec, Reader& reader) {
  SINTER_TRY(reader.choice(spec.norm, "norm",
                           {NormKind::layer_norm, NormKind::rms_norm, NormKind::rms_norm_wide,
                            NormKind::rms_norm_plus_one}));
  SINTER_TRY(reader.flag(spec.norm_bias, "norm_bias"));
  SINTER_TRY(reader.number(spec.norm_eps, "norm_eps"));
  SINTER_TRY(
      reader.choice(spec.norm_place, "norm_place",
                    {NormPlace::before, NormPlace::after, NormPlace::branch, NormPlace::both},
                    std::optional(NormPlace::before)));
  SINTER_TRY(reader.flag(spec.first_norm, "first_norm"));
  SINTER_TRY(reader.number(spec.residual_scale, "residual_scale", 1.0));
  SINTER_TRY(reader.choice(spec.residual, "residual",
                           {ResidualForm::sequential, ResidualForm::parallel},
                           std::optional(ResidualForm::sequential)));
  SINTER_TRY(reader.flag(spec.shared_norm, "shared_norm"));
  return reader.choice(spec.qk_norm, "qk_norm", {QkNorm::none, QkNorm::head, QkNorm::projection},
                       std::optional(QkNorm::none));
}

Status read_attention(ModelSpec& spec, Reader& reader) {
  SINTER_TRY(reader.flag(spec.qkv_bias, "qkv_bias"));
  SINTER_TRY(reader.flag(spec.attention_out_bias, "attention_out_bias"));
  SINTER_TRY(reader.number(spec.attention_scale, "attention_scale",
                           1.0 / std::sqrt(static_cast<double>(spec.head_dim))));
  SINTER_TRY(reader.flag(spec.scale_by_inverse_layer, "scale_by_inverse_layer"));
  SINTER_TRY(reader.optional_number(spec.attention_softcap, "attention_softcap"));
  SINTER_TRY(reader.optional_size(spec.window, "window"));
  SINTER_TRY(reader.flags(spec.windowed, "windowed"));
  return reader.count(spec.bias_distance, "bias_distance");
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
  Reader reader(document.view(), spec_keys());
  SINTER_TRY(read_version(document, reader));
  ModelSpec spec;
  SINTER_LET(name, reader.at("name").string());
  spec.name = name;
  SINTER_TRY(read_dtype(reader, spec.dtype));
  SINTER_TRY(read_sizes(spec, reader));
  SINTER_TRY(read_embedding(spec, reader));
  SINTER_TRY(read_norms(spec, reader));
  SINTER_TRY(read_ropes(spec, reader));
  SINTER_TRY(read_attention(spec, reader));
  SINTER_TRY(read_activation(spec, reader));
  SINTER_TRY(reader.flag(spec.gated, "gated"));
  SINTER_TRY(reader.flag(spec.mlp_bias, "mlp_bias"));
  SINTER_TRY(read_experts(spec, reader));
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

}  // namespace sinter
