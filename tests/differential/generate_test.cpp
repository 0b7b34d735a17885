// The generator itself: its graphs are valid, the same for a seed, and of every kind.
#include "differential/generate.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <set>

#include "differential/graph_generator.h"
#include "differential/random_tensors.h"
#include "ir/column_space.h"
#include "ir/infer.h"
#include "ir/op_roles.h"
#include "ir/text.h"
#include "ir/verifier.h"

namespace sinter {
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

TEST_CASE("every op of the table occurs in many modules") {
  std::map<OpKind, uint64_t> modules;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Case test = generate(seed);
    std::set<OpKind> kinds;
    for (const Op& op : test.module.entries[0].graph.ops()) kinds.insert(op.kind);
    for (const Weight& weight : test.module.weights)
      for (const Op& op : weight.init.ops()) kinds.insert(op.kind);
    for (OpKind kind : kinds) ++modules[kind];
  }
  constexpr OpKind kAll[] = {
#define SINTER_OP(name, ...) OpKind::name,
#define SINTER_ELEMENTWISE(name, ...) OpKind::name,
#include "ir/ops.def"
  };
  for (OpKind kind : kAll)
    CHECK_MESSAGE(modules[kind] >= kSeeds / 100,
                  op_info(kind).name << " in " << modules[kind] << " of " << kSeeds);
}

TEST_CASE("every element type and kind of result occurs, and values with many readers") {
  std::map<DType, int> dtypes;
  int of_few_tokens = 0, of_many_tokens = 0;
  uint64_t repeated = 0, inputs_returned = 0, returned_and_used = 0, versions = 0, many = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Case test = generate(seed);
    const Graph& graph = test.module.entries[0].graph;
    const auto users = graph.users();
    bool has_many = false;
    for (uint32_t i = 0; i < graph.size(); ++i) {
      const Op& op = graph.ops()[i];
      ++dtypes[op.type.dtype];
      if (op.kind == OpKind::attention)
        ++(op.type.dims[0].is_constant() ? of_few_tokens : of_many_tokens);
      versions += op.kind == OpKind::kv_append && graph[op.operands[0]].kind == OpKind::kv_append;
      has_many = has_many || users[i].size() >= static_cast<size_t>(kManyReaders);
    }
    many += has_many;
    std::map<ValueId, int> results;
    bool twice = false;
    for (ValueId output : graph.outputs) {
      twice = twice || results[output]++ == 1;
      inputs_returned += graph[output].kind == OpKind::input;
      returned_and_used += !users[output.index].empty();
    }
    repeated += twice;
  }
  for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i32, DType::i1})
    CHECK(dtypes[dtype] > 100);
  // At most 8 tokens where the number is a constant, 8 or 12 where it is a symbol.
  CHECK(of_few_tokens > 10);
  CHECK(of_many_tokens > 10);
  CHECK(repeated >= kSeeds / 20);
  CHECK(inputs_returned > 5);
  CHECK(returned_and_used > 50);
  CHECK(versions > 3);
  CHECK(many >= kSeeds / 20);
}

TEST_CASE("extents are 0 and 1, and symbols have the ends of their ranges") {
  uint64_t zero = 0, one = 0, symbolic = 0;
  std::vector<uint64_t> none(4), single(4), low(4), high(4);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Case test = generate(seed);
    bool has_zero = false, has_one = false;
    for (const Op& op : test.module.entries[0].graph.ops())
      for (Dim dim : op.type.dims) {
        has_zero = has_zero || dim.is(0), has_one = has_one || dim.is(1);
        symbolic += !dim.is_constant();
      }
    zero += has_zero, one += has_one;
    for (size_t i = 0; i < test.module.symbols.size(); ++i) {
      const int64_t value = test.symbol_values[i];
      none[i] += value == 0, single[i] += value == 1;
      low[i] += value == test.module.symbols[i].low,
          high[i] += value == test.module.symbols[i].high;
    }
  }
  CHECK(zero > kSeeds / 10);
  CHECK(one > kSeeds / 2);
  CHECK(symbolic > 1000);
  for (size_t i = 0; i < none.size(); ++i) {
    CAPTURE(i);
    CHECK(none[i] > kSeeds / 100);
    CHECK(low[i] > kSeeds / 10);
    CHECK(high[i] > kSeeds / 40);
    if (i != kKeys.index) CHECK(single[i] > kSeeds / 40);  // a multiple of 8
  }
}

TEST_CASE("constants and literals are large, infinite and NaN") {
  std::map<std::string, uint64_t> modules;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Case test = generate(seed);
    std::set<std::string> found;
    const auto add = [&](std::string_view op, double value) {
      const bool large = std::isfinite(value) && std::abs(value) >= 1e38;
      if (large || !std::isfinite(value))
        found.insert(fmt::format("{} {}", op,
                                 large               ? "1e38"
                                 : std::isnan(value) ? "nan"
                                 : value > 0         ? "inf"
                                                     : "-inf"));
    };
    for (const Op& op : test.module.entries[0].graph.ops()) {
      if (op.kind == OpKind::constant) add("constant", op.attrs.get<double>(AttrName::value));
      if (op.kind == OpKind::literal)
        for (double value : op.attrs.get<std::vector<double>>(AttrName::values))
          add("literal", value);
    }
    for (const std::string& what : found) ++modules[what];
  }
  for (const char* value : {"1e38", "inf", "-inf", "nan"}) {
    CAPTURE(value);
    CHECK(modules[fmt::format("constant {}", value)] >= kSeeds / 200);
    CHECK(modules[fmt::format("literal {}", value)] >= kSeeds / 200);
  }
}

TEST_CASE("row numbers are computed, for tables, states and caches") {
  std::map<std::string, uint64_t> modules;
  std::set<OpKind> makers;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Case test = generate(seed);
    const Graph& graph = test.module.entries[0].graph;
    std::set<std::string> computed;
    for (const Op& op : graph.ops())
      for (size_t i = 0; i < op.operands.size(); ++i) {
        if (!operand_role(op.kind, i).is_address()) continue;
        const Op& rows = graph[root_of(graph, op.operands[i])];
        if (rows.kind == OpKind::input) continue;
        computed.insert(fmt::format("{} {}", op_info(op.kind).name, i));
        makers.insert(rows.kind);
      }
    for (const std::string& reader : computed) ++modules[reader];
  }
  CHECK(modules["embedding 1"] > kSeeds / 10);
  CHECK(modules["kv_append 2"] > kSeeds / 10);
  for (const char* reader :
       {"attention 3", "attention 4", "decode_attention 3", "decode_attention 4"})
    CHECK_MESSAGE(modules[reader] > 0, reader);
  for (OpKind kind : {OpKind::iota, OpKind::add, OpKind::sub, OpKind::maximum, OpKind::minimum,
                      OpKind::cumulative_sum})
    CHECK_MESSAGE(makers.contains(kind), op_info(kind).name);
}

TEST_CASE("einsums have several summed axes, and symbolic axes of every role") {
  uint64_t several = 0, symbolic_sum = 0, symbolic_batch = 0, symbolic_free = 0, empty_sum = 0;
  uint64_t no_sum = 0, scalars = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Case test = generate(seed);
    const Graph& graph = test.module.entries[0].graph;
    for (const Op& op : graph.ops()) {
      if (op.kind != OpKind::einsum) continue;
      const auto spec = parse_einsum(op.attrs.get<std::string>(AttrName::spec));
      REQUIRE(spec);
      int summed = 0;
      for (const EinsumAxis& axis : spec->axes) {
        const Dim dim = axis.a >= 0 ? graph[op.operands[0]].type.dims[axis.a]
                                    : graph[op.operands[1]].type.dims[axis.b];
        const bool symbol = !dim.is_constant();
        summed += axis.result < 0;
        if (axis.result < 0)
          symbolic_sum += symbol, empty_sum += dim.is(0);
        else
          (axis.a >= 0 && axis.b >= 0 ? symbolic_batch : symbolic_free) += symbol;
      }
      several += summed >= 2, no_sum += summed == 0, scalars += op.type.rank() == 0;
    }
  }
  CHECK(several > kSeeds / 20);
  CHECK(symbolic_sum > kSeeds / 40);
  CHECK(symbolic_batch > kSeeds / 40);
  CHECK(symbolic_free > kSeeds / 40);
  CHECK(empty_sum > 0);
  CHECK(no_sum > 0);
  CHECK(scalars > 0);
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
      if (op.kind != OpKind::linear) {
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
  CHECK(chains > kSeeds / 2);
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
    // What a value is computed from: a reduction of columns, of rows, a product.
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
      products[i] = products[i] || op.kind == OpKind::linear;
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

}  // namespace sinter
