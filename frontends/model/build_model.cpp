#include "frontends/model/build_model.h"

#include <algorithm>

#include "frontends/model/build_block.h"

namespace sinter {

namespace {

// Positions in Module::symbols.
constexpr SymbolId kPrefillTokens{0}, kWantedRows{1}, kDecodeTokens{2}, kCacheRows{3},
    kVisibleRows{4};
constexpr int64_t kCacheStep = 8;

std::vector<Symbol> model_symbols(const ModelSpec& spec) {
  if (spec.encoder) return {{.name = "N", .low = 1, .high = spec.max_positions}};
  const auto rows_in_steps_of = [&](int64_t step) {
    return spec.sequences * ((spec.max_positions + step - 1) / step * step);
  };
  const int64_t max_rows = rows_in_steps_of(kSequenceStep);
  const int64_t most_tokens =
      std::max(spec.max_positions, std::min(rows_in_steps_of(kCacheStep), kMaxPackedTokens));
  return {{.name = "N", .low = 1, .high = most_tokens},
          {.name = "M", .low = 1, .high = spec.max_positions},
          {.name = "B", .low = 1, .high = spec.sequences},
          {.name = "R", .low = kCacheStep, .high = max_rows, .multiple = kCacheStep},
          {.name = "K",
           .low = kCacheStep,
           .high = max_rows,
           .multiple = kCacheStep,
           .at_most = kCacheRows}};
}

Weight frequencies(const Rope& rope, int64_t max_positions, std::string name) {
  Weight weight{std::move(name), {DType::f32, {rope.rotary / 2}}, {}};
  Builder builder(weight.init, {});
  weight.init.outputs.push_back(
      builder.op(OpKind::literal, {},
                 Attributes()
                     .set(AttrName::dims, weight.type.dims)
                     .set(AttrName::dtype, DType::f32)
                     .set(AttrName::values, rope_frequencies(rope, max_positions)),
                 weight.name));
  return weight;
}

std::vector<State> caches(const ModelSpec& spec) {
  if (spec.encoder) return {};
  // Normed heads keep their axis, so that norm, rotation and append walk the same rows.
  const Dims dims = spec.qk_norm == QkNorm::head ? Dims{kCacheRows, spec.kv_heads, spec.head_dim}
                                                 : Dims{kCacheRows, spec.kv_heads * spec.head_dim};
  const TensorType type{spec.dtype, dims};
  std::vector<State> states;
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    states.push_back({fmt::format("l{}.k_cache", layer), type});
    states.push_back({fmt::format("l{}.v_cache", layer), type});
  }
  return states;
}

/// The last step of several has the name of their result.
ValueId called(ModelGraph& g, ValueId value, std::string name) {
  g.builder.graph()[value].name = std::move(name);
  return value;
}

/// Rows of a table, in the model's type.
ValueId table_rows(ModelGraph& g, const std::string& table, ValueId ids, const std::string& name) {
  const ValueId elements = g.matrix(table);
  const bool rounds = g.builder.type(elements).dtype != g.spec.dtype;
  const ValueId rows = g.named(OpKind::embedding, {elements, ids}, rounds ? name + ".exact" : name);
  return g.builder.cast(rows, g.spec.dtype, name);
}

/// Rows of a table, added to x.
ValueId add_rows(ModelGraph& g, ValueId x, const std::string& table, ValueId ids) {
  const ValueId rows = table_rows(g, table + ".weight", ids, table);
  return g.named(OpKind::add, {x, rows}, table + "_sum");
}

ValueId embed(ModelGraph& g, ValueId tokens, ValueId types) {
  const ModelSpec& spec = g.spec;
  ValueId x = table_rows(g, "embed.weight", tokens, "embed.tok");
  if (spec.embed_scale != 1.0) {
    const ValueId scale = g.builder.constant(spec.embed_scale, spec.dtype);
    x = g.named(OpKind::mul, {x, scale}, "embed.scaled");
  }
  if (spec.embed_width) x = g.linear(x, "embed.in", false);
  if (spec.token_types != 0) x = add_rows(g, x, "embed.type", types);
  if (!spec.rope) x = add_rows(g, x, "embed.pos", g.pos);
  if (spec.embed_norm) x = g.norm(x, "embed.norm");
  return called(g, x, "embed");
}

/// Logits of the rows x of the residual stream after its last norm.
ValueId project(ModelGraph& g, ValueId x) {
  const ModelSpec& spec = g.spec;
  if (spec.embed_width) x = g.linear(x, "embed.out", false);
  const std::string head = spec.tied ? "embed.weight" : "lm_head.weight";
  llvm::SmallVector<ValueId, 3> operands{g.columns_for(x, head), g.matrix(head)};
  if (spec.head_bias) operands.push_back(g.weight("lm_head.bias"));
  x = g.named(OpKind::linear, operands, "logits.raw");
  if (spec.logit_divisor != 1.0) {
    const ValueId divisor = g.builder.constant(spec.logit_divisor, spec.dtype);
    x = g.named(OpKind::div, {x, divisor}, "logits.divided");
  }
  if (spec.logit_softcap) {
    const ValueId cap = g.builder.constant(*spec.logit_softcap, spec.dtype);
    const ValueId share = g.named(OpKind::div, {x, cap}, "logits.share");
    x = g.named(OpKind::mul, {g.named(OpKind::tanh, {share}, "logits.tanh"), cap}, "logits.capped");
  }
  return called(g, x, "logits");
}

/// A streaming cache holds one sequence.
Dim decode_tokens(const ModelSpec& spec) { return spec.streaming ? Dim(1) : Dim(kDecodeTokens); }

ValueId build_layers(ModelGraph& g, ValueId x) {
  for (int64_t layer = 0; layer < g.spec.layers; ++layer) x = build_block(g, layer, x);
  return g.spec.final_norm ? g.norm(x, "final_norm") : x;
}

/// Rotary positions of the call's tokens.
void build_token_rope(ModelGraph& g) {
  const ModelSpec& spec = g.spec;
  if (spec.rope) g.token_rope = build_rope_tables(g, *spec.rope, "rope.inv_freq", g.pos, "rope.");
  if (spec.local_rope)
    g.local_rope =
        build_rope_tables(g, *spec.local_rope, "local_rope.inv_freq", g.pos, "local_rope.");
}

ValueId integer(Builder& b, int64_t value) {
  return b.constant(static_cast<double>(value), DType::i32);
}

/// The rows of an encoder's call that are within the window around each token, and of its sequence.
void build_near_rows(ModelGraph& g) {
  Builder& b = g.builder;
  const ValueId reach = integer(b, *g.spec.window / 2);
  const ValueId row = b.op(
      OpKind::iota, {},
      Attributes().set(AttrName::axis, int64_t{0}).set(AttrName::dims, Dims{g.tokens}), "near.row");
  g.near_first = g.named(OpKind::maximum, {g.first, b.sub(row, reach)}, "near.first");
  g.near_last = g.named(OpKind::minimum, {g.last, b.add(row, reach)}, "near.last");
}

/// The learned bias of each pair of tokens, by their distance. Pairs of two sequences have one as
/// well, which is not seen.
void build_position_bias(ModelGraph& g) {
  Builder& b = g.builder;
  const ValueId key = b.reshape(g.pos, {1, g.tokens}), query = b.reshape(g.pos, {g.tokens, 1});
  const ValueId far = integer(b, g.spec.bias_distance);
  const ValueId distance = b.op(
      OpKind::maximum,
      {b.op(OpKind::minimum, {b.sub(key, query), far}, {}), integer(b, -g.spec.bias_distance)}, {});
  const ValueId rows =
      table_rows(g, "position_bias.weight", b.add(distance, far), "position_bias.rows");
  g.position_bias = b.cast(b.transpose(rows, {2, 0, 1}), DType::f32, "position_bias");
}

enum class EntryKind : uint8_t { prefill, decode };

Entry build_entry(const ModelSpec& spec, const Module& module, const OrderWeights& orders,
                  EntryKind kind) {
  const bool prefill = kind == EntryKind::prefill;
  Entry entry{prefill ? "prefill" : "decode", {}};
  entry.tokens = prefill ? Tokens::invariant : Tokens::one_each;
  ModelGraph g(spec, module, orders, entry.graph);
  g.tokens = prefill ? Dim(kPrefillTokens) : decode_tokens(spec);
  // A decode step looks where first and slot say, so that its shapes do not depend on the length.
  g.visible_rows = prefill ? kVisibleRows : kCacheRows;
  const ValueId tokens = g.input("tokens", g.tokens);
  g.pos = g.input("pos", g.tokens);
  g.slot = g.input("slot", g.tokens);
  g.first = g.input("first", g.tokens);
  // A streaming cache is full of visible rows up to the token's position, wherever it was written.
  g.last = spec.streaming ? g.pos : g.slot;
  const ValueId wanted = prefill ? g.input("wanted", kWantedRows) : ValueId();

  ValueId x = embed(g, tokens, {});
  build_token_rope(g);
  if (spec.streaming)
    g.row_rope = build_rope_tables(g, *spec.rope, "rope.inv_freq",
                                   g.input("row_pos", g.visible_rows), "row_rope.");
  x = build_layers(g, x);
  if (prefill) x = g.named(OpKind::embedding, {x, wanted}, "final_norm.wanted");
  entry.graph.outputs.push_back(project(g, x));
  return entry;
}

/// All tokens of a call at once, each looking at its whole sequence.
Entry build_encoder_entry(const ModelSpec& spec, const Module& module, const OrderWeights& orders) {
  Entry entry{"encode", {}};
  entry.tokens = Tokens::invariant;
  ModelGraph g(spec, module, orders, entry.graph);
  g.tokens = g.visible_rows = Dim(kPrefillTokens);
  const ValueId tokens = g.input("tokens", g.tokens);
  g.pos = g.input("pos", g.tokens);
  const ValueId types = spec.token_types == 0 ? ValueId() : g.input("types", g.tokens);
  g.first = g.input("first", g.tokens);
  g.last = g.input("last", g.tokens);
  const ValueId embedded = embed(g, tokens, types);
  build_token_rope(g);
  if (spec.window) build_near_rows(g);
  if (spec.bias_distance != 0) build_position_bias(g);
  const ValueId x = build_layers(g, embedded);
  entry.graph.outputs.push_back(called(g, x, "last_hidden_state"));
  return entry;
}

/// Chooses the next token of every sequence, and moves what changes from step to step.
Entry build_sample_entry(const ModelSpec& spec, const Module& module) {
  Entry entry{"sample", {}};
  Builder b(entry.graph, module.symbols);
  const auto input = [&](const char* name, DType dtype, Dims dims) {
    return b.leaf(OpKind::input, {dtype, std::move(dims)}, name);
  };
  const Dim tokens = decode_tokens(spec);
  const ValueId logits = input("logits", spec.dtype, {tokens, spec.vocabulary});
  const ValueId pos = input("pos", DType::i32, {tokens}),
                slot = input("slot", DType::i32, {tokens});
  const ValueId step = input("step", DType::i32, {tokens}),
                seed = input("seed", DType::i32, {tokens});
  const ValueId temperature = input("temperature", DType::f32, {tokens});
  const ValueId top_k = input("top_k", DType::i32, {tokens}),
                top_p = input("top_p", DType::f32, {tokens});
  const ValueId one = b.constant(1, DType::i32);
  const auto output = [&](OpKind kind, llvm::ArrayRef<ValueId> operands, const char* name) {
    entry.graph.outputs.push_back(b.op(kind, operands, {}, name));
  };
  output(OpKind::sample, {logits, temperature, top_k, top_p, seed, step}, "next.tokens");
  output(OpKind::add, {step, one}, "next.step");
  if (!spec.streaming) {
    output(OpKind::add, {pos, one}, "next.pos");
    output(OpKind::add, {slot, one}, "next.slot");
    return entry;
  }
  // After the last row the window begins anew; then the oldest token goes, and every token of the
  // window is one place nearer to the sinks.
  const ValueId newest = integer(b, spec.streaming->rows() - 1);
  const ValueId after = b.add(slot, one);
  output(OpKind::minimum, {b.add(pos, one), newest}, "next.pos");
  output(OpKind::where, {b.less(newest, after), integer(b, spec.streaming->sink), after},
         "next.slot");
  const ValueId row_pos = input("row_pos", DType::i32, {kCacheRows});
  const ValueId row = b.iota(Dims{kCacheRows}, 0);
  const ValueId full = b.equal(pos, newest);
  const ValueId moves = b.logical_and(full, b.less_equal(integer(b, spec.streaming->sink), row));
  const ValueId written = b.equal(row, entry.graph.outputs.back());
  const ValueId nearer = b.op(OpKind::where, {moves, b.sub(row_pos, one), row_pos});
  output(OpKind::where, {b.logical_and(full, written), newest, nearer}, "next.row_pos");
  return entry;
}

}  // namespace

std::string hidden_state_name(const ModelSpec& spec, int64_t i) {
  if (i == 0) return "embed";
  if (i == spec.layers) {
    if (spec.encoder) return "last_hidden_state";
    if (spec.embed_width) return "embed.out";
    if (spec.final_norm) return "final_norm";
  }
  if (spec.residual == ResidualForm::parallel) return fmt::format("l{}.res", i - 1);
  return fmt::format("l{}.{}", i - 1, spec.norm_place == NormPlace::after ? "norm2" : "res2");
}

Result<Module> build_model(const ModelSpec& spec, const WeightNames& names,
                           const TensorSource* source, std::string_view place) {
  SINTER_LET(weights, build_weights(spec, names, source, place));
  Module module{spec.name, model_symbols(spec), std::move(weights), caches(spec), {}};
  if (spec.rope)
    module.weights.push_back(frequencies(*spec.rope, spec.max_positions, "rope.inv_freq"));
  if (spec.local_rope)
    module.weights.push_back(
        frequencies(*spec.local_rope, spec.max_positions, "local_rope.inv_freq"));
  const OrderWeights orders = order_weights(spec, names);
  if (spec.encoder) {
    module.entries.push_back(build_encoder_entry(spec, module, orders));
    return module;
  }
  for (EntryKind kind : {EntryKind::prefill, EntryKind::decode})
    module.entries.push_back(build_entry(spec, module, orders, kind));
  module.entries.push_back(build_sample_entry(spec, module));
  return module;
}

}  // namespace sinter
