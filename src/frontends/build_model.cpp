#include "frontends/build_model.h"

#include "frontends/build_block.h"

namespace sinter {

namespace {

// Positions in Module::symbols.
constexpr SymbolId kPrefillTokens{0}, kWantedRows{1}, kDecodeTokens{2}, kCacheRows{3},
    kVisibleRows{4};
constexpr int64_t kCacheStep = 8;

std::vector<Symbol> model_symbols(const ModelSpec& spec) {
  const int64_t longest = (spec.max_positions + kCacheStep - 1) / kCacheStep * kCacheStep;
  const int64_t most_rows = kMostCachedSequences * longest;
  return {{.name = "N", .low = 1, .high = spec.max_positions},
          {.name = "M", .low = 1, .high = spec.max_positions},
          {.name = "B", .low = 1, .high = kMostDecodeTokens},
          {.name = "R", .low = kCacheStep, .high = most_rows, .multiple = kCacheStep},
          {.name = "K",
           .low = kCacheStep,
           .high = most_rows,
           .multiple = kCacheStep,
           .at_most = kCacheRows}};
}

Weight frequencies(const Rope& rope) {
  Weight weight{"rope.inv_freq", {DType::f32, {rope.rotary / 2}}, {}};
  Builder builder(weight.init, {});
  weight.init.outputs.push_back(builder.op(OpKind::literal, {},
                                           Attributes()
                                               .set(AttrName::dims, weight.type.dims)
                                               .set(AttrName::dtype, DType::f32)
                                               .set(AttrName::values, rope_frequencies(rope)),
                                           weight.name));
  return weight;
}

std::vector<State> caches(const ModelSpec& spec) {
  const TensorType type{spec.dtype, {kCacheRows, spec.kv_heads * spec.head_dim}};
  std::vector<State> states;
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    states.push_back({fmt::format("l{}.k_cache", layer), type});
    states.push_back({fmt::format("l{}.v_cache", layer), type});
  }
  return states;
}

ValueId embed(ModelGraph& g, ValueId tokens) {
  const ValueId table = g.weight("embed.weight");
  if (g.spec.rope) return g.named(OpKind::embedding, {table, tokens}, "embed");
  const ValueId token = g.named(OpKind::embedding, {table, tokens}, "embed.tok");
  const ValueId position =
      g.named(OpKind::embedding, {g.weight("embed.pos.weight"), g.pos}, "embed.pos");
  return g.named(OpKind::add, {token, position}, "embed");
}

enum class EntryKind : uint8_t { prefill, decode };

Entry build_entry(const ModelSpec& spec, const Module& module, EntryKind kind) {
  const bool prefill = kind == EntryKind::prefill;
  Entry entry{prefill ? "prefill" : "decode", {}};
  ModelGraph g(spec, module, entry.graph);
  g.tokens = prefill ? kPrefillTokens : kDecodeTokens;
  // A decode step looks where first and slot say, so that its shapes do not depend on the length.
  g.visible_rows = prefill ? kVisibleRows : kCacheRows;
  const ValueId tokens = g.input("tokens", g.tokens);
  g.pos = g.input("pos", g.tokens);
  g.slot = g.input("slot", g.tokens);
  g.first = g.input("first", g.tokens);
  const ValueId wanted = prefill ? g.input("wanted", kWantedRows) : ValueId();

  ValueId x = embed(g, tokens);
  if (spec.rope) build_rope_tables(g);
  for (int64_t layer = 0; layer < spec.layers; ++layer) x = build_block(g, layer, x);
  x = g.norm(x, "final_norm");
  if (prefill) x = g.named(OpKind::embedding, {x, wanted}, "final_norm.wanted");
  const ValueId head = g.weight(spec.tied ? "embed.weight" : "lm_head.weight");
  entry.graph.outputs.push_back(g.named(OpKind::linear, {x, head}, "logits"));
  return entry;
}

}  // namespace

Result<Module> build_model(const ModelSpec& spec, const WeightNames& names,
                           const TensorSource* source, std::string_view place) {
  SINTER_LET(weights, build_weights(spec, names, source, place));
  Module module{spec.name, model_symbols(spec), std::move(weights), caches(spec), {}};
  if (spec.rope) module.weights.push_back(frequencies(*spec.rope));
  for (EntryKind kind : {EntryKind::prefill, EntryKind::decode})
    module.entries.push_back(build_entry(spec, module, kind));
  return module;
}

}  // namespace sinter
