// Row numbers: inputs, which data fills with valid ones, and values that the graph computes.
#include <array>

#include "differential/graph_generator.h"

namespace sinter {

int64_t GraphGenerator::most(Dim dim) const {
  return dim.is_constant() ? dim.constant() : result_.module.symbols[dim.symbol().index].high;
}

ValueId GraphGenerator::integer(double value) {
  return must(OpKind::constant, {},
              Attributes()
                  .set(AttrName::dims, Dims())
                  .set(AttrName::dtype, DType::i32)
                  .set(AttrName::value, value));
}

/// Rows of a table or a cache: sometimes a symbol that is not 0.
Dim GraphGenerator::any_rows(int64_t usual) {
  const Dim rows = random_.chance(50) ? Dim(kLong) : Dim(kKeys);
  return random_.chance(12) && extent(rows) > 0 ? rows : Dim(usual);
}

/// [count] numbers of rows of a value that has that many; each may occur often. nullopt where there
/// is none.
GraphGenerator::Value GraphGenerator::ids(Dim count, Dim rows) {
  if (extent(rows) == 0 && extent(count) > 0) return std::nullopt;
  if (!rows.is_constant() || rows.is(0) || random_.chance(50)) return input({DType::i32, {count}});
  const ValueId x = any_integers(count, rows.constant());
  return random_.chance(kIdsOutsidePercent) ? x : clamped(x, rows.constant());
}

/// [count] integers that a graph may take for row numbers: chosen tokens, truth values, positions,
/// arithmetic, entries of a table.
ValueId GraphGenerator::any_integers(Dim count, int64_t rows) {
  using enum OpKind;
  const TensorType type{DType::i32, {count}}, truth{DType::i1, {count}}, real{DType::f32, {count}};
  const auto counted = [&] {
    return must(iota, {},
                Attributes().set(AttrName::dims, type.dims).set(AttrName::axis, int64_t{0}));
  };
  const auto truths = [&] {
    return must(random_.pick(std::array{less, less_equal, equal}), {value_of(type), integer(3)});
  };
  const auto as_integers = Attributes().set(AttrName::dtype, DType::i32);
  switch (random_.below(7)) {
    case 0: {  // the likeliest token, or a drawn one
      const ValueId scores = value_of({any_float(), {count, Dim(rows)}});
      const ValueId zero = must(constant, {},
                                Attributes()
                                    .set(AttrName::dims, real.dims)
                                    .set(AttrName::dtype, DType::f32)
                                    .set(AttrName::value, 0.0));
      return must(sample, {scores, random_.chance(50) ? zero : value_of(real), value_of(type),
                           value_of(real), value_of(type), value_of(type)});
    }
    case 1:
      return must(cast, {truths()}, as_integers);
    case 2:  // how many there were before
      return must(cumulative_sum, {must(cast, {truths()}, as_integers)}, scan_attributes(0));
    case 3:
      return must(random_.pick(std::array{add, sub, mul}), {value_of(type), value_of(type)});
    case 4:
      return must(random_.pick(std::array{add, sub, mul}),
                  {counted(), integer(static_cast<double>(random_.between(-2, rows)))});
    case 5: {  // a table of row numbers
      const int64_t length = mostly({3, 8}, 1, 12);
      const ValueId table = value_of({DType::i32, {Dim(length), Dim(1)}});
      const ValueId entries = must(embedding, {table, *ids(count, Dim(length))});
      return must(reshape, {entries}, Attributes().set(AttrName::dims, type.dims));
    }
    default:
      return must(where, {truths(), value_of(type), counted()});
  }
}

/// Each integer, or the nearest row.
ValueId GraphGenerator::clamped(ValueId x, int64_t rows) {
  using enum OpKind;
  const ValueId low = integer(0), high = integer(static_cast<double>(rows - 1));
  if (random_.chance(50)) return must(minimum, {must(maximum, {x, low}), high});
  return must(maximum, {low, must(minimum, {high, x})});
}

/// [count] different rows of a state or a cache, from a first one on, or in any order; nullopt
/// where there are too few.
GraphGenerator::Value GraphGenerator::slots(Dim count, Dim all) {
  using enum OpKind;
  if (extent(count) > extent(all)) return std::nullopt;
  if (!all.is_constant() || most(count) > all.constant() || random_.chance(60))
    return this->input({DType::i32, {count}});
  const int64_t rows = all.constant();
  const Dims dims{count};
  ValueId counted =
      must(iota, {}, Attributes().set(AttrName::dims, dims).set(AttrName::axis, int64_t{0}));
  if (random_.chance(20)) {
    const ValueId ones = must(constant, {},
                              Attributes()
                                  .set(AttrName::dims, dims)
                                  .set(AttrName::dtype, DType::i32)
                                  .set(AttrName::value, 1.0));
    counted =
        must(cumulative_sum, {ones},
             Attributes().set(AttrName::axis, int64_t{0}).set(AttrName::exclusive, int64_t{1}));
  }
  const int64_t free = rows - most(count);
  switch (random_.below(4)) {
    case 0:
      return counted;
    case 1:
      return must(add, {counted, integer(static_cast<double>(random_.between(0, free)))});
    case 2:
      return must(sub, {integer(static_cast<double>(rows - 1)), counted});
    default:  // after a length that is an input
      return must(add, {counted, clamped(value_of({DType::i32, {Dim(1)}}), free + 1)});
  }
}

}  // namespace sinter
