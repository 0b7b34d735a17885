// A rule on Reread: of a row, the formula is computed for one column alone.
#include "ir/reread.h"

#include <doctest/doctest.h>

namespace sinter::reread_test {
namespace {

/// A place is a column. Values of one column are whole; leaves are sliced.
class AtColumn : public Reread<int64_t> {
 public:
  using Reread::Reread;

 private:
  bool is_whole(ValueId id, const int64_t&) const override {
    return extent_before(from_[id].type.dims, 0).is(1);
  }
  bool makes(ValueId id, const int64_t&) const override {
    return op_class(from_[root_of(from_, id)]) == OpClass::leaf;
  }
  ValueId make(ValueId id, const int64_t& column) override {
    return builder_.slice(rewriter_[id], 1, column, 1);
  }
};

/// y = exp(x + scale) squared, and z, which also reads a sum down columns. n reads a state before
/// `next` overwrites it; `before` and `behind` are ops that read n.
struct Example {
  Graph graph, into;
  Builder b{graph, {}}, to{into, {}, "new"};
  const ValueId x = b.leaf(OpKind::input, {DType::f32, {4, 8}}, "x");
  const ValueId scale = b.leaf(OpKind::input, {DType::f32, {4, 1}}, "scale");
  const ValueId rows = b.leaf(OpKind::input, {DType::i32, {4}}, "rows");
  const ValueId a = b.op(OpKind::add, {x, scale}, {}, "a");
  const ValueId e = b.op(OpKind::exp, {a}, {}, "e");
  const ValueId y = b.op(OpKind::mul, {e, e}, {}, "y");
  const ValueId z = b.op(OpKind::add, {y, b.reduce(OpKind::reduce_sum, y, {0})}, {}, "z");
  const ValueId c = b.leaf(OpKind::state, {DType::f32, {4, 8}}, "c");
  const ValueId n = b.op(OpKind::neg, {c}, {}, "n");
  const ValueId before = b.reduce(OpKind::reduce_sum, n, {1}, "before");
  const ValueId next = b.op(OpKind::kv_append, {c, x, rows}, {}, "next");
  const ValueId behind = b.reduce(OpKind::reduce_sum, n, {1}, "behind");

  GraphRewriter rewriter{graph, into};

  Example() {
    rewriter.rewrite_ops([&](ValueId, Op op) { return rewriter.add(std::move(op)); });
  }
  AtColumn reread() { return AtColumn(graph, to, rewriter, ".there"); }
};

TEST_CASE("a formula computes the ops down to what the rule makes, and counts instructions") {
  Example in;
  const auto formula = in.reread().formula(in.y, 3, in.before);
  REQUIRE(formula.has_value());
  CHECK(formula->computed == std::set{in.a, in.e, in.y});
  CHECK(formula->read == std::set{in.x, in.scale});
  CHECK(formula->instructions == 14);  // add, exp, mul
}

TEST_CASE("a formula has at most as many instructions as the budget") {
  Graph graph, into;
  Builder b(graph, {}), to(into, {});
  ValueId last = b.leaf(OpKind::input, {DType::f32, {4, 8}}, "x");
  for (int64_t i = 0; i < kMaxRereadInstructions; ++i) last = b.op(OpKind::neg, {last}, {}, "n");
  const ValueId beyond = b.op(OpKind::neg, {last}, {}, "beyond");
  GraphRewriter rewriter(graph, into);
  const AtColumn reread(graph, to, rewriter);
  CHECK(reread.formula(last, 3, beyond).has_value());
  CHECK(!reread.formula(beyond, 3, beyond));
}

TEST_CASE("a value that the rule cannot make refuses the formula that reads it") {
  Example in;
  CHECK(!in.reread().formula(in.z, 3, in.before));
}

TEST_CASE("no op reads a state behind the op that overwrites it") {
  Example in;
  const AtColumn reread = in.reread();
  CHECK(reread.formula(in.n, 3, in.before).has_value());
  CHECK(reread.formula(in.c, 3, in.before).has_value());
  CHECK(!reread.formula(in.n, 3, in.behind));
  CHECK(!reread.formula(in.c, 3, in.behind));
  CHECK(reread.formula(in.x, 3, in.behind).has_value());
}

TEST_CASE("a formula is computed at a place of operands at that place") {
  Example in;
  AtColumn reread = in.reread();
  const Op& y = in.into[reread.at(in.y, 3, in.before)];
  CHECK(y.name == "y.there");
  CHECK(y.type.dims == Dims{4, 1});
  REQUIRE(y.operands[0] == y.operands[1]);
  const Op& a = in.into[in.into[y.operands[0]].operands[0]];
  CHECK(a.operands[1] == in.rewriter[in.scale]);
  const Op& column = in.into[a.operands[0]];
  CHECK(column.kind == OpKind::slice);
  CHECK(column.attrs.get<int64_t>(AttrName::begin) == 3);
  CHECK(column.operands[0] == in.rewriter[in.x]);
}

TEST_CASE("a value is made once for a place, and anew for another place") {
  Example in;
  AtColumn reread = in.reread();
  const ValueId first = reread.at(in.y, 3, in.before);
  const size_t size = in.into.size();
  CHECK(reread.at(in.y, 3, in.before) == first);
  CHECK(in.into.size() == size);
  CHECK(reread.at(in.y, 5, in.before) != first);
  CHECK(in.into.size() == size + 4);  // x sliced, a, e, y
}

}  // namespace
}  // namespace sinter::reread_test
