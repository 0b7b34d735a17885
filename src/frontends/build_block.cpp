#include "frontends/build_block.h"

namespace sinter {

namespace {

class Block {
 public:
  Block(ModelGraph& graph, int64_t layer)
      : g_(graph), spec_(graph.spec), layer_(layer), prefix_(fmt::format("l{}.", layer)) {}

  ValueId run(ValueId x) {
    const ValueId attention = attend(g_.norm(x, name("norm1")));
    if (spec_.residual == ResidualForm::sequential) {
      const ValueId middle = g_.named(OpKind::add, {x, attention}, name("res1"));
      return g_.named(OpKind::add, {middle, mlp(g_.norm(middle, name("norm2")))}, name("res2"));
    }
    const ValueId feed = mlp(g_.norm(x, name("norm2")));
    const ValueId branches = g_.named(OpKind::add, {attention, feed}, name("branches"));
    return g_.named(OpKind::add, {x, branches}, name("res"));
  }

 private:
  std::string name(std::string_view value) const { return prefix_ + std::string(value); }

  ValueId attend(ValueId x) {
    const ValueId q = g_.linear(x, name("q"), spec_.qkv_bias);
    const ValueId k = g_.linear(x, name("k"), spec_.qkv_bias);
    const ValueId v = g_.linear(x, name("v"), spec_.qkv_bias);
    const bool streams = spec_.streaming.has_value();
    const ValueId q_rows = rotate(q, "q", spec_.heads, g_.tokens, g_.token_rope);
    const ValueId k_rows = streams ? k : rotate(k, "k", spec_.kv_heads, g_.tokens, g_.token_rope);
    ValueId keys = append(k_rows, "k", "keys");
    const ValueId values = append(v, "v", "values");
    if (streams) keys = rotate(keys, "keys", spec_.kv_heads, g_.visible_rows, g_.row_rope);
    Attributes attrs;
    attrs.set(AttrName::heads, spec_.heads);
    attrs.set(AttrName::kv_heads, spec_.kv_heads);
    attrs.set(AttrName::scale, spec_.scale_by_inverse_layer
                                   ? spec_.attention_scale / static_cast<double>(layer_ + 1)
                                   : spec_.attention_scale);
    if (spec_.window) attrs.set(AttrName::window, *spec_.window);
    const ValueId attention = g_.builder.op(
        OpKind::attention, {q_rows, keys, values, g_.first, g_.last}, attrs, name("attn"));
    return g_.linear(attention, name("attn_out"), spec_.attention_out_bias);
  }

  /// Rotary positions on each head of x [rows, heads * head_dim].
  ValueId rotate(ValueId x, std::string_view which, int64_t heads, Dim rows,
                 const std::optional<ModelGraph::RotaryTables>& tables) {
    if (!tables) return x;
    const Dims dims = g_.builder.type(x).dims;
    const ValueId split = g_.builder.reshape(x, {rows, heads, spec_.head_dim}, name(which) + "_heads");
    const ValueId turned = g_.builder.op(OpKind::rope, {split, tables->cos, tables->sin},
                                         Attributes()
                                             .set(AttrName::rotary, spec_.rope->rotary)
                                             .set(AttrName::pairing, spec_.rope->pairing),
                                         name(which) + "_rot");
    return g_.builder.reshape(turned, dims, name(which) + "_rows");
  }

  /// Writes the tokens' rows to the layer's cache and looks at its visible part.
  ValueId append(ValueId rows, std::string_view which, std::string_view view) {
    const ValueId cache = g_.state(name(which) + "_cache");
    const ValueId next =
        g_.named(OpKind::kv_append, {cache, rows, g_.slot}, name(which) + "_append");
    return g_.builder.slice(next, 0, 0, g_.visible_rows, name(view));
  }

  ValueId mlp(ValueId x) {
    ValueId inner;
    if (spec_.gated) {
      const ValueId gate = g_.linear(x, name("mlp.gate"), spec_.mlp_bias);
      const ValueId up = g_.linear(x, name("mlp.up"), spec_.mlp_bias);
      const ValueId active = g_.named(spec_.activation, {gate},
                                      name("mlp.") + std::string(op_info(spec_.activation).name));
      inner = g_.named(OpKind::mul, {active, up}, name("mlp.act"));
    } else {
      const ValueId up = g_.linear(x, name("mlp.up"), spec_.mlp_bias);
      inner = g_.named(spec_.activation, {up}, name("mlp.act"));
    }
    return g_.linear(inner, name("mlp.down"), spec_.mlp_bias);
  }

  ModelGraph& g_;
  const ModelSpec& spec_;
  int64_t layer_;
  std::string prefix_;
};

}  // namespace

ModelGraph::ModelGraph(const ModelSpec& model_spec, const Module& module, Graph& graph)
    : spec(model_spec), builder(graph, module.symbols) {
  for (const Weight& weight : module.weights) types_.emplace(weight.name, weight.type);
  for (const State& state : module.states) types_.emplace(state.name, state.type);
}

ValueId ModelGraph::input(std::string name, Dim extent) {
  return builder.leaf(OpKind::input, {DType::i32, {extent}}, std::move(name));
}

ValueId ModelGraph::leaf(OpKind kind, const std::string& name) {
  if (const auto at = leaves_.find(name); at != leaves_.end()) return at->second;
  const auto type = types_.find(name);
  SINTER_CHECK(type != types_.end(), "no weight or state {}", name);
  return leaves_[name] = builder.leaf(kind, type->second, name);
}

ValueId ModelGraph::linear(ValueId x, const std::string& name, bool bias) {
  llvm::SmallVector<ValueId, 3> operands{x, weight(name + ".weight")};
  if (bias) operands.push_back(weight(name + ".bias"));
  return named(OpKind::linear, operands, name);
}

ValueId ModelGraph::norm(ValueId x, const std::string& name) {
  llvm::SmallVector<ValueId, 3> operands{x, weight(name + ".weight")};
  if (spec.norm == NormKind::layer_norm) operands.push_back(weight(name + ".bias"));
  const OpKind kind = spec.norm == NormKind::layer_norm ? OpKind::layer_norm : OpKind::rms_norm;
  return builder.op(kind, operands, Attributes().set(AttrName::eps, spec.norm_eps), name);
}

ModelGraph::RotaryTables build_rope_tables(ModelGraph& g, ValueId positions, const std::string& prefix) {
  const Rope& rope = *g.spec.rope;
  const Dim count = g.builder.type(positions).dims[0];
  const ValueId position = g.builder.cast(positions, DType::f32, prefix + "pos");
  const ValueId column = g.builder.reshape(position, {count, 1}, prefix + "column");
  const ValueId angle = g.named(OpKind::mul, {column, g.weight("rope.inv_freq")}, prefix + "angle");
  const auto table = [&](OpKind function, const std::string& name) {
    const bool scaled = rope.attention_factor != 1.0, narrow = g.spec.dtype != DType::f32;
    ValueId value = g.named(function, {angle}, scaled || narrow ? name + ".exact" : name);
    if (scaled) {
      const ValueId factor = g.builder.constant(rope.attention_factor, DType::f32);
      value = g.named(OpKind::mul, {value, factor}, narrow ? name + ".scaled" : name);
    }
    return g.builder.cast(value, g.spec.dtype, name);
  };
  const ValueId cos = table(OpKind::cos, prefix + "cos");
  return {cos, table(OpKind::sin, prefix + "sin")};
}

ValueId build_block(ModelGraph& graph, int64_t layer, ValueId x) {
  return Block(graph, layer).run(x);
}

}  // namespace sinter
