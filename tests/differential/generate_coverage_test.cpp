// The contents of the generator's graphs, counted: ops, types, extents, numbers, row numbers.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <set>

#include "differential/graph_generator.h"
#include "ir/infer.h"
#include "ir/op_roles.h"
#include "ir/state_reads.h"
#include "support/algorithms.h"

namespace sinter::generate_coverage_test {
namespace {

constexpr uint64_t kCoverageSeeds = 1000;

}  // namespace

TEST_CASE("every op of the table occurs in many modules") {
  std::map<test::Algorithm, uint64_t> modules;
  for (uint64_t seed = 0; seed < kCoverageSeeds; ++seed) {
    const Case test = generate(seed);
    std::set<test::Algorithm> seen;
    for (const Op& op : test.module.entries[0].graph.ops()) seen.insert(test::algorithm_of(op));
    for (const Weight& weight : test.module.weights)
      for (const Op& op : weight.init.ops()) seen.insert(test::algorithm_of(op));
    for (const test::Algorithm& algorithm : seen) ++modules[algorithm];
  }
  for (const test::Algorithm& algorithm : test::all_algorithms())
    CHECK_MESSAGE(modules[algorithm] >= kCoverageSeeds / 100,
                  algorithm.name() << " in " << modules[algorithm] << " of " << kCoverageSeeds);
}

TEST_CASE("every element type and kind of result occurs, and values with many readers") {
  std::map<DType, int> dtypes;
  int of_few_tokens = 0, of_many_tokens = 0;
  uint64_t repeated = 0, inputs_returned = 0, returned_and_used = 0, versions = 0, many = 0;
  uint64_t other_16_bits = 0,
           held_reads = 0,  // products; readers of a state, read behind its append
      views_of_states = 0;  // modules
  for (uint64_t seed = 0; seed < kCoverageSeeds; ++seed) {
    const Case test = generate(seed);
    const Graph& graph = test.module.entries[0].graph;
    const auto users = graph.users();
    StateWriters writers(graph);
    bool has_many = false, has_view = false;
    for (uint32_t i = 0; i < graph.size(); ++i) {
      const Op& op = graph.ops()[i];
      ++dtypes[op.type.dtype];
      if (is_without_order(op, OpKind::attention))
        ++(op.type.dims[0].is_constant() ? of_few_tokens : of_many_tokens);
      versions += op.kind == OpKind::kv_append && graph[op.operands[0]].kind == OpKind::kv_append;
      const auto has_16_bits = [](const Op& value) {
        return dtype_info(value.type.dtype).bits == 16;
      };
      if (op.kind == OpKind::einsum && has_16_bits(op) && has_16_bits(graph[op.operands[0]]))
        other_16_bits += op.type.dtype != graph[op.operands[0]].type.dtype;
      held_reads += llvm::any_of(op.operands, [&](ValueId read) {
        return reads_state(graph, graph[read]) && !writes_state(graph[read]) &&
               llvm::any_of(graph[read].operands,
                            [&](ValueId id) { return writers.writer_of(id) < ValueId{i}; });
      });
      has_view = has_view || (op_class(op) == OpClass::view && reads_state(graph, op));
      has_many = has_many || users[i].size() >= static_cast<size_t>(kManyReaders);
    }
    many += has_many;
    views_of_states += has_view;
    std::map<ValueId, int> results;
    bool twice = false;
    for (ValueId output : graph.outputs) {
      twice = twice || results[output]++ == 1;
      inputs_returned += graph[output].kind == OpKind::input;
      returned_and_used += !users[output.index].empty();
    }
    repeated += twice;
  }
  for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64, DType::i1})
    CHECK(dtypes[dtype] > 100);
  // At most 8 tokens where the number is a constant, 8 or 12 where it is a symbol.
  CHECK(of_few_tokens > 10);
  CHECK(of_many_tokens > 10);
  CHECK(repeated >= kCoverageSeeds / 20);
  CHECK(inputs_returned > 5);
  CHECK(returned_and_used > 50);
  CHECK(versions > 3);
  CHECK(many >= kCoverageSeeds / 20);
  CHECK(other_16_bits >= kCoverageSeeds / 50);
  CHECK(held_reads >= kCoverageSeeds / 10);
  CHECK(views_of_states >= kCoverageSeeds / 10);
}

TEST_CASE("extents are 0 and 1, and symbols have the ends of their ranges") {
  uint64_t zero = 0, one = 0, symbolic = 0, none_of_one = 0;  // slices
  std::vector<uint64_t> none(4), single(4), low(4), high(4);
  for (uint64_t seed = 0; seed < kCoverageSeeds; ++seed) {
    const Case test = generate(seed);
    bool has_zero = false, has_one = false;
    const Graph& graph = test.module.entries[0].graph;
    for (const Op& op : graph.ops())
      if (op.kind == OpKind::slice) {
        const auto axis = static_cast<size_t>(op.attrs.get<int64_t>(AttrName::axis));
        none_of_one += op.type.dims[axis].is(0) && graph[op.operands[0]].type.dims[axis].is(1);
      }
    for (const Op& op : graph.ops())
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
  CHECK(zero > kCoverageSeeds / 10);
  CHECK(one > kCoverageSeeds / 2);
  CHECK(symbolic > 1000);
  CHECK(none_of_one > kCoverageSeeds / 40);
  for (size_t i = 0; i < none.size(); ++i) {
    CAPTURE(i);
    CHECK(none[i] > kCoverageSeeds / 100);
    CHECK(low[i] > kCoverageSeeds / 10);
    CHECK(high[i] > kCoverageSeeds / 40);
    if (i != kKeys.index) CHECK(single[i] > kCoverageSeeds / 40);  // a multiple of 8
  }
}

TEST_CASE("constants and literals are large, infinite and NaN, and integers that no double is") {
  std::map<std::string, uint64_t> modules;
  for (uint64_t seed = 0; seed < kCoverageSeeds; ++seed) {
    const Case test = generate(seed);
    std::set<std::string> found;
    const auto add = [&](std::string_view op, const Number& number) {
      const double value = number.to_double();
      if (number.beyond_double()) found.insert(fmt::format("{} integer", op));
      const bool large = std::isfinite(value) && std::abs(value) >= 1e38;
      if (large || !std::isfinite(value))
        found.insert(fmt::format("{} {}", op,
                                 large               ? "1e38"
                                 : std::isnan(value) ? "nan"
                                 : value > 0         ? "inf"
                                                     : "-inf"));
    };
    for (const Op& op : test.module.entries[0].graph.ops()) {
      if (op.kind == OpKind::constant) add("constant", op.attrs.get<Number>(AttrName::value));
      if (op.kind == OpKind::literal)
        for (const Number& number : op.attrs.get<std::vector<Number>>(AttrName::values))
          add("literal", number);
    }
    for (const std::string& what : found) ++modules[what];
  }
  for (const std::string value : {"1e38", "inf", "-inf", "nan", "integer"}) {
    CAPTURE(value);
    CHECK(modules[fmt::format("constant {}", value)] >= kCoverageSeeds / 200);
    CHECK(modules[fmt::format("literal {}", value)] >= kCoverageSeeds / 200);
  }
}

TEST_CASE("row numbers are computed, for tables, states and caches") {
  std::map<std::string, uint64_t> modules;
  std::set<OpKind> makers;
  for (uint64_t seed = 0; seed < kCoverageSeeds; ++seed) {
    const Case test = generate(seed);
    const Graph& graph = test.module.entries[0].graph;
    std::set<std::string> computed;
    for (const Op& op : graph.ops())
      for (size_t i = 0; i < op.operands.size(); ++i) {
        if (!operand_role(op, i).is_address()) continue;
        const Op& rows = graph[root_of(graph, op.operands[i])];
        if (rows.kind == OpKind::input) continue;
        computed.insert(fmt::format("{} {}", algorithm_name(op), i));
        makers.insert(rows.kind);
      }
    for (const std::string& reader : computed) ++modules[reader];
  }
  CHECK(modules["embedding 1"] > kCoverageSeeds / 10);
  CHECK(modules["kv_append 2"] > kCoverageSeeds / 10);
  CHECK(modules["gather 1"] > kCoverageSeeds / 50);
  CHECK(modules["scatter_add 0"] > kCoverageSeeds / 50);
  for (const char* reader :
       {"attention 3", "attention 4", "decode_attention 3", "decode_attention 4",
        "tiled_attention 3", "tiled_attention 4", "float_attention 3", "float_attention 4"})
    CHECK_MESSAGE(modules[reader] > 0, reader);
  for (OpKind kind : {OpKind::iota, OpKind::add, OpKind::sub, OpKind::maximum, OpKind::minimum,
                      OpKind::cumulative_sum})
    CHECK_MESSAGE(makers.contains(kind), op_info(kind).name);
}

TEST_CASE("attentions have leading axes, masks of every type, and any ranges") {
  std::map<std::string, uint64_t> found;
  const auto note = [&](bool holds, std::string what) { found[what] += holds; };
  for (uint64_t seed = 0; seed < kCoverageSeeds; ++seed) {
    const Case test = generate(seed);
    const Graph& graph = test.module.entries[0].graph;
    for (const Op& op : graph.ops()) {
      if (!reads_cache(op)) continue;
      const std::string name(algorithm_name(op));
      note(op.type.rank() > 2, name + ", sequences");
      note(op.type.rank() > 3, "two leading axes");
      note(op.attrs.is_set(AttrName::any_range), name + ", any range");
      note(op.attrs.is_set(AttrName::empty_zero), name + ", zeros");
      const Op& keys = graph[op.operands[1]];
      note(keys.kind == OpKind::broadcast, "shared keys");
      note(keys.kind == OpKind::reshape && graph[keys.operands[0]].kind == OpKind::transpose,
           "keys by heads");
      for (size_t i : {3, 4})
        note(graph[root_of(graph, op.operands[i])].kind != OpKind::input, "computed range");
      if (op.operands.size() < 6) continue;
      const TensorType& mask = graph[op.operands[5]].type;
      note(true, fmt::format("{}, mask", name));
      note(true, fmt::format("mask of {}", to_string(mask.dtype)));
      for (size_t axis = 1; axis <= 3; ++axis)
        note(mask.dims[mask.rank() - axis].is(1), fmt::format("mask, axis -{} repeats", axis));
      note(mask.rank() > 3 && mask.dims[0].is(1) && !op.type.dims[0].is(1),
           "mask of all sequences");
    }
  }
  for (const std::string op : {"attention", "decode_attention", "tiled_attention"})
    for (const std::string what : {"sequences", "any range", "zeros", "mask"})
      CHECK_MESSAGE(found[fmt::format("{}, {}", op, what)] > 2, op << " " << what);
  for (const char* what :
       {"two leading axes", "shared keys", "keys by heads", "computed range", "mask of i1",
        "mask of f32", "mask of f16", "mask of bf16", "mask, axis -1 repeats",
        "mask, axis -2 repeats", "mask, axis -3 repeats", "mask of all sequences"})
    CHECK_MESSAGE(found[what] > 4, std::string(what));
}

TEST_CASE("einsums have several summed axes, and symbolic axes of every role") {
  uint64_t several = 0, symbolic_sum = 0, symbolic_batch = 0, symbolic_free = 0, empty_sum = 0;
  uint64_t no_sum = 0, scalars = 0;
  for (uint64_t seed = 0; seed < kCoverageSeeds; ++seed) {
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
  CHECK(several > kCoverageSeeds / 20);
  CHECK(symbolic_sum > kCoverageSeeds / 40);
  CHECK(symbolic_batch > kCoverageSeeds / 40);
  CHECK(symbolic_free > kCoverageSeeds / 40);
  CHECK(empty_sum > 0);
  CHECK(no_sum > 0);
  CHECK(scalars > 0);
}

}  // namespace sinter::generate_coverage_test
