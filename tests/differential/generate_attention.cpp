// Attention, which passes expand by the number of tokens, and the ops that have kernels of their
// own.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "differential/graph_generator.h"
#include "ir/attention_operands.h"
#include "kernels/attention_backward/order.h"
#include "kernels/decode_attention/order.h"
#include "kernels/tiled_attention/order.h"

namespace sinter {
namespace {

/// The shape that the kernel of an attention is compiled for.
struct AttentionShape {
  int64_t kv_heads, group, width, value_width, rows, splits, window;  // window 0: none
  bool capped;
  int64_t sink = 0;
};

// Most attentions are of these: their kernel is long, and no neighbour is part of it.
constexpr AttentionShape kUsualAttentions[] = {
    {1, 1, 8, 8, 16, 1, 0, false},    {2, 1, 4, 4, 12, 2, 0, false},  {1, 3, 5, 3, 17, 7, 0, false},
    {2, 2, 8, 12, 33, 8, 0, true},    {1, 2, 2, 1, 100, 3, 4, false}, {2, 3, 1, 8, 64, 2, 1, true},
    {1, 2, 8, 8, 40, 3, 3, false, 4},
};

}  // namespace

/// A value of that type [..., rows, width]; sometimes columns of a wider one.
ValueId GraphGenerator::columns(const TensorType& type) {
  if (!random_.chance(20)) return value_of(type);
  const int64_t width = type.dims.back().constant(), more = mostly({3, 8}, 1, 16);
  TensorType wide = type;
  wide.dims.back() = Dim(width + more);
  return must(OpKind::slice, {value_of(wide)},
              Attributes()
                  .set(AttrName::axis, static_cast<int64_t>(type.rank()) - 1)
                  .set(AttrName::begin, mostly({more}, 0, more))
                  .set(AttrName::size, Dim(width)));
}

/// Keys or values [..., rows, heads * width] of several sequences: rows of all heads, heads one
/// after the other in memory, or rows that all sequences share.
ValueId GraphGenerator::sequences_of_rows(const TensorType& type, int64_t heads) {
  const size_t batch = type.rank() - 2;
  const Dim rows = type.dims[batch], width = type.dims.back();
  if (batch == 0 || random_.chance(40)) return columns(type);
  if (random_.chance(30)) {
    Dims shared(batch, Dim(1));
    shared.append({rows, width});
    return must(OpKind::broadcast, {value_of({type.dtype, shared})},
                Attributes().set(AttrName::dims, type.dims));
  }
  Dims by_heads(type.dims.begin(), type.dims.end() - 2);
  by_heads.append({Dim(heads), rows, Dim(width.constant() / heads)});
  std::vector<int64_t> axes(by_heads.size());
  std::iota(axes.begin(), axes.end(), int64_t{0});
  std::swap(axes[batch], axes[batch + 1]);
  const ValueId transposed = must(OpKind::transpose, {value_of({type.dtype, by_heads})},
                                  Attributes().set(AttrName::axes, axes));
  return must(OpKind::reshape, {transposed}, Attributes().set(AttrName::dims, type.dims));
}

/// A row number for each token of all sequences, from one for each token of a sequence.
ValueId GraphGenerator::of_sequences(ValueId numbers, const Dims& batch) {
  if (batch.empty()) return numbers;
  Dims dims = batch;
  dims.push_back(rows_);
  if (random_.chance(50)) return input({DType::i32, dims});
  return must(OpKind::broadcast, {numbers}, Attributes().set(AttrName::dims, dims));
}

/// A mask that broadcasts to these scores: truth values, or numbers, some of which hide their key.
ValueId GraphGenerator::mask_of(const Dims& scores, size_t least_rank) {
  Dims dims(DimsRef(scores).take_back(static_cast<size_t>(
      random_.between(static_cast<int64_t>(least_rank), static_cast<int64_t>(scores.size())))));
  for (Dim& dim : dims)
    if (random_.chance(25)) dim = Dim(1);
  if (dims.size() > 3 && random_.chance(30)) std::fill(dims.begin(), dims.end() - 3, Dim(1));
  if (random_.chance(35)) return viewed({DType::i1, dims});
  const DType dtype = any_float();
  if (random_.chance(35)) return viewed({dtype, dims});
  const auto number = [&](double value) {
    return must(OpKind::constant, {},
                Attributes()
                    .set(AttrName::dims, Dims())
                    .set(AttrName::dtype, dtype)
                    .set(AttrName::value, value));
  };
  const double hidden = random_.chance(60)    ? -std::numeric_limits<double>::infinity()
                        : dtype == DType::f16 ? -65504
                                              : -0x1.fep127;
  return must(OpKind::where, {viewed({DType::i1, dims}), number(0), number(hidden)});
}

/// A value of that type; sometimes columns of a wider one, or with its last two axes swapped.
ValueId GraphGenerator::viewed(const TensorType& type) {
  if (type.rank() >= 2 && random_.chance(15)) {
    TensorType swapped = type;
    std::swap(swapped.dims[type.rank() - 2], swapped.dims[type.rank() - 1]);
    std::vector<int64_t> axes(type.rank());
    std::iota(axes.begin(), axes.end(), int64_t{0});
    std::swap(axes[axes.size() - 2], axes[axes.size() - 1]);
    return must(OpKind::transpose, {value_of(swapped)}, Attributes().set(AttrName::axes, axes));
  }
  return type.rank() > 0 && type.dims.back().is_constant() ? columns(type) : value_of(type);
}

/// Leading axes of an attention whose operands stay small with them.
Dims GraphGenerator::leading_axes(int64_t largest_operand, int64_t heads) {
  Dims batch;
  if (random_.chance(60)) return batch;
  int64_t count = 1;
  for (int64_t more = random_.chance(70) ? 1 : 2; more > 0; --more) {
    const Dim dim = random_.chance(20) ? rows_ : Dim(mostly({2, 1, heads}, 1, 3));
    count *= extent(dim);
    if (count * largest_operand > kMaxElements) break;
    batch.push_back(dim);
  }
  return batch;
}

/// Operands and attributes of an attention over caches of at most `max_rows` rows.
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
             random_.chance(25),
             random_.chance(25) ? random_.between(1, 9) : 0};
  }
  const int64_t kv_heads = shape.kv_heads, heads = kv_heads * shape.group, width = shape.width;
  const Dim rows = any_rows(std::min(shape.rows, max_rows));
  if (extent(rows) > 300) return std::nullopt;
  const Value slot = slots(rows_, rows);
  if (!slot) return std::nullopt;
  const int64_t most_width = std::max(width, shape.value_width);
  const Dims batch = leading_axes(
      std::max(extent(rows_) * std::max(most_width, extent(rows)), extent(rows) * most_width) *
          heads,
      heads);
  const auto type = [&](Dim count, int64_t columns) {
    Dims dims = batch;
    dims.append({count, Dim(columns)});
    return TensorType{main_dtype_, dims};
  };
  Attended made{.operands = {}, .attrs = {}, .splits = shape.splits};
  made.operands = {columns(type(rows_, heads * width)),
                   sequences_of_rows(type(rows, kv_heads * width), kv_heads),
                   sequences_of_rows(type(rows, kv_heads * shape.value_width), kv_heads)};
  add_ranges(made, batch, *slot, rows);
  if (random_.chance(40)) {
    Dims scores = batch;
    scores.append({Dim(heads), rows_, rows});
    made.operands.push_back(mask_of(scores, scores.size()));
  }
  if (random_.chance(30)) made.attrs.set(AttrName::empty_zero, int64_t{1});
  made.attrs.set(AttrName::heads, heads).set(AttrName::kv_heads, kv_heads);
  made.attrs.set(AttrName::scale, 1.0 / std::sqrt(static_cast<double>(width)));
  if (shape.capped) made.attrs.set(AttrName::softcap, 5.0);
  if (shape.window > 0) made.attrs.set(AttrName::window, shape.window);
  if (shape.sink > 0) made.attrs.set(AttrName::sink, shape.sink);
  return made;
}

/// First and last rows: those that are there, or any numbers.
void GraphGenerator::add_ranges(Attended& made, const Dims& batch, ValueId slot, Dim rows) {
  if (random_.chance(20)) {
    Dims dims = batch;
    dims.push_back(rows_);
    made.attrs.set(AttrName::any_range, int64_t{1});
    const auto any = [&] {
      return random_.chance(50)
                 ? value_of({DType::i32, dims})
                 : of_sequences(any_integers(rows_, std::max<int64_t>(extent(rows), 1)), batch);
    };
    made.operands.push_back(any());
    made.operands.push_back(any());
    return;
  }
  const ValueId first = random_.chance(80) ? input({DType::i32, {rows_}}) : *ids(rows_, rows);
  made.operands.push_back(of_sequences(first, batch));
  made.operands.push_back(of_sequences(slot, batch));
}

void GraphGenerator::attention() {
  auto made = attended(20);
  if (!made) return;
  add_dropout(made->operands, made->attrs);
  op(OpKind::attention, made->operands, std::move(made->attrs));
}

void GraphGenerator::decode_attention() {
  auto made = attended(100);
  if (!made) return;
  made->attrs.set(AttrName::order, Order::decode_attention).set(AttrName::splits, made->splits);
  if (random_.chance(40)) {
    const AttentionHeads heads = attention_heads(made->attrs, graph_[made->operands[1]].type,
                                                 graph_[made->operands[2]].type);
    const int lanes =
        attention_lanes(static_cast<int>(heads.width), static_cast<int>(heads.value_width));
    int64_t streams = attention_most_streams(lanes);
    while (streams > attention_neighbours(lanes) && random_.chance(60)) streams /= 2;
    made->attrs.set(AttrName::streams, streams);
  }
  op(OpKind::attention, made->operands, std::move(made->attrs));
}

/// Sometimes a dropout, by a seed behind the other operands.
void GraphGenerator::add_dropout(llvm::SmallVectorImpl<ValueId>& operands, Attributes& attrs) {
  if (!random_.chance(22)) return;
  attrs.set(AttrName::dropout, random_.pick(std::array{0.1, 0.5, 0.97}));
  operands.push_back(value_of({DType::i32, {}}));
}

/// By tiles of keys: tiled_attention, or float_attention in a module of float32.
void GraphGenerator::tiled_attention() {
  const Order order =
      dtype_info(main_dtype_).bits == 16 ? Order::tiled_attention : Order::float_attention;
  auto made = attended(200);
  if (!made) return;
  made->attrs.set(AttrName::order, order);
  if (order == Order::tiled_attention) {
    const AttentionHeads heads = attention_heads(made->attrs, graph_[made->operands[1]].type,
                                                 graph_[made->operands[2]].type);
    const int64_t tokens = kAttentionTokenTile,
                  keys = attention_key_tile(static_cast<int>(heads.width),
                                            static_cast<int>(heads.value_width));
    if (made->operands.size() > kMaskOperand && random_.chance(60))
      made->operands.push_back(
          must(OpKind::mask_tiles, {made->operands[kMaskOperand]},
               Attributes().set(AttrName::tile_tokens, tokens).set(AttrName::tile_keys, keys)));
    if (random_.chance(40)) {
      made->attrs.set(AttrName::segment, keys * random_.between(1, 3));
      if (random_.chance(50)) made->attrs.set(AttrName::splits, random_.between(1, 8));
    }
    if (!made->attrs.has(AttrName::splits)) add_dropout(made->operands, made->attrs);
  }
  op(OpKind::attention, made->operands, std::move(made->attrs));
}

/// An attention of a 16-bit type without a mask, its log-sums, and some of its gradients.
void GraphGenerator::attention_gradients() {
  if (dtype_info(main_dtype_).bits != 16) return;
  auto made = attended(60);
  if (!made) return;
  llvm::SmallVector<ValueId, 8> operands(llvm::ArrayRef(made->operands).take_front(kMaskOperand));
  const TensorType q = graph_[operands[0]].type;
  const AttentionHeads heads =
      attention_heads(made->attrs, graph_[operands[1]].type, graph_[operands[2]].type);
  if (heads.width > kMaxGradientWidth || heads.value_width > kMaxGradientWidth) return;
  Attributes attrs;
  for (AttrName name : {AttrName::heads, AttrName::kv_heads, AttrName::scale, AttrName::softcap,
                        AttrName::window, AttrName::any_range})
    if (const AttrValue* value = made->attrs.find(name)) attrs.set(name, *value);
  Attributes own = attrs;
  own.set(AttrName::order, Order::tiled_attention).set(AttrName::empty_zero, int64_t{1});
  const ValueId sums = must(OpKind::attention_log_sum, operands, attrs);
  llvm::SmallVector<ValueId, 8> seeded = operands;
  add_dropout(seeded, own);
  if (const AttrValue* dropout = own.find(AttrName::dropout))
    attrs.set(AttrName::dropout, *dropout);
  const ValueId result = must(OpKind::attention, seeded, std::move(own));
  operands.push_back(random_.chance(50) ? result : columns(graph_[result].type));
  operands.push_back(sums);
  operands.push_back(value_of(token_heads_type(q, heads.count)));
  if (attrs.has(AttrName::dropout)) operands.push_back(seeded.back());
  llvm::SmallVector<ValueId, 4> parts;
  for (OpKind kind : {OpKind::attention_query_gradient, OpKind::attention_key_gradient,
                      OpKind::attention_value_gradient})
    parts.push_back(must(kind, operands, attrs));
  // As the gradient of a product that has the three side by side reads them.
  const auto axis = static_cast<int64_t>(q.rank()) - 1;
  const auto leading = [&](ValueId part) { return DimsRef(graph_[part].type.dims).drop_back(); };
  if (!random_.chance(70)) return;
  if (leading(parts[0]) != leading(parts[1]))
    parts.erase(parts.begin());
  else if (random_.chance(30))
    std::swap(parts[0], parts[random_.between(1, 2)]);
  if (random_.chance(50))
    op(OpKind::concat, parts, Attributes().set(AttrName::axis, axis));
  else
    place_parts(parts, axis);
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
  if (random_.chance(25)) attrs.set(AttrName::sink, random_.between(1, 6));
  if (random_.chance(25)) attrs.set(AttrName::empty_zero, int64_t{1});
  const Value first = ids(rows_, keys), last = ids(rows_, keys);
  if (!first || !last) return;
  Dims batch;  // row numbers of their own for each leading index
  if (random_.chance(30)) batch.assign(dims.begin(), dims.end() - 2);
  llvm::SmallVector<ValueId, 4> operands = {value_of(scores), of_sequences(*first, batch),
                                            of_sequences(*last, batch)};
  if (random_.chance(40)) operands.push_back(mask_of(dims, 0));
  op(OpKind::attention_softmax, operands, std::move(attrs));
}

}  // namespace sinter
