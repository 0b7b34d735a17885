// Attention, which passes expand by the number of tokens, and the ops that have kernels of their
// own.
#include <array>
#include <cmath>

#include "differential/graph_generator.h"

namespace sinter {
namespace {

/// The shape that the kernel of an attention is compiled for.
struct AttentionShape {
  int64_t kv_heads, group, width, value_width, rows, splits, window;  // window 0: none
  bool capped;
};

// Most attentions are of these: their kernel is long, and no neighbour is part of it.
constexpr AttentionShape kUsualAttentions[] = {
    {1, 1, 8, 8, 16, 1, 0, false}, {2, 1, 4, 4, 12, 2, 0, false},  {1, 3, 5, 3, 17, 7, 0, false},
    {2, 2, 8, 12, 33, 8, 0, true}, {1, 2, 2, 1, 100, 3, 4, false}, {2, 3, 1, 8, 64, 2, 1, true},
};

}  // namespace

/// A value of that type [rows, width]; sometimes columns of a wider one.
ValueId GraphGenerator::columns(const TensorType& type) {
  if (!random_.chance(20)) return value_of(type);
  const int64_t width = type.dims[1].constant(), more = mostly({3, 8}, 1, 16);
  const ValueId wide = value_of({type.dtype, {type.dims[0], Dim(width + more)}});
  return must(OpKind::slice, {wide},
              Attributes()
                  .set(AttrName::axis, int64_t{1})
                  .set(AttrName::begin, mostly({more}, 0, more))
                  .set(AttrName::size, Dim(width)));
}

/// Operands and attributes of an attention over caches of at most so many rows.
std::optional<GraphGenerator::Attended> GraphGenerator::attended(int64_t max_rows) {
  AttentionShape shape = random_.pick(kUsualAttentions);
  if (random_.chance(10)) {
    shape = {random_.between(1, 2),
             random_.between(1, 3),
             random_.pick(std::array{1, 2, 4, 5, 8}),
             random_.pick(std::array{1, 3, 4, 8, 12}),
             random_.between(12, max_rows),
             random_.pick(std::array{1, 2, 3, 7, 8}),
             random_.chance(25) ? random_.between(1, 6) : 0,
             random_.chance(25)};
  }
  const int64_t kv_heads = shape.kv_heads, heads = kv_heads * shape.group, width = shape.width;
  const Dim rows = any_rows(std::min(shape.rows, max_rows));
  if (extent(rows) > 300) return std::nullopt;
  Attended made{.operands = {}, .attrs = {}, .splits = shape.splits};
  made.operands = {columns({main_dtype_, {rows_, Dim(heads * width)}}),
                   columns({main_dtype_, {rows, Dim(kv_heads * width)}}),
                   columns({main_dtype_, {rows, Dim(kv_heads * shape.value_width)}})};
  const Value slot = slots(rows_, rows);
  if (!slot) return std::nullopt;
  made.operands.push_back(random_.chance(80) ? input({DType::i32, {rows_}}) : *ids(rows_, rows));
  made.operands.push_back(*slot);
  made.attrs.set(AttrName::heads, heads).set(AttrName::kv_heads, kv_heads);
  made.attrs.set(AttrName::scale, 1.0 / std::sqrt(static_cast<double>(width)));
  if (shape.capped) made.attrs.set(AttrName::softcap, 5.0);
  if (shape.window > 0) made.attrs.set(AttrName::window, shape.window);
  return made;
}

void GraphGenerator::attention() {
  if (auto made = attended(20)) op(OpKind::attention, made->operands, std::move(made->attrs));
}

void GraphGenerator::decode_attention() {
  auto made = attended(100);
  if (!made) return;
  made->attrs.set(AttrName::splits, made->splits);
  op(OpKind::decode_attention, made->operands, std::move(made->attrs));
}

/// By tiles of keys: tiled_attention, or float_attention in a module of float32.
void GraphGenerator::tiled_attention() {
  const OpKind kind =
      dtype_info(main_dtype_).bits == 16 ? OpKind::tiled_attention : OpKind::float_attention;
  if (auto made = attended(200)) op(kind, made->operands, std::move(made->attrs));
}

void GraphGenerator::sample() {
  const int64_t width = random_.chance(80) ? random_.pick(widths_) : random_.between(1, 40);
  const ValueId logits = columns({any_float(), {rows_, Dim(width)}});
  const TensorType real{DType::f32, {rows_}}, integer{DType::i32, {rows_}};
  op(OpKind::sample, {logits, value_of(real), value_of(integer), value_of(real), value_of(integer),
                      value_of(integer)});
}

/// Probabilities of keys, as the passes write them between the products of an attention.
void GraphGenerator::attention_softmax() {
  const Dim keys = random_.chance(25) ? any_symbol() : Dim(mostly({8, 17, 64}, 1, 100));
  Dims dims{rows_, keys};
  for (int64_t more = random_.between(0, 2); more > 0; --more)
    dims.insert(dims.begin(), Dim(mostly({1, 2}, 1, 3)));
  const TensorType scores{DType::f32, dims};
  if (volume_of(scores) > kMaxElements) return;
  Attributes attrs;
  attrs.set(AttrName::dtype, any_float()).set(AttrName::scale, random_.pick(std::array{1.0, 0.25}));
  if (random_.chance(25)) attrs.set(AttrName::softcap, 5.0);
  if (random_.chance(25)) attrs.set(AttrName::window, random_.between(1, 6));
  const Value first = ids(rows_, keys), last = ids(rows_, keys);
  if (first && last)
    op(OpKind::attention_softmax, {value_of(scores), *first, *last}, std::move(attrs));
}

}  // namespace sinter
