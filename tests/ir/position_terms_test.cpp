// Integer elements as terms of their positions.
#include <doctest/doctest.h>

#include "ir/builder.h"
#include "ir/term_builder.h"

namespace sinter::position_terms_test {
namespace {

/// The reader has the axes q and k, of 4 and 64 elements.
struct Reader {
  Graph graph;
  Builder b{graph, {}};
  const Dims dims = {4, 64};
  const ValueId q = b.iota({4, 1}, 0), k = b.iota({1, 64}, 1);
  const ValueId given = b.leaf(OpKind::input, {DType::i32, {4, 1}}, "given");

  ValueId number(int64_t value) { return b.constant(static_cast<double>(value), DType::i32); }
  ValueId op(OpKind kind, ValueId x, ValueId y) { return b.op(kind, {x, y}); }
  Term read(PositionTerms& terms, ValueId id) {
    return terms.read(id, broadcast_coords(graph[id].type.dims, dims, identity_map(2)));
  }
};

const Term kQuery = Term::variable(0), kKey = Term::variable(1);

TEST_CASE("a sum of positions is a term, whose bounds are known") {
  Reader in;
  const ValueId distance = in.b.sub(in.b.mul(in.q, in.number(16)), in.b.add(in.k, in.number(3)));
  PositionTerms terms(in.graph, in.dims, {});
  const Term term = in.read(terms, distance);
  CHECK(term == kQuery * 16 - kKey - Term{3});
  const auto bounds = terms.bounds(term);
  REQUIRE(bounds.has_value());
  CHECK(bounds->least == -66);
  CHECK(bounds->largest == 45);
  CHECK(terms.depends_on(term, 1));
}

TEST_CASE("a quotient is folded where the bounds prove it, and else a node") {
  Reader in;
  const ValueId folded = in.op(OpKind::div_floor, in.k, in.number(64));
  const ValueId blocks = in.op(OpKind::div_floor, in.k, in.number(16));
  PositionTerms terms(in.graph, in.dims, {});
  CHECK(in.read(terms, folded) == Term{});
  const Term block = in.read(terms, blocks);
  REQUIRE(terms.node_of(block));
  CHECK(terms.node_of(block)->function == OpKind::div_floor);
  CHECK(terms.is_at_most_zero(block * 16 - kKey));
  CHECK(!terms.is_at_most_zero(kKey - block * 16));
}

TEST_CASE("a sum that may wrap around is an element of its own") {
  Reader in;
  const ValueId next = in.b.add(in.given, in.number(1));
  PositionTerms terms(in.graph, in.dims, {});
  const Term given = in.read(terms, in.given), sum = in.read(terms, next);
  REQUIRE((terms.node_of(given) && terms.node_of(sum)));
  CHECK(terms.node_of(given)->root == in.given);
  CHECK(terms.node_of(sum)->root == next);
}

TEST_CASE("a builder makes the value of a term: of few axes, and of all") {
  for (const bool whole : {false, true}) {
    Reader in;
    PositionTerms terms(in.graph, in.dims, {});
    const Term term = in.read(terms, in.given) - kKey * 2;
    const uint32_t axes[] = {0, 1};
    REQUIRE(TermBuilder::can_build(terms, term, axes));
    const auto same = [](ValueId id) { return id; };
    TermBuilder build(in.b, terms, axes, same, whole);
    const TensorType type = in.b.type(build.build(term));
    CHECK(type.dims == in.dims);
    CHECK(type.dtype == DType::i64);  // the sum may leave i32
    CHECK(in.b.type(build.build(kKey)).dims == (whole ? in.dims : Dims{1, 64}));
  }
}

}  // namespace
}  // namespace sinter::position_terms_test
