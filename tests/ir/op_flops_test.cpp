// The floating-point operations and the instructions of ops, counted by hand.
#include "ir/op_flops.h"

#include <doctest/doctest.h>

#include "ir/builder.h"
#include "ir/symbols.h"

namespace sinter::op_flops_test {
namespace {

/// One op over inputs of these types, and the operations that it has in a call.
struct Counted {
  std::vector<Symbol> symbols = {host_symbol("N", 1, 64), host_symbol("R", 8, 1024, 8)};
  std::vector<int64_t> sizes = {3, 40};  // N, R

  double of(OpKind kind, std::vector<TensorType> types, const Attributes& attrs = {},
            std::optional<int64_t> visible_rows = {}) const {
    return counted(flops, kind, std::move(types), attrs, visible_rows);
  }
  double instructions_of(OpKind kind, std::vector<TensorType> types,
                         const Attributes& attrs = {}) const {
    return counted(instructions, kind, std::move(types), attrs, {});
  }

 private:
  double counted(double (*count)(const Graph&, const Op&, const CallSizes&), OpKind kind,
                 std::vector<TensorType> types, const Attributes& attrs,
                 std::optional<int64_t> visible_rows) const {
    Graph graph;
    Builder builder(graph, symbols);
    llvm::SmallVector<ValueId, 6> operands;
    for (const TensorType& type : types)
      operands.push_back(builder.leaf(OpKind::input, type, fmt::format("x{}", operands.size())));
    const ValueId result = builder.op(kind, operands, attrs);
    return count(graph, graph[result], {symbols, sizes, visible_rows});
  }
};

const Dim kTokens = SymbolId{0}, kRows = SymbolId{1};

TensorType reals(Dims dims) { return {DType::f16, std::move(dims)}; }

TEST_CASE("an elementwise op has one operation an element of its result") {
  const Counted counted;
  CHECK(counted.of(OpKind::mul, {reals({kTokens, 8}), reals({8})}) == 24);
}

TEST_CASE("a product has two operations a multiplication") {
  const Counted counted;
  CHECK(counted.of(OpKind::linear, {reals({kTokens, 8}), reals({5, 8}), reals({5})}) ==
        2 * 3 * 5 * 8);
  CHECK(counted.of(
            OpKind::linear, {reals({4, 8}), reals({5, 8})},
            Attributes().set(AttrName::order, Order::gemv).set(AttrName::splits, int64_t{1})) ==
        2 * 4 * 5 * 8);
  CHECK(counted.of(OpKind::einsum, {reals({kTokens, 2, 8}), reals({2, 8, 5})},
                   Attributes().set(AttrName::spec, std::string("nbk,bkm->bnm"))) ==
        2 * 3 * 2 * 8 * 5);
}

TEST_CASE("attention multiplies queries and weights with the rows that a token sees") {
  const Counted counted;
  const TensorType numbers{DType::i32, {kTokens}};
  const std::vector<TensorType> types = {reals({kTokens, 8}), reals({kRows, 4}), reals({kRows, 6}),
                                         numbers, numbers};
  Attributes attrs;
  attrs.set(AttrName::heads, int64_t{2}).set(AttrName::kv_heads, int64_t{1});
  attrs.set(AttrName::scale, 0.5);
  const double a_row = 2 * (3 * 8 + 3 * 12);
  CHECK(counted.of(OpKind::attention, types, attrs) == 40 * a_row);
  CHECK(counted.of(OpKind::attention, types, attrs, 7) == 7 * a_row);
  CHECK(counted.of(OpKind::attention, types, attrs, 1000) == 40 * a_row);
  attrs.set(AttrName::window, int64_t{5});
  CHECK(counted.of(OpKind::attention, types, attrs, 7) == 5 * a_row);
  CHECK(counted.of(OpKind::attention, types, attrs) == 40 * a_row);
  attrs.set(AttrName::sink, int64_t{4});
  CHECK(counted.of(OpKind::attention, types, attrs, 7) == 7 * a_row);
  CHECK(counted.of(OpKind::attention, types, attrs, 20) == 9 * a_row);
}

TEST_CASE("each of several sequences sees rows of its own keys; a mask counts nothing") {
  const Counted counted;
  const TensorType numbers{DType::i32, {5, kTokens}};
  std::vector<TensorType> types = {reals({5, kTokens, 8}), reals({5, kRows, 4}),
                                   reals({5, kRows, 6}), numbers, numbers};
  Attributes attrs;
  attrs.set(AttrName::heads, int64_t{2}).set(AttrName::kv_heads, int64_t{1});
  attrs.set(AttrName::scale, 0.5);
  const double a_row = 5 * 2 * (3 * 8 + 3 * 12);
  CHECK(counted.of(OpKind::attention, types, attrs) == 40 * a_row);
  CHECK(counted.of(OpKind::attention, types, attrs, 7) == 7 * a_row);
  types.push_back({DType::i1, {1, 2, kTokens, kRows}});
  CHECK(counted.of(OpKind::attention, types, attrs, 7) == 7 * a_row);
}

TEST_CASE("a composite has the operations of its primitives, casts and views none") {
  const Counted counted;
  // Maximum, difference, exponential, sum, reciprocal and product; a row's reciprocal is one.
  CHECK(counted.of(OpKind::softmax, {reals({kTokens, 8})}) == 3 * (5 * 8 + 1));
}

TEST_CASE("an exponential has the instructions of its formula, a sum one for each term") {
  const Counted counted;
  CHECK(counted.instructions_of(OpKind::mul, {reals({kTokens, 8}), reals({8})}) == 24);
  CHECK(counted.instructions_of(OpKind::exp, {reals({kTokens, 8})}) == 12 * 24);
  CHECK(counted.instructions_of(OpKind::reduce_sum, {reals({kTokens, 8})},
                                Attributes().set(AttrName::axes, std::vector<int64_t>{1})) == 24);
  // softmax: maximum, difference, sum and product of each element, and its exponential.
  CHECK(counted.instructions_of(OpKind::softmax, {reals({kTokens, 8})}) >= (4 + 12) * 24);
  CHECK(counted.instructions_of(OpKind::linear, {reals({kTokens, 8}), reals({5, 8})}) == 0);
  CHECK(counted.instructions_of(OpKind::copy, {reals({kTokens, 8})}) == 0);
}

TEST_CASE("what only moves elements has no operations") {
  const Counted counted;
  CHECK(counted.of(OpKind::copy, {reals({kTokens, 8})}) == 0);
  CHECK(counted.of(OpKind::embedding, {reals({9, 8}), {DType::i32, {kTokens}}}) == 0);
  CHECK(counted.of(OpKind::kv_append,
                   {reals({kRows, 8}), reals({kTokens, 8}), {DType::i32, {kTokens}}}) == 0);
}

}  // namespace
}  // namespace sinter::op_flops_test
