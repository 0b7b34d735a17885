// Attention, which passes expand by the number of tokens, and the ops that have kernels of their
// own.
#include <array>
#include <cmath>

#include "differential/graph_generator.h"

namespace sinter {

/// A value of that type [rows, width]; sometimes columns of a wider one.
ValueId GraphGenerator::columns(const TensorType& type) {
  if (!random_.chance(30)) return value_of(type);
  const int64_t width = type.dims[1].constant(), more = random_.between(1, 16);
  const ValueId wide = value_of({type.dtype, {type.dims[0], Dim(width + more)}});
  return must(OpKind::slice, {wide},
              Attributes()
                  .set(AttrName::axis, int64_t{1})
                  .set(AttrName::begin, random_.between(0, more))
                  .set(AttrName::size, Dim(width)));
}

/// Operands and attributes of an attention over caches of so many rows.
std::optional<GraphGenerator::Attended> GraphGenerator::attended(int64_t rows) {
  const int64_t kv_heads = random_.between(1, 2), heads = kv_heads * random_.between(1, 3);
  const int64_t width = random_.pick(std::array{1, 2, 4, 5, 8});
  const int64_t value_width = random_.pick(std::array{1, 3, 4, 8, 12});
  Attended made;
  made.operands = {columns({main_dtype_, {rows_, Dim(heads * width)}}),
                   columns({main_dtype_, {Dim(rows), Dim(kv_heads * width)}}),
                   columns({main_dtype_, {Dim(rows), Dim(kv_heads * value_width)}})};
  const Value slot = slots(rows_, rows);
  if (!slot) return std::nullopt;
  made.operands.push_back(input({DType::i32, {rows_}}));
  made.operands.push_back(*slot);
  made.attrs.set(AttrName::heads, heads).set(AttrName::kv_heads, kv_heads);
  made.attrs.set(AttrName::scale, 1.0 / std::sqrt(static_cast<double>(width)));
  if (random_.chance(25)) made.attrs.set(AttrName::softcap, 5.0);
  if (random_.chance(25)) made.attrs.set(AttrName::window, random_.between(1, 6));
  return made;
}

void GraphGenerator::attention() {
  if (auto made = attended(random_.between(12, 20)))
    op(OpKind::attention, made->operands, std::move(made->attrs));
}

void GraphGenerator::attention_few() {
  auto made = attended(random_.between(12, 100));
  if (!made) return;
  made->attrs.set(AttrName::splits, int64_t{random_.pick(std::array{1, 2, 3, 7, 8})});
  op(OpKind::attention_few, made->operands, std::move(made->attrs));
}

void GraphGenerator::sample() {
  const int64_t width = random_.chance(80) ? random_.pick(widths_) : random_.between(1, 40);
  const ValueId logits = columns({any_float(), {rows_, Dim(width)}});
  const TensorType real{DType::f32, {rows_}}, integer{DType::i32, {rows_}};
  op(OpKind::sample, {logits, value_of(real), value_of(integer), value_of(real), value_of(integer),
                      value_of(integer)});
}

}  // namespace sinter
