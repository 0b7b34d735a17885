// The generator itself: its graphs are valid, the same for a seed, and of every kind.
#include "differential/generate.h"

#include <doctest/doctest.h>

#include <map>

#include "differential/random_tensors.h"
#include "ir/column_space.h"
#include "ir/text.h"
#include "ir/verifier.h"

namespace sinter::generate_test {
namespace {

constexpr uint64_t kSeeds = 1000;

}  // namespace

TEST_CASE("random modules are verified, and parse to themselves") {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Case test = generate(seed);
    const Status status = verify(test.module);
    REQUIRE_MESSAGE(status.has_value(),
                    "seed " << seed << ": " << (status ? "" : status.error().message()));
    const std::string text = print_module(test.module);
    const auto parsed = parse_module(text, "random.sir");
    REQUIRE_MESSAGE(parsed.has_value(),
                    "seed " << seed << ": " << (parsed ? "" : parsed.error().message()));
    REQUIRE_MESSAGE(print_module(*parsed) == text, "seed " << seed);
    const auto data = random_data(test, seed);
    REQUIRE_MESSAGE(data.has_value(),
                    "seed " << seed << ": " << (data ? "" : data.error().message()));
  }
}

TEST_CASE("a seed gives the same module and data again") {
  for (uint64_t seed : {0u, 1u, 77u}) {
    const Case a = generate(seed), b = generate(seed);
    CHECK(print_module(a.module) == print_module(b.module));
    CHECK(a.symbol_values == b.symbol_values);
    const auto x = random_data(a, seed), y = random_data(b, seed);
    for (size_t i = 0; i < x->inputs.size(); ++i) CHECK(x->inputs[i].bytes == y->inputs[i].bytes);
  }
  CHECK(print_module(generate(1).module) != print_module(generate(2).module));
}

TEST_CASE("chains of linears on few tokens occur, of whole chunks and not") {
  // Modules with a linear after a linear, through slices, activations and norms.
  int chains = 0, of_few_tokens = 0, behind_norms = 0, gated = 0, whole = 0, broken = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Case test = generate(seed);
    const Graph& graph = test.module.entries[0].graph;
    std::vector<bool> behind(graph.size(), false);  // a value that a linear's result reaches
    bool chain = false, few = false, norm = false, gate = false;
    for (uint32_t i = 0; i < graph.size(); ++i) {
      const Op& op = graph.ops()[i];
      for (ValueId operand : op.operands) behind[i] = behind[i] || behind[operand.index];
      const auto from = [&](OpKind kind, size_t operand) {
        return graph[op.operands[operand]].kind == kind;
      };
      if (op.kind == OpKind::mul)
        gate = gate || (from(OpKind::silu, 0) && from(OpKind::slice, 1) && behind[i]);
      if (!is_without_order(op, OpKind::linear)) {
        const OpClass kind = op_class(op);
        behind[i] = behind[i] && (kind == OpClass::elementwise || kind == OpClass::pointwise ||
                                  kind == OpClass::composite || op.kind == OpKind::slice);
        continue;
      }
      const Dim rows = op.type.dims[0], inner = graph[op.operands[0]].type.dims.back();
      (inner.is_constant() && inner.constant() % 8 == 0 ? whole : broken) += 1;
      norm = norm || from(OpKind::rms_norm, 0) || from(OpKind::layer_norm, 0);
      chain = chain || behind[i];
      const int64_t most =
          rows.is_constant() ? rows.constant() : test.module.symbols[rows.symbol().index].high;
      few = few || (behind[i] && most <= 8);
      behind[i] = true;
    }
    chains += chain, of_few_tokens += few, behind_norms += chain && norm, gated += gate;
  }
  MESSAGE(chains << " of " << kSeeds << " modules have chains, " << of_few_tokens
                 << " of few tokens, " << behind_norms << " behind norms, " << gated
                 << " gated; linears of whole chunks: " << whole << ", of others: " << broken);
  CHECK(chains > 2 * kSeeds / 5);
  CHECK(of_few_tokens > kSeeds / 4);
  CHECK(behind_norms > kSeeds / 3);
  CHECK(gated > kSeeds / 12);
  CHECK(whole > kSeeds / 2);
  CHECK(broken > kSeeds / 4);
}

TEST_CASE("reductions over leading, middle and scattered axes occur, among ops of all kinds") {
  int columns = 0, prologues = 0, epilogues = 0, of_symbols = 0, middle = 0, scattered = 0;
  int of_rows = 0, read_by_rows = 0, of_products = 0, tall = 0, shared = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Case test = generate(seed);
    const Graph& graph = test.module.entries[0].graph;
    bool column = false, prologue = false, epilogue = false, symbol = false, inside = false;
    bool gap = false, after_row = false, before_row = false, after_product = false, high = false;
    // Whether a value is computed from a reduction of columns, from one of rows, from a product.
    std::vector<bool> sums(graph.size()), rows(graph.size()), products(graph.size());
    for (uint32_t i = 0; i < graph.size(); ++i) {
      const Op& op = graph.ops()[i];
      const bool reduces = op_class(op) == OpClass::reduce;
      for (ValueId operand : op.operands) {
        epilogue = epilogue || (sums[operand.index] && op_class(op) == OpClass::elementwise);
        before_row = before_row || (sums[operand.index] && reduces);
        sums[i] = sums[i] || sums[operand.index];
        rows[i] = rows[i] || rows[operand.index];
        products[i] = products[i] || products[operand.index];
      }
      products[i] = products[i] || is_without_order(op, OpKind::linear);
      if (!reduces) continue;
      const Op& operand = graph[op.operands[0]];
      const auto axes = op.attrs.get<std::vector<int64_t>>(AttrName::axes);
      const auto length = static_cast<int64_t>(axes.size());
      gap = gap || axes.back() - axes.front() + 1 > length;
      const auto space = column_space(operand.type.dims, axes);
      if (!space) {
        rows[i] = rows[i] || axes.back() + 1 == static_cast<int64_t>(operand.type.rank());
        continue;
      }
      column = sums[i] = true;
      inside = inside || !volume(space->outer()).is(1);
      prologue = prologue || op_class(operand) == OpClass::elementwise;
      after_row = after_row || rows[op.operands[0].index];
      after_product = after_product || products[op.operands[0].index];
      symbol = symbol || !volume(space->dims).is_constant();
      const SymExpr height = volume(space->reduced());
      high = high || (height.is_constant() && height.constant() >= 129);
      // More columns than a block has threads across, of lanes for several blocks.
      const SymExpr width = volume(space->inner());
      shared += height.is_constant() && height.constant() > 1024 && width.is_constant() &&
                width.constant() > 16;
    }
    columns += column, prologues += prologue, epilogues += epilogue, of_symbols += symbol;
    middle += inside, scattered += gap, of_rows += after_row, read_by_rows += before_row;
    of_products += after_product, tall += high;
  }
  MESSAGE(columns << " of " << kSeeds << " modules have column reductions: " << prologues
                  << " of computed values, " << of_rows << " of what row reductions gave, "
                  << of_products << " of what products gave, " << epilogues << " with readers, "
                  << read_by_rows << " with reductions among them, " << of_symbols
                  << " of symbolic extents, " << tall << " of 129 rows or more, " << shared
                  << " of columns that a cluster shares, " << middle << " over middle axes; "
                  << scattered << " reduce axes with gaps");
  CHECK(columns > kSeeds / 3);
  CHECK(prologues > kSeeds / 5);
  CHECK(epilogues > kSeeds / 5);
  CHECK(of_rows > kSeeds / 16);
  CHECK(read_by_rows > kSeeds / 16);
  CHECK(of_products > kSeeds / 20);
  CHECK(of_symbols > kSeeds / 8);
  CHECK(tall > kSeeds / 16);
  CHECK(shared > 3);
  CHECK(middle > kSeeds / 20);
  CHECK(scattered > kSeeds / 32);
}

TEST_CASE("running sums occur, along every axis, in every type, direction and length") {
  std::map<DType, int> dtypes;
  int modules = 0, last_axis = 0, other_axis = 0, reverse = 0, exclusive = 0, computed = 0;
  int read = 0, long_rows = 0, cluster_rows = 0, symbolic = 0, viewed = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Case test = generate(seed);
    const Graph& graph = test.module.entries[0].graph;
    const auto users = graph.users();
    bool found = false;
    for (uint32_t i = 0; i < graph.size(); ++i) {
      const Op& op = graph.ops()[i];
      if (op.kind != OpKind::cumulative_sum) continue;
      found = true;
      ++dtypes[op.type.dtype];
      const auto axis = op.attrs.get<int64_t>(AttrName::axis);
      const auto is_on = [&](AttrName name) {
        return op.attrs.has(name) && op.attrs.get<int64_t>(name) == 1;
      };
      reverse += is_on(AttrName::reverse), exclusive += is_on(AttrName::exclusive);
      const bool last = volume(DimsRef(op.type.dims).drop_front(axis + 1)).is(1);
      ++(last ? last_axis : other_axis);
      const OpClass made = op_class(graph[op.operands[0]]);
      computed += made == OpClass::elementwise, viewed += made == OpClass::view;
      read += !users[i].empty();
      const Dim length = op.type.dims[axis];
      symbolic += !length.is_constant();
      const int64_t most = length.is_constant() ? length.constant()
                                                : test.module.symbols[length.symbol().index].high;
      long_rows += last && most > 2048,
          cluster_rows += last && length.is_constant() && most >= 65536;
    }
    modules += found;
  }
  MESSAGE(modules << " of " << kSeeds << " modules have running sums: " << last_axis
                  << " along the last axis, " << other_axis << " along others, " << reverse
                  << " reverse, " << exclusive << " exclusive, " << computed
                  << " of computed values, " << viewed << " of views, " << read
                  << " that are read, " << symbolic << " of symbolic lengths, " << long_rows
                  << " of more than 2048, " << cluster_rows << " of 65536 and more");
  CHECK(modules > kSeeds / 5);
  for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i32}) CHECK(dtypes[dtype] > 5);
  CHECK(last_axis > kSeeds / 8);
  CHECK(other_axis > kSeeds / 16);
  CHECK(reverse > kSeeds / 16);
  CHECK(exclusive > kSeeds / 16);
  CHECK(computed > kSeeds / 16);
  CHECK(viewed > 5);
  CHECK(read > kSeeds / 16);
  CHECK(symbolic > kSeeds / 16);
  CHECK(long_rows > 5);
  CHECK(cluster_rows > 3);
}

}  // namespace sinter::generate_test
