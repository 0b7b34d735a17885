#include "frontends/model/build_block.h"

namespace sinter {

namespace {

class Block {
 public:
  Block(ModelGraph& graph, int64_t layer)
      : g_(graph), spec_(graph.spec), layer_(layer), prefix_(fmt::format("l{}.", layer)) {}

  ValueId run(ValueId x) {
    const auto attention = [&](ValueId h) { return attend(h); };
    const auto feed = [&](ValueId h) { return feed_forward(h); };
    if (spec_.residual == ResidualForm::sequential)
      return branch(branch(x, "1", attention), "2", feed);
    const ValueId h1 = g_.norm(x, name("norm1"));
    const ValueId attended = attend(h1);
    const ValueId h2 = spec_.shared_norm ? h1 : g_.norm(x, name("norm2"));
    const ValueId fed = feed_forward(h2);
    const ValueId branches = g_.named(OpKind::add, {attended, fed}, name("branches"));
    return g_.named(OpKind::add, {x, branches}, name("res"));
  }

 private:
  std::string name(std::string_view value) const { return prefix_ + std::string(value); }

  /// x and a branch of it, with the norms where the spec has them.
  ValueId branch(ValueId x, const std::string& number, llvm::function_ref<ValueId(ValueId)> f) {
    const NormPlace place = spec_.norm_place;
    const bool before = place == NormPlace::before || place == NormPlace::both;
    const bool normed = before && (number != "1" || spec_.has_first_norm(layer_));
    ValueId y = f(normed ? g_.norm(x, name("norm" + number)) : x);
    if (place == NormPlace::branch || place == NormPlace::both)
      y = g_.norm(y, name("post_norm" + number));
    if (spec_.residual_scale != 1.0)
      y = g_.scaled(y, spec_.residual_scale, name("branch" + number));
    const ValueId sum = g_.named(OpKind::add, {x, y}, name("res" + number));
    return place == NormPlace::after ? g_.norm(sum, name("norm" + number)) : sum;
  }

  ValueId attend(ValueId x) {
    const ValueId q = g_.linear(x, name("q"), spec_.qkv_bias);
    const ValueId k = g_.linear(x, name("k"), spec_.qkv_bias);
    const ValueId v = g_.linear(x, name("v"), spec_.qkv_bias);
    const ValueId q_normed = norm_heads(q, "q", spec_.heads);
    const ValueId k_normed = norm_heads(k, "k", spec_.kv_heads);
    const std::optional<ModelGraph::RotaryTables> tables = !spec_.rotates(layer_) ? std::nullopt
                                                           : local()              ? g_.local_rope
                                                                                  : g_.token_rope;
    const bool streams = spec_.streaming.has_value();
    const ValueId q_rows = rotate(q_normed, "q", spec_.heads, tables);
    const ValueId k_rows = streams ? k_normed : rotate(k_normed, "k", spec_.kv_heads, tables);
    // An encoder keeps nothing: the call's own tokens are all there is to see.
    ValueId keys = spec_.encoder ? k_rows : append(k_rows, "k", "keys");
    const ValueId values = spec_.encoder ? v : append(v, "v", "values");
    if (streams && tables) keys = rotate(keys, "keys", spec_.kv_heads, g_.row_rope);
    const bool near = spec_.encoder && spec_.has_window(layer_);
    const ValueId first = near ? g_.near_first : g_.first, last = near ? g_.near_last : g_.last;
    const ValueId attention =
        spec_.bias_distance != 0 ? biased_attention(q_rows, keys, values, first, last)
                                 : g_.builder.op(OpKind::attention,
                                                 {joined(q_rows, "q_row"), joined(keys, "key_rows"),
                                                  joined(values, "value_rows"), first, last},
                                                 attributes(), name("attn"));
    return g_.linear(attention, name("attn_out"), spec_.attention_out_bias);
  }

  double scale() const {
    return spec_.scale_by_inverse_layer ? spec_.attention_scale / static_cast<double>(layer_ + 1)
                                        : spec_.attention_scale;
  }

  Attributes attributes() const {
    Attributes attrs;
    attrs.set(AttrName::heads, spec_.heads);
    attrs.set(AttrName::kv_heads, spec_.kv_heads);
    attrs.set(AttrName::scale, scale());
    if (spec_.attention_softcap) attrs.set(AttrName::softcap, *spec_.attention_softcap);
    if (spec_.has_window(layer_) && !spec_.encoder) attrs.set(AttrName::window, *spec_.window);
    return attrs;
  }

  /// Op `attention` as products and a softmax, with the position bias between them.
  ValueId biased_attention(ValueId q, ValueId k, ValueId v, ValueId first, ValueId last) {
    const auto einsum = [&](llvm::ArrayRef<ValueId> operands, const char* letters, DType dtype,
                            const char* value) {
      return g_.builder.op(
          OpKind::einsum, operands,
          Attributes().set(AttrName::spec, std::string(letters)).set(AttrName::dtype, dtype),
          name(value));
    };
    const DType dtype = g_.builder.type(q).dtype;
    const ValueId products = einsum({split(q, "q", spec_.heads), split(k, "k", spec_.heads)},
                                    "nhd,thd->hnt", DType::f32, "attn.products");
    const ValueId scores =
        g_.named(OpKind::add, {g_.scaled(products, scale(), name("attn.scaled")), g_.position_bias},
                 name("attn.scores"));
    Attributes softmax;
    softmax.set(AttrName::dtype, dtype).set(AttrName::scale, 1.0);
    if (spec_.attention_softcap) softmax.set(AttrName::softcap, *spec_.attention_softcap);
    const ValueId probs = g_.builder.op(OpKind::attention_softmax, {scores, first, last}, softmax,
                                        name("attn.probs"));
    const ValueId mixed =
        einsum({probs, split(v, "v", spec_.heads)}, "hnt,thd->nhd", dtype, "attn");
    return joined(mixed, "attn_rows");
  }

  /// The layer has the rotary positions of layers with a window.
  bool local() const { return spec_.local_rope && spec_.has_window(layer_); }
  const Rope& layer_rope() const { return local() ? *spec_.local_rope : *spec_.rope; }

  /// The norm of queries or keys [tokens, heads * head_dim], where the spec has one. Normed heads
  /// keep their axis: [tokens, heads, head_dim].
  ValueId norm_heads(ValueId x, std::string_view which, int64_t heads) {
    if (spec_.qk_norm == QkNorm::none) return x;
    if (spec_.qk_norm == QkNorm::head) x = split(x, which, heads);
    return g_.norm(x, name(which) + "_norm");
  }

  ValueId split(ValueId x, std::string_view which, int64_t heads) {
    const Dims dims = g_.builder.type(x).dims;
    if (dims.size() == 3) return x;
    return g_.builder.reshape(x, {dims[0], heads, spec_.head_dim}, name(which) + "_heads");
  }

  /// Rotary positions on each head of x [rows, heads * head_dim] or [rows, heads, head_dim].
  ValueId rotate(ValueId x, std::string_view which, int64_t heads,
                 const std::optional<ModelGraph::RotaryTables>& tables) {
    if (!tables) return x;
    const Dims dims = g_.builder.type(x).dims;
    const ValueId turned =
        g_.builder.op(OpKind::rope, {split(x, which, heads), tables->cos, tables->sin},
                      Attributes()
                          .set(AttrName::rotary, layer_rope().rotary)
                          .set(AttrName::pairing, layer_rope().pairing),
                      name(which) + "_rot");
    return dims.size() == 3 ? turned : g_.builder.reshape(turned, dims, name(which) + "_rows");
  }

  /// Writes the tokens' rows to the layer's cache and looks at its visible part.
  ValueId append(ValueId rows, std::string_view which, std::string_view view) {
    const ValueId cache = g_.state(name(which) + "_cache");
    if (g_.builder.type(cache).rank() == 3) rows = split(rows, which, spec_.kv_heads);
    const ValueId next =
        g_.named(OpKind::kv_append, {cache, rows, g_.slot}, name(which) + "_append");
    return g_.builder.slice(next, 0, 0, g_.visible_rows, name(view));
  }

  /// The heads of a row side by side.
  ValueId joined(ValueId x, std::string_view which) {
    const Dims dims = g_.builder.type(x).dims;
    if (dims.size() == 2) return x;
    return g_.builder.reshape(x, {dims[0], dims[1].constant() * dims[2].constant()}, name(which));
  }

  ValueId feed_forward(ValueId x) {
    return spec_.has_experts(layer_) ? experts(x, *spec_.experts) : mlp(x, "mlp");
  }

  /// An MLP whose weights and values are named `part` + ".gate", ...
  ValueId mlp(ValueId x, const std::string& part) {
    ValueId inner;
    if (spec_.gated) {
      const ValueId gate = g_.linear(x, name(part + ".gate"), spec_.mlp_bias);
      const ValueId up = g_.linear(x, name(part + ".up"), spec_.mlp_bias);
      inner = gated(gate, up, part);
    } else {
      const ValueId up = g_.linear(x, name(part + ".up"), spec_.mlp_bias);
      inner = g_.named(spec_.activation, {up}, name(part + ".act"));
    }
    return g_.linear(inner, name(part + ".down"), spec_.mlp_bias);
  }

  ValueId gated(ValueId gate, ValueId up, const std::string& part) {
    const ValueId active = g_.named(spec_.activation, {gate},
                                    name(part + ".") + std::string(op_info(spec_.activation).name));
    return g_.named(OpKind::mul, {active, up}, name(part + ".act"));
  }

  struct Choice {
    ValueId experts, weights;  // [tokens, chosen], by descending probability or logit
  };

  /// The router's product is in the model's type; softmax and choice are in f32.
  Choice choose(ValueId x, const Experts& experts) {
    const ValueId router = g_.linear(x, name("router"), false);
    ValueId scores = g_.builder.cast(router, DType::f32, name("router32"));
    const bool softmax_first = experts.routing == Routing::softmax_first;
    if (softmax_first) scores = g_.named(OpKind::softmax, {scores}, name("probabilities"));
    const ValueId ids =
        g_.builder.op(OpKind::top_k, {scores}, Attributes().set(AttrName::count, experts.chosen),
                      name("experts"));
    ValueId weights = g_.builder.op(OpKind::gather, {scores, ids},
                                    Attributes().set(AttrName::axis, int64_t{1}), name("chosen"));
    if (!softmax_first) weights = g_.named(OpKind::softmax, {weights}, name("probabilities"));
    if (experts.normalized) {
      const ValueId sum = g_.builder.reduce(OpKind::reduce_sum, weights, {1}, name("chosen.sum"));
      weights = g_.named(OpKind::div, {weights, sum}, name("chosen.normalized"));
    }
    if (!experts.wide_weights) weights = g_.builder.cast(weights, spec_.dtype, name("weights"));
    return {ids, weights};
  }

  /// The chosen experts of each token, and the shared one.
  ValueId experts(ValueId x, const Experts& experts) {
    const auto [ids, weights] = choose(x, experts);
    const auto product = [&](ValueId rows, const std::string& part) {
      return g_.expert_linear(rows, ids, name(part));
    };
    const ValueId both = product(x, "experts.gate_up");
    const ValueId gate = g_.builder.slice(both, 2, 0, experts.ffn, name("experts.gate"));
    const ValueId up = g_.builder.slice(both, 2, experts.ffn, experts.ffn, name("experts.up"));
    const ValueId down = product(gated(gate, up, "experts"), "experts.down");
    const ValueId sum = g_.named(OpKind::expert_sum, {down, weights}, name("experts.sum"));
    if (experts.shared_ffn == 0) return sum;
    ValueId shared = mlp(x, "shared");
    if (experts.shared_gate) {
      const ValueId gate_logit = g_.linear(x, name("shared_gate"), false);
      const ValueId part = g_.named(OpKind::sigmoid, {gate_logit}, name("shared_gate.sigmoid"));
      shared = g_.named(OpKind::mul, {part, shared}, name("shared"));
    }
    return g_.named(OpKind::add, {sum, shared}, name("mlp"));
  }

  ModelGraph& g_;
  const ModelSpec& spec_;
  int64_t layer_;
  std::string prefix_;
};

}  // namespace

ModelGraph::ModelGraph(const ModelSpec& model_spec, const Module& module,
                       const OrderWeights& orders, Graph& graph)
    : spec(model_spec), builder(graph, module.symbols), orders_(orders) {
  for (const Weight& weight : module.weights) {
    types_.emplace(weight.name, weight.type);
    for (const Op& op : weight.init.ops())
      if (op.kind == OpKind::pack_codes) packed_.emplace(weight.name, op.attrs);
  }
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

ValueId ModelGraph::matrix(const std::string& name) {
  const ValueId stored = weight(name);
  const auto attrs = packed_.find(name);
  return attrs == packed_.end() ? stored : builder.op(OpKind::dequantize, {stored}, attrs->second);
}

ValueId ModelGraph::columns_for(ValueId x, const std::string& name) {
  const auto order = orders_.find(name);
  if (order == orders_.end()) return x;
  const std::pair key(x.index, order->second);
  if (const auto at = ordered_.find(key); at != ordered_.end()) return at->second;
  const ValueId columns = builder.transpose(x, {1, 0});
  const ValueId sorted =
      builder.op(OpKind::embedding, {columns, weight(order->second)}, {}, name + ".columns");
  return ordered_[key] = builder.transpose(sorted, {1, 0});
}

ValueId ModelGraph::linear(ValueId x, const std::string& name, bool bias) {
  llvm::SmallVector<ValueId, 3> operands{columns_for(x, name + ".weight"),
                                         matrix(name + ".weight")};
  if (bias) operands.push_back(weight(name + ".bias"));
  return named(OpKind::linear, operands, name);
}

ValueId ModelGraph::expert_linear(ValueId x, ValueId experts, const std::string& name) {
  const auto codes = packed_.find(name + ".weight");
  return builder.op(OpKind::expert_linear, {x, weight(name + ".weight"), experts},
                    codes == packed_.end() ? Attributes() : codes->second, name);
}

ValueId ModelGraph::norm(ValueId x, const std::string& name) {
  const DType dtype = builder.type(x).dtype;
  const bool rounds = spec.wide_norm() && dtype != DType::f32;
  if (rounds) x = builder.cast(x, DType::f32, name + ".wide");
  llvm::SmallVector<ValueId, 3> operands{x, weight(name + ".weight")};
  if (spec.norm == NormKind::layer_norm && spec.norm_bias)
    operands.push_back(weight(name + ".bias"));
  const OpKind kind = spec.norm == NormKind::layer_norm ? OpKind::layer_norm : OpKind::rms_norm;
  x = builder.op(kind, operands, Attributes().set(AttrName::eps, spec.norm_eps),
                 rounds ? name + ".exact" : name);
  return builder.cast(x, dtype, name);
}

ValueId ModelGraph::scaled(ValueId x, double factor, const std::string& name) {
  const DType dtype = builder.type(x).dtype;
  if (dtype != DType::f32) x = builder.cast(x, DType::f32, name + ".wide");
  x = named(OpKind::mul, {x, builder.constant(factor, DType::f32)},
            dtype == DType::f32 ? name : name + ".exact");
  return builder.cast(x, dtype, name);
}

ModelGraph::RotaryTables build_rope_tables(ModelGraph& g, const Rope& rope,
                                           const std::string& frequencies, ValueId positions,
                                           const std::string& prefix) {
  const Dim count = g.builder.type(positions).dims[0];
  const ValueId position = g.builder.cast(positions, DType::f32, prefix + "pos");
  const ValueId column = g.builder.reshape(position, {count, 1}, prefix + "column");
  const ValueId angle = g.named(OpKind::mul, {column, g.weight(frequencies)}, prefix + "angle");
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
