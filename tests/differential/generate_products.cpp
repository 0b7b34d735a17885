// Products: linears, einsums and gemvs of every shape.
#include <array>

#include "differential/graph_generator.h"

namespace sinter {

void GraphGenerator::linear() {
  if (random_.chance(4)) {  // nothing to add, or nothing to compute
    const bool inner = random_.chance(50);
    project(value_of({main_dtype_, {rows_, Dim(inner ? 0 : 8)}}), inner ? 8 : 0);
    return;
  }
  if (random_.chance(25)) return any_linear();
  project(pick_rows(), random_.chance(70) ? random_.pick(widths_) : mostly({5, 16, 40}, 1, 40));
}

/// Rows of any rank and float type, and a matrix that may be computed.
void GraphGenerator::any_linear() {
  const Value x = pick([](const TensorType& t) {
    return is_float(t.dtype) && t.rank() >= 1 && t.dims.back().is_constant();
  });
  if (!x) return;
  const DType dtype = graph_[*x].type.dtype;
  const Dim width(random_.pick(widths_)), inner = graph_[*x].type.dims.back();
  if (volume_of({dtype, {width, inner}}) > kMaxElements) return;
  llvm::SmallVector<ValueId, 3> operands{*x, value_of({dtype, {width, inner}})};
  if (random_.chance(40)) operands.push_back(value_of({dtype, {width}}));
  op(OpKind::linear, operands);
}

/// Letters that are batch axes, summed and free ones in any number and order, of any extents.
void GraphGenerator::any_einsum() {
  const auto wanted = [](const TensorType& t) {
    return is_float(t.dtype) && t.rank() >= 1 && t.rank() <= 5;
  };
  Value a = random_.chance(50) ? pick(wanted) : std::nullopt;
  if (!a) {
    TensorType type{any_float(), {}};
    for (int64_t axes = random_.between(1, 4); axes > 0; --axes)
      type.dims.push_back(random_.chance(35)   ? any_symbol()
                          : random_.chance(50) ? Dim(mostly({2, 3, 8}, 0, 9))
                                               : any_dim());
    if (volume_of(type) > kMaxElements) return;
    a = value_of(type);
  }
  const TensorType type = graph_[*a].type;
  std::string a_letters, b_letters, result;
  TensorType other{type.dtype, {}};
  for (size_t axis = 0; axis < type.rank(); ++axis) {
    const char letter = static_cast<char>('a' + axis);
    const int64_t kind = random_.below(5);  // 0 .. 2: summed, 3: batch, 4: free
    a_letters += letter;
    if (kind < 4) b_letters += letter, other.dims.push_back(type.dims[axis]);
    if (kind >= 3) result += letter;
  }
  for (int64_t axes = random_.between(0, 2); axes > 0; --axes) {
    const char letter = static_cast<char>('z' - axes);
    b_letters += letter, result += letter;
    other.dims.push_back(random_.chance(25) ? any_symbol() : Dim(mostly({2, 3, 5}, 0, 8)));
  }
  for (size_t i = b_letters.size(); i > 1; --i) {
    const auto j = static_cast<size_t>(random_.below(static_cast<int64_t>(i)));
    std::swap(b_letters[i - 1], b_letters[j]), std::swap(other.dims[i - 1], other.dims[j]);
  }
  for (size_t i = result.size(); i > 1; --i)
    std::swap(result[i - 1], result[static_cast<size_t>(random_.below(static_cast<int64_t>(i)))]);
  if (volume_of(other) > kMaxElements) return;
  Attributes attrs;
  attrs.set(AttrName::spec, a_letters + "," + b_letters + "->" + result);
  if (random_.chance(30)) attrs.set(AttrName::dtype, any_float());
  op(OpKind::einsum, {*a, value_of(other)}, std::move(attrs));
}

void GraphGenerator::einsum() {
  if (random_.chance(60)) return any_einsum();
  static constexpr std::string_view kSpecs[] = {
      "ij,jk->ik",      "ij,kj->ik",      "ji,jk->ik",   "ij,jk->ki", "bij,bjk->bik",
      "bij,bkj->bik",   "ij,ij->i",       "i,j->ij",     "ij,j->i",   "bij,jk->bik",
      "nkgd,tkd->kgnt", "kgnt,tkd->nkgd", "ijk,ijk->jik"};
  const std::string spec(random_.pick(kSpecs));
  const size_t comma = spec.find(','), arrow = spec.find("->");
  const Value a = pick([&](const TensorType& t) { return is_float(t.dtype) && t.rank() == comma; });
  if (!a) return;
  const TensorType type = graph_[*a].type;
  TensorType other{type.dtype, {}};
  for (size_t i = comma + 1; i < arrow; ++i) {
    const size_t shared = spec.find(spec[i]);
    other.dims.push_back(shared < comma ? type.dims[shared] : any_dim());
  }
  if (volume_of(other) > kMaxElements) return;
  Attributes attrs;
  attrs.set(AttrName::spec, spec);
  if (random_.chance(30)) attrs.set(AttrName::dtype, any_float());
  op(OpKind::einsum, {*a, value_of(other)}, std::move(attrs));
}

/// A product as the passes write it: few tokens, rows of whole chunks.
void GraphGenerator::gemv() {
  const Dim tokens = most(rows_) <= kFewTokens ? rows_ : Dim(mostly({1, 3, 8}, 1, kFewTokens));
  const int64_t inner = 8 * mostly({1, 4, 8}, 1, 24), width = mostly({8, 17, 40}, 1, 70);
  const TensorType matrix{main_dtype_, {Dim(width), Dim(inner)}};
  llvm::SmallVector<ValueId, 3> operands{value_of({main_dtype_, {tokens, Dim(inner)}}),
                                         random_.chance(80) ? weight(matrix) : input(matrix)};
  if (random_.chance(40)) operands.push_back(value_of({main_dtype_, {Dim(width)}}));
  Attributes attrs;
  attrs.set(AttrName::order, Order::gemv).set(AttrName::splits, int64_t{1} << mostly({0, 1}, 0, 4));
  if (random_.chance(20)) attrs.set(AttrName::dtype, DType::f32);
  op(OpKind::linear, operands, std::move(attrs));
}

void GraphGenerator::tiled_linear() {
  if (dtype_info(main_dtype_).bits != 16) return;
  const int64_t inner = 8 * mostly({1, 8, 9}, 1, 20), width = mostly({8, 17, 136}, 1, 140);
  const TensorType matrix{main_dtype_, {Dim(width), Dim(inner)}};
  if (random_.chance(80)) {
    const int64_t runs = mostly({1, 3}, 1, 9);
    const TensorType matrices{main_dtype_, {Dim(runs), Dim(width), Dim(inner)}};
    const ValueId x = value_of({main_dtype_, {rows_, Dim(inner)}}),
                  ends = input({DType::i32, {Dim(runs)}});
    op(OpKind::grouped_linear,
       {x, random_.chance(80) ? weight(matrices) : value_of(matrices), ends}, {});
    const ValueId y = value_of({main_dtype_, {rows_, Dim(8 * mostly({1, 9}, 1, 12))}});
    op(OpKind::grouped_outer, {x, y, ends}, {});
  }
  llvm::SmallVector<ValueId, 3> operands{value_of({main_dtype_, {rows_, Dim(inner)}}),
                                         random_.chance(80) ? weight(matrix) : value_of(matrix)};
  if (random_.chance(40)) operands.push_back(value_of({main_dtype_, {Dim(width)}}));
  Attributes attrs;
  attrs.set(AttrName::order, Order::tiled_linear);
  if (random_.chance(20)) attrs.set(AttrName::dtype, DType::f32);
  op(OpKind::linear, operands, std::move(attrs));
}

/// Codes and scales of files, the scales within -0.75 .. 0.25: with infinite ones a product has no
/// value that all orders of its sum agree on. Zero points are among the codes' own values:
/// tiled_codes rounds a code less any other zero (kernels/products/order.h).
ValueId GraphGenerator::packed_weight(const CodeFormat& format, int64_t rows, int64_t length) {
  Weight made{name("w"), {DType::i32, {rows, row_words(format, length)}}, {}};
  Builder init(made.init, result_.module.symbols);
  const auto file = [&](std::string_view part, DType dtype, int64_t columns) {
    return init.op(OpKind::file, {},
                   Attributes()
                       .set(AttrName::dims, Dims{rows, columns})
                       .set(AttrName::dtype, dtype)
                       .set(AttrName::tensor, fmt::format("{}.{}", made.name, part)));
  };
  const int64_t groups = code_groups(format, length);
  const auto scales = [&](std::string_view part) {
    return init.sub(
        init.op(OpKind::sigmoid, {file(part, format.scale, code_scales(format, length))}),
        init.constant(0.75, format.scale));
  };
  const auto up_to_15 = [&](std::string_view part) {
    return init.op(
        OpKind::minimum,
        {init.op(OpKind::maximum, {file(part, DType::i32, groups), init.constant(0, DType::i32)}),
         init.constant(15, DType::i32)});
  };
  llvm::SmallVector<ValueId, 4> operands{file("codes", DType::i32, code_words(format, length)),
                                         scales("scales")};
  if (format.zeros) operands.push_back(up_to_15("zeros"));
  if (format.minima) operands.push_back(scales("minima"));
  if (format.part_bits != 0) operands.push_back(up_to_15("parts"));
  made.init.outputs.push_back(init.op(
      OpKind::pack_codes, operands,
      Attributes().set(AttrName::size, Dim(length)).set(AttrName::codes, to_string(format))));
  const ValueId id = builder_.leaf(OpKind::weight, made.type, made.name);
  result_.module.weights.push_back(std::move(made));
  return id;
}

/// Some rows of a packed matrix: all but the first half.
ValueId GraphGenerator::rows_of(ValueId packed) {
  const int64_t rows = graph_[packed].type.dims[0].constant();
  return builder_.slice(packed, 0, rows / 2, Dim(rows - rows / 2));
}

CodeFormat GraphGenerator::any_format() {
  static constexpr std::string_view kFormats[] = {
      "int8 row f32",         "e4m3 row bf16",       "int4 g128 f16",
      "uint4 g128 f16 zeros", "e2m1 g16 f32",        "e2m1 g32 bf16",
      "uint8 row f16 zeros",  "e4m3 g128 f32",       "uint4 g32 f16 minima",
      "int8 row f32 minima",  "iq4nl g16 bf16",      "uint4 g32 f16x6 minima",
      "int6 g16 f16x8",       "uint5 g32 f16 minima"};
  return *parse_code_format(random_.pick(kFormats));
}

/// A quantized matrix as models have it, dequantized before a product of any number of tokens; or
/// as the passes write the product of few, or of many on tensor cores.
void GraphGenerator::quantized() {
  const CodeFormat format = any_format();
  const bool tiles = dtype_info(main_dtype_).bits == 16 && random_.chance(85);
  const bool chosen = tiles || random_.chance(60);
  const bool few = !tiles && (chosen || random_.chance(50));
  const Dim tokens =
      !few || most(rows_) <= kFewTokens ? rows_ : Dim(mostly({1, 3, 8}, 1, kFewTokens));
  if (chosen && !tiles && most(tokens) > kFewTokens) return;
  const int64_t width = mostly({8, 17}, 1, 30);
  int64_t inner = 8 * mostly({1, 4, 33}, 1, 40);
  if (!chosen && random_.chance(20)) inner += 3;
  Attributes attrs;
  attrs.set(AttrName::size, Dim(inner)).set(AttrName::codes, to_string(format));
  const ValueId packed = packed_weight(format, width, inner);
  llvm::SmallVector<ValueId, 3> operands{value_of({main_dtype_, {tokens, Dim(inner)}}), packed};
  if (random_.chance(40)) operands.push_back(value_of({main_dtype_, {Dim(width)}}));
  if (chosen) {
    if (tiles)
      attrs.set(AttrName::order, Order::tiled_codes);
    else
      attrs.set(AttrName::splits, int64_t{1} << mostly({0, 1}, 0, 4));
    if (random_.chance(20)) attrs.set(AttrName::dtype, DType::f32);
    op(OpKind::quantized_linear, operands, std::move(attrs));
    return;
  }
  // A minimum may cancel what it is subtracted from, so that the product's error is beyond the
  // bound of one with such a matrix: it is read otherwise.
  const ValueId part = random_.chance(20) ? rows_of(packed) : packed;
  operands[1] = builder_.op(OpKind::dequantize, {part}, std::move(attrs));
  if (part != packed) {
    values_.push_back(operands[1]);
  } else if (random_.chance(20)) {
    if (const Value rows = ids(any_dim(), Dim(width))) op(OpKind::embedding, {operands[1], *rows});
  } else if (format.minima || random_.chance(20))
    values_.push_back(operands[1]);
  else
    op(OpKind::linear, operands);
}

}  // namespace sinter
