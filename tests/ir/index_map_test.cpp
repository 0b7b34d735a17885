// Index maps through views, compared with the elements that the views list one by one.
#include "ir/index_map.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "ir/builder.h"
#include "ir/region.h"
#include "ir/symbols.h"
#include "ir/text.h"

namespace sinter::index_map_test {
namespace {

using Values = std::vector<int64_t>;

const std::vector<Symbol> kSymbols = {host_symbol("N", 1, 8), host_symbol("M", 1, 8)};

/// A generator of the test's own, so that every platform sees the same cases.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}
  int64_t below(int64_t bound) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state_ >> 33) % static_cast<uint64_t>(bound));
  }
  template <typename T>
  void shuffle(T& items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  uint64_t state_;
};

int64_t evaluate(const IndexExpr& e, const Values& variables, const Values& symbols) {
  int64_t sum = *e.constant().evaluate(symbols);
  for (const IndexExpr::Term& term : e.terms()) {
    int64_t atom = 0;
    if (term.atom.kind == IndexExpr::Atom::Kind::variable) {
      atom = variables.at(term.atom.variable);
    } else {
      const int64_t operand = evaluate(*term.atom.operand, variables, symbols);
      const int64_t divisor = *term.atom.divisor.evaluate(symbols);
      REQUIRE(operand >= 0);
      REQUIRE(divisor > 0);
      atom =
          term.atom.kind == IndexExpr::Atom::Kind::quotient ? operand / divisor : operand % divisor;
    }
    sum += atom * *term.coefficient.evaluate(symbols);
  }
  return sum;
}

Values extents_of(DimsRef dims, const Values& symbols) {
  Values extents;
  for (Dim dim : dims)
    extents.push_back(dim.is_constant() ? dim.constant() : symbols[dim.symbol().index]);
  return extents;
}

int64_t product(const Values& extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
}

/// Calls `visit(coords)` for every element in row-major order.
template <typename Visit>
void for_each_element(const Values& extents, Visit visit) {
  Values coords(extents.size(), 0);
  for (int64_t left = product(extents); left > 0; --left) {
    visit(coords);
    for (size_t axis = extents.size(); axis-- > 0;) {
      if (++coords[axis] < extents[axis]) break;
      coords[axis] = 0;
    }
  }
}

int64_t position(const Values& extents, const Values& coords) {
  int64_t at = 0;
  for (size_t i = 0; i < extents.size(); ++i) at = at * extents[i] + coords[i];
  return at;
}

/// The elements of `view` in order, when its operand's elements are `from`.
Values elements_of(const Graph& graph, ValueId view, const Values& from, const Values& symbols) {
  const Op& op = graph[view];
  if (op.kind == OpKind::reshape) return from;
  const Values from_extents = extents_of(graph[op.operands[0]].type.dims, symbols);
  Values result;
  for_each_element(extents_of(op.type.dims, symbols), [&](const Values& coords) {
    Values source(from_extents.size());
    if (op.kind == OpKind::transpose) {
      const auto& axes = op.attrs.get<std::vector<int64_t>>(AttrName::axes);
      for (size_t i = 0; i < coords.size(); ++i) source[axes[i]] = coords[i];
    } else if (op.kind == OpKind::slice) {
      source = coords;
      source[op.attrs.get<int64_t>(AttrName::axis)] += op.attrs.get<int64_t>(AttrName::begin);
    } else {
      const size_t lead = coords.size() - source.size();
      for (size_t i = 0; i < source.size(); ++i)
        source[i] = from_extents[i] == 1 ? 0 : coords[lead + i];
    }
    result.push_back(from[position(from_extents, source)]);
  });
  return result;
}

/// Dims with as many elements as `dims`, cut and ordered at random.
Dims regrouped(const Dims& dims, Random& random) {
  Values factors;
  Dims symbolic;
  for (Dim dim : dims) {
    if (!dim.is_constant()) {
      symbolic.push_back(dim);
      continue;
    }
    int64_t rest = dim.constant();
    for (int64_t prime = 2; rest > 1; ++prime)
      for (; rest % prime == 0; rest /= prime) factors.push_back(prime);
  }
  random.shuffle(factors);
  Dims result;
  for (size_t i = 0; i < factors.size();) {
    int64_t extent = 1;
    for (int64_t take = 1 + random.below(3); take > 0 && i < factors.size(); --take)
      extent *= factors[i++];
    result.push_back(extent);
  }
  for (Dim dim : symbolic) result.insert(result.begin() + random.below(result.size() + 1), dim);
  if (random.below(3) == 0) result.insert(result.begin() + random.below(result.size() + 1), Dim(1));
  return result;
}

ValueId random_view(Builder& builder, ValueId x, Random& random) {
  const Dims dims = builder.type(x).dims;
  switch (random.below(4)) {
    case 0:
      return builder.reshape(x, regrouped(dims, random));
    case 1: {
      std::vector<int64_t> axes(dims.size());
      std::iota(axes.begin(), axes.end(), 0);
      random.shuffle(axes);
      return builder.transpose(x, axes);
    }
    case 2: {
      if (dims.empty()) return x;
      const int64_t axis = random.below(dims.size());
      if (!dims[axis].is_constant())
        return builder.slice(x, axis, 0, random.below(2) ? dims[axis] : Dim(1));
      const int64_t size = 1 + random.below(dims[axis].constant());
      return builder.slice(x, axis, random.below(dims[axis].constant() - size + 1), size);
    }
    default: {
      Dims wide = dims;
      for (Dim& dim : wide)
        if (dim.is(1) && random.below(2)) dim = random.below(2) ? Dim(3) : Dim(SymbolId{0});
      if (random.below(3) == 0) wide.insert(wide.begin(), Dim(2));
      return builder.op(OpKind::broadcast, {x}, Attributes().set(AttrName::dims, wide));
    }
  }
}

/// Compares the map of a read of `view` with the elements listed one by one.
void check_reads(const Graph& graph, ValueId root, ValueId view, const Values& elements,
                 const Values& symbols) {
  const Dims& dims = graph[view].type.dims;
  const Access access = resolve_access(graph, view, identity_map(dims.size()), dims);
  REQUIRE((access.root == root));
  const Values root_extents = extents_of(graph[root].type.dims, symbols);
  REQUIRE(access.coords.size() == root_extents.size());
  const IndexExpr offset = linearize(graph[root].type.dims, access.coords);
  size_t at = 0, wrong = 0;
  for_each_element(extents_of(dims, symbols), [&](const Values& coords) {
    Values found;
    for (size_t i = 0; i < root_extents.size(); ++i) {
      found.push_back(evaluate(access.coords[i], coords, symbols));
      wrong += found[i] < 0 || found[i] >= root_extents[i];
    }
    wrong += position(root_extents, found) != elements[at];
    wrong += evaluate(offset, coords, symbols) != elements[at++];
  });
  CHECK(at == elements.size());
  CHECK_MESSAGE(wrong == 0, print_graph(graph, kSymbols));
}

/// The region of a view has as many elements as the view reaches; false: it is an upper bound.
bool check_region(const Graph& graph, ValueId view, Values elements, const Values& symbols) {
  std::sort(elements.begin(), elements.end());
  const auto different = std::unique(elements.begin(), elements.end()) - elements.begin();
  const IndexSet reached = region(graph, view, symbols);
  if (reached.exact())
    CHECK_MESSAGE(reached.size() == different, print_graph(graph, kSymbols));
  else
    CHECK_MESSAGE(reached.size() >= different, print_graph(graph, kSymbols));
  return reached.exact();
}

}  // namespace

TEST_CASE("random chains of views read the elements that they list") {
  size_t chains = 0, not_affine = 0, bounds = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    Random random(seed);
    Graph graph;
    Builder builder(graph, kSymbols);
    Dims dims;
    for (int64_t rank = random.below(4); rank >= 0; --rank)
      dims.push_back(random.below(4) == 0 ? Dim(SymbolId{static_cast<uint32_t>(random.below(2))})
                                          : Dim(1 + random.below(8)));
    const ValueId root = builder.leaf(OpKind::input, {DType::f32, dims}, "x");
    ValueId view = root;
    for (int64_t left = 1 + random.below(5); left > 0; --left) {
      // Large enough to be telling, small enough to list.
      if (volume(builder.type(view).dims).upper_bound(kSymbols) > 50000) break;
      view = random_view(builder, view, random);
    }
    for (const Values& symbols : {Values{1, 1}, Values{3, 2}, Values{5, 7}}) {
      Values elements(product(extents_of(dims, symbols)));
      std::iota(elements.begin(), elements.end(), 0);
      for (uint32_t i = 1; i < graph.size(); ++i)
        elements = elements_of(graph, ValueId{i}, elements, symbols);
      if (elements.size() > 5000) continue;
      check_reads(graph, root, view, elements, symbols);
      bounds += !check_region(graph, view, elements, symbols);
      ++chains;
    }
    const Access access = resolve_access(graph, view, identity_map(builder.type(view).rank()),
                                         builder.type(view).dims);
    not_affine += llvm::any_of(access.coords, [](const IndexExpr& e) { return !e.is_affine(); });
  }
  CHECK(chains > 3000);
  CHECK(not_affine > 100);
  CHECK(bounds < chains / 4);  // the others cut a broadcast or a slice across its axes
}

TEST_CASE("splitting heads and merging them again is the identity") {
  const SymbolId n{0};
  Graph graph;
  Builder builder(graph, kSymbols);
  const ValueId x = builder.leaf(OpKind::input, {DType::f32, {n, 16}}, "x");
  const ValueId heads = builder.reshape(x, {n, 2, 8});
  const Access split = resolve_access(graph, heads, identity_map(3), {n, 2, 8});
  CHECK((split.root == x));
  CHECK(split.coords[0] == IndexExpr::variable(0));
  CHECK(split.coords[1] == IndexExpr::variable(1) * 8 + IndexExpr::variable(2));
  const ValueId merged = builder.reshape(heads, {n, 16});
  CHECK((resolve_access(graph, merged, identity_map(2), {n, 16}).coords == identity_map(2)));
}

TEST_CASE("a reshape of a permuted value needs quotients and remainders") {
  Graph graph;
  Builder builder(graph, kSymbols);
  const ValueId x = builder.leaf(OpKind::input, {DType::f32, {4, 6}}, "x");
  const ValueId flat = builder.reshape(builder.transpose(x, {1, 0}), {24});
  const Access access = resolve_access(graph, flat, identity_map(1), {24});
  CHECK_FALSE(access.coords[0].is_affine());
  CHECK(evaluate(access.coords[0], {9}, {}) == 1);  // element 9 of the transpose is its [2, 1]
  CHECK(evaluate(access.coords[1], {9}, {}) == 2);
}

TEST_CASE("sums of index expressions are canonical") {
  const IndexExpr i = IndexExpr::variable(0), j = IndexExpr::variable(1);
  CHECK(i * 2 + j == j + i * 2);
  CHECK(i + i * -1 == IndexExpr());
  CHECK((i * 2 + j).coefficient(0) == SymExpr(2));
  CHECK((i * 2 + j).coefficient(2) == SymExpr(0));
  CHECK(i * 0 == IndexExpr());
  CHECK((i + IndexExpr(SymExpr(3))).constant() == SymExpr(3));
}

TEST_CASE("quotients and remainders vanish where the extents prove it") {
  const IndexExpr i = IndexExpr::variable(0), j = IndexExpr::variable(1);
  const IndexExpr e = i * 8 + j;
  CHECK(IndexExpr::quotient(e, 8, {5, 8}) == i);
  CHECK(IndexExpr::remainder(e, 8, {5, 8}) == j);
  CHECK_FALSE(IndexExpr::quotient(e, 8, {5, 9}).is_affine());
  CHECK_FALSE(IndexExpr::remainder(e, 8, {5, 9}).is_affine());
  CHECK(IndexExpr::quotient(e, 1, {5, 8}) == e);
  CHECK(IndexExpr::remainder(e, 1, {5, 8}) == IndexExpr());
  const SymExpr n = SymExpr(Dim(SymbolId{0}));
  CHECK(IndexExpr::quotient(i * n + j, n, {5, SymbolId{0}}) == i);
  CHECK(IndexExpr::remainder(i * n + j, n, {5, SymbolId{0}}) == j);
  // i / d * d + i mod d is i again.
  const IndexExpr q = IndexExpr::quotient(i, 3, {10}), r = IndexExpr::remainder(i, 3, {10});
  CHECK_FALSE(q.is_affine());
  CHECK(q * 3 + r == i);
}

TEST_CASE("a broadcast operand is read at 0 along its repeated axes") {
  const SymbolId n{0};
  const IndexMap coords = identity_map(3);
  const IndexMap read = broadcast_coords({n, 1}, {2, n, 4}, coords);
  REQUIRE(read.size() == 2);
  CHECK(read[0] == IndexExpr::variable(1));
  CHECK(read[1] == IndexExpr());
  CHECK(broadcast_coords({}, {2, n, 4}, coords).empty());
}

TEST_CASE("linearize and delinearize are inverse") {
  const SymbolId n{0};
  const Dims dims = {3, n, 4};
  const IndexExpr offset = linearize(dims, identity_map(3));
  CHECK(offset.coefficient(0) == SymExpr(Dim(n)) * 4);
  CHECK(offset.coefficient(1) == SymExpr(4));
  CHECK(offset.coefficient(2) == SymExpr(1));
  CHECK((delinearize(dims, offset, dims) == identity_map(3)));
}

}  // namespace sinter::index_map_test
