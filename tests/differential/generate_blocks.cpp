// Parts of transformer blocks, with odd sizes: what the fusion engine is made for.
#include <array>
#include <cmath>

#include "differential/graph_generator.h"
#include "ir/reduction_order.h"

namespace sinter {

ValueId GraphGenerator::project(ValueId x, int64_t width) {
  const TensorType type = graph_[x].type;
  const Dim inner = type.dims.back();
  llvm::SmallVector<ValueId, 3> operands{x, weight({type.dtype, {Dim(width), inner}})};
  if (type.rank() == 2 && random_.chance(6)) {  // a product whose result has a 16-bit type
    Attributes attrs;
    attrs.set(AttrName::spec, std::string("ij,kj->ik"))
        .set(AttrName::dtype, random_.pick(std::array{DType::f16, DType::bf16}));
    return must(OpKind::cast, {must(OpKind::einsum, operands, attrs)},
                Attributes().set(AttrName::dtype, type.dtype));
  }
  if (random_.chance(40)) operands.push_back(weight({type.dtype, {Dim(width)}}));
  return must(OpKind::linear, operands);
}

ValueId GraphGenerator::normalize(ValueId x) {
  const TensorType type = graph_[x].type;
  const TensorType parameter{type.dtype, {type.dims.back()}};
  const auto eps = Attributes().set(AttrName::eps, random_.chance(80) ? 1e-5 : 0.25);
  if (random_.chance(50)) return must(OpKind::rms_norm, {x, weight(parameter)}, eps);
  llvm::SmallVector<ValueId, 3> operands{x, weight(parameter)};
  if (random_.chance(70)) operands.push_back(weight(parameter));
  return must(OpKind::layer_norm, operands, eps);
}

// [N, heads * width] -> the same, its heads rotated.
ValueId GraphGenerator::rotate(ValueId x, int64_t heads) {
  const TensorType type = graph_[x].type;
  const int64_t width = type.dims[1].constant() / heads;
  const int64_t rotary = random_.chance(70) ? width : 2 * mostly({1}, 1, width / 2);
  const Dims split{type.dims[0], Dim(heads), Dim(width)};
  const TensorType angle{type.dtype, {type.dims[0], Dim(rotary / 2)}};
  const ValueId parts = must(OpKind::reshape, {x}, Attributes().set(AttrName::dims, split));
  const ValueId cos = value_of(angle), sin = value_of(angle);
  const ValueId rotated =
      must(OpKind::rope, {parts, cos, sin},
           Attributes()
               .set(AttrName::rotary, rotary)
               .set(AttrName::pairing, std::string(random_.chance(50) ? "half" : "interleaved")));
  return must(OpKind::reshape, {rotated}, Attributes().set(AttrName::dims, type.dims));
}

ValueId GraphGenerator::feed_forward(ValueId x) {
  const int64_t width = graph_[x].type.dims[1].constant(), inner = mostly({5, 8, 24}, 1, 24);
  ValueId h = project(x, inner);
  if (random_.chance(50)) {
    h = must(OpKind::mul, {must(OpKind::silu, {h}), project(x, inner)});
  } else {
    h = must(random_.chance(50) ? OpKind::gelu : OpKind::gelu_tanh, {h});
  }
  return project(h, width);
}

// Both halves of one linear: silu(gate) * up.
ValueId GraphGenerator::gated(ValueId x, int64_t width) {
  const ValueId both = project(x, 2 * width);
  const auto half = [&](int64_t begin) {
    return must(OpKind::slice, {both},
                Attributes()
                    .set(AttrName::axis, int64_t{1})
                    .set(AttrName::begin, begin)
                    .set(AttrName::size, Dim(width)));
  };
  const bool gate_first = random_.chance(50);
  const ValueId gate = half(gate_first ? 0 : width), up = half(gate_first ? width : 0);
  const ValueId active = must(random_.chance(70) ? OpKind::silu : OpKind::gelu_tanh, {gate});
  return must(OpKind::mul, {active, up});
}

// The op between two linears of a row: a bias, a residual, an activation, a rounding.
ValueId GraphGenerator::between_linears(ValueId x) {
  const TensorType type = graph_[x].type;
  switch (random_.below(6)) {
    case 0:
      return must(OpKind::add, {x, weight({type.dtype, {type.dims.back()}})});
    case 1:
      return must(OpKind::add, {value_of(type), x});
    case 2:
      return must(random_.pick(std::array{OpKind::silu, OpKind::gelu, OpKind::relu, OpKind::tanh}),
                  {x});
    case 3:
      return must(OpKind::mul, {x, constant(type.dtype, {})});
    case 4: {
      const auto wide = Attributes().set(AttrName::dtype, DType::f32);
      const ValueId y = must(OpKind::tanh, {must(OpKind::cast, {x}, wide)});
      return must(OpKind::cast, {y}, Attributes().set(AttrName::dtype, type.dtype));
    }
    default:
      return x;
  }
}

// norm → linear → ... → linear: widths are whole chunks of 8 mostly, as models' are.
void GraphGenerator::linear_chain() {
  const auto width = [&] {
    return random_.chance(75) ? 8 * mostly({1, 4, 8, 12}, 1, 12) : mostly({3, 21, 45}, 1, 70);
  };
  ValueId x = random_.chance(40) ? pick_rows() : value_of({main_dtype_, {rows_, Dim(width())}});
  if (graph_[x].type.dims[1].constant() > 128) return;
  const TensorType type = graph_[x].type;
  ValueId h = random_.chance(70) ? normalize(x) : x;
  for (int64_t count = random_.between(1, 2); count > 0; --count) {
    h = random_.chance(40) ? gated(h, width()) : project(h, width());
    for (int64_t more = random_.between(0, 2); more > 0; --more) h = between_linears(h);
  }
  h = project(h, type.dims[1].constant());
  if (random_.chance(60)) h = must(OpKind::add, {x, h});
  if (random_.chance(30)) normalize(h);
}

ValueId GraphGenerator::attend(ValueId x) {
  const int64_t out = graph_[x].type.dims[1].constant();
  const int64_t kv_heads = random_.between(1, 2), heads = kv_heads * random_.between(1, 2);
  const int64_t width = 2 * mostly({1, 4}, 1, 4), rows = state_rows(rows_);
  ValueId q = project(x, heads * width), k = project(x, kv_heads * width);
  const ValueId v = project(x, kv_heads * width);
  if (random_.chance(60)) q = rotate(q, heads), k = rotate(k, kv_heads);
  const TensorType cache{main_dtype_, {Dim(rows), Dim(kv_heads * width)}};
  const Value slot = volume_of(cache) > kMaxElements ? std::nullopt : slots(rows_, Dim(rows));
  if (!slot) return v;
  const ValueId first = random_.chance(80) ? input({DType::i32, {rows_}}) : *ids(rows_, Dim(rows));
  const Value keys = write(OpKind::kv_append, {state(cache), k, *slot});
  const Value values = write(OpKind::kv_append, {state(cache), v, *slot});
  Attributes attrs;
  attrs.set(AttrName::heads, heads).set(AttrName::kv_heads, kv_heads);
  attrs.set(AttrName::scale, 1.0 / std::sqrt(static_cast<double>(width)));
  return project(must(OpKind::attention, {q, *keys, *values, first, *slot}, std::move(attrs)), out);
}

void GraphGenerator::pre_norm_block() {
  ValueId x = pick_rows();
  if (graph_[x].type.dims[1].constant() > 64) return;
  if (random_.chance(40)) {
    const ValueId y = attend(normalize(x));
    if (graph_[y].type == graph_[x].type) x = must(OpKind::add, {x, y});
  }
  must(OpKind::add, {x, feed_forward(normalize(x))});
}

void GraphGenerator::post_norm_block() {
  const ValueId x = pick_rows();
  if (graph_[x].type.dims[1].constant() > 64) return;
  normalize(must(OpKind::add, {x, feed_forward(x)}));
}

// Norms as exporters spell them out, with casts around the row's arithmetic or without.
void GraphGenerator::primitive_norm() {
  ValueId x = pick_rows();
  const DType dtype = graph_[x].type.dtype;
  const bool centered = random_.chance(50), wide = random_.chance(70);
  const auto width = static_cast<double>(graph_[x].type.dims[1].constant());
  if (wide) x = must(OpKind::cast, {x}, Attributes().set(AttrName::dtype, DType::f32));
  const DType inner = graph_[x].type.dtype;
  const auto number = [&](double value) {
    return must(OpKind::constant, {},
                Attributes()
                    .set(AttrName::dims, Dims())
                    .set(AttrName::dtype, inner)
                    .set(AttrName::value, value));
  };
  const auto mean = [&](ValueId y) {
    const ValueId sum =
        must(OpKind::reduce_sum, {y}, Attributes().set(AttrName::axes, std::vector<int64_t>{1}));
    return must(OpKind::div, {sum, number(width)});
  };
  if (centered) x = must(OpKind::sub, {x, mean(x)});
  const ValueId variance = mean(must(OpKind::mul, {x, x}));
  x = must(OpKind::mul, {x, must(OpKind::rsqrt, {must(OpKind::add, {variance, number(1e-5)})})});
  if (wide) x = must(OpKind::cast, {x}, Attributes().set(AttrName::dtype, dtype));
  const TensorType type = graph_[x].type;
  must(OpKind::mul, {x, weight({type.dtype, {type.dims[1]}})});
}

void GraphGenerator::primitive_softmax() {
  const ValueId x = pick_rows();
  const auto last = Attributes().set(AttrName::axes, std::vector<int64_t>{1});
  const ValueId shifted = must(OpKind::sub, {x, must(OpKind::reduce_max, {x}, last)});
  const ValueId e = must(OpKind::exp, {shifted});
  must(OpKind::div, {e, must(OpKind::reduce_sum, {e}, last)});
}

// A table that is both embedding and, transposed, the last projection.
/// A sum along a row of zeros but for the element that a label names, as in the loss of labels.
void GraphGenerator::label_sum() {
  using enum OpKind;
  const ValueId x = pick_float();
  const TensorType type = graph_[x].type;
  const int64_t axis = random_.below(static_cast<int64_t>(type.rank()));
  if (!type.dims[axis].is_constant()) return;
  Dims row(type.rank(), Dim(1)), labels = type.dims;
  row[axis] = type.dims[axis], labels[axis] = Dim(1);
  const ValueId positions =
      must(iota, {}, Attributes().set(AttrName::dims, row).set(AttrName::axis, axis));
  const ValueId zero = must(constant, {},
                            Attributes()
                                .set(AttrName::dims, Dims())
                                .set(AttrName::dtype, type.dtype)
                                .set(AttrName::value, 0.0));
  const ValueId y = random_.chance(50) ? must(random_.pick(std::array{neg, abs, exp}), {x}) : x;
  const ValueId is_label = must(equal, {positions, value_of({DType::i32, labels})});
  must(reduce_sum, {must(where, {is_label, y, zero})},
       Attributes().set(AttrName::axes, std::vector<int64_t>{axis}));
}

/// A formula of a slice with a constant behind it. Most are rows of float32 that a reduction reads
/// too, of as many chunks as the padded rows.
void GraphGenerator::padded_formula() {
  using enum OpKind;
  const bool is_row = random_.chance(70);
  const Dim width(kChunk * random_.between(1, 4));
  const ValueId x = is_row ? value_of({DType::f32, {rows_, width}}) : pick_float();
  TensorType type = graph_[x].type;
  const int64_t axis = is_row ? 1 : random_.below(static_cast<int64_t>(type.rank()));
  if (!type.dims[axis].is_constant()) return;
  const int64_t extent = type.dims[axis].constant();
  const int64_t size = is_row ? extent - random_.between(1, kChunk - 1) : random_.below(extent + 1);
  const ValueId part = must(OpKind::slice, {x},
                            Attributes()
                                .set(AttrName::axis, axis)
                                .set(AttrName::begin, int64_t{0})
                                .set(AttrName::size, Dim(size)));
  ValueId formula = apart(must(random_.pick(std::array{neg, tanh, exp}), {part}));
  if (is_row) {
    must(random_.chance(50) ? reduce_sum : reduce_max, {formula}, last_axis(formula));
    formula = apart(must(random_.pick(std::array{tanh, exp_neg_abs}), {formula}));
  }
  type.dims[axis] = extent - size;
  must(OpKind::concat, {formula, this->constant(type.dtype, type.dims)},
       Attributes().set(AttrName::axis, axis));
}

void GraphGenerator::logits() {
  const Dim width(random_.pick(widths_));
  const int64_t rows = mostly({3, 16}, 2, 20);
  const ValueId table = weight({main_dtype_, {Dim(rows), width}});
  const ValueId x = must(OpKind::embedding, {table, *ids(rows_, Dim(rows))});
  must(OpKind::linear, {normalize(x), table});
}

}  // namespace sinter
