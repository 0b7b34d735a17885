// The generator itself: its graphs are valid, the same for a seed, and of every kind.
#include "differential/generate.h"

#include <doctest/doctest.h>

#include <map>

#include "differential/random_tensors.h"
#include "ir/column_space.h"
#include "ir/text.h"
#include "ir/verifier.h"

namespace sinter {
namespace {

constexpr uint64_t kSeeds = 400;

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

TEST_CASE("every op, element type, and kind of result occurs") {
  std::map<OpKind, int> ops;
  std::map<DType, int> dtypes;
  int of_few_tokens = 0, of_many_tokens = 0;
  int repeated = 0, inputs_returned = 0, returned_and_used = 0, symbolic = 0, empty = 0,
      versions = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Case test = generate(seed);
    const Graph& graph = test.module.entries[0].graph;
    const auto users = graph.users();
    for (const Op& op : graph.ops()) {
      ++ops[op.kind];
      ++dtypes[op.type.dtype];
      if (op.kind == OpKind::attention)
        ++(op.type.dims[0].is_constant() ? of_few_tokens : of_many_tokens);
      for (Dim dim : op.type.dims) symbolic += !dim.is_constant(), empty += dim.is(0);
      versions += op.kind == OpKind::kv_append && graph[op.operands[0]].kind == OpKind::kv_append;
    }
    std::map<ValueId, int> results;
    for (ValueId output : graph.outputs) {
      repeated += results[output]++ == 1;
      inputs_returned += graph[output].kind == OpKind::input;
      returned_and_used += !users[output.index].empty();
    }
  }
  for (size_t kind = 0; kind <= static_cast<size_t>(OpKind::sample); ++kind) {
    const auto op = static_cast<OpKind>(kind);
    // `file` stands in weight functions only, attention_softmax and gemv in graphs after the
    // passes.
    if (op == OpKind::file || op == OpKind::attention_softmax || op == OpKind::gemv) continue;
    CHECK_MESSAGE(ops[op] > 0, op_info(op).name);
  }
  for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i32, DType::i1})
    CHECK(dtypes[dtype] > 100);
  // At most 8 tokens where the number is a constant, 8 or 12 where it is a symbol.
  CHECK(of_few_tokens > 10);
  CHECK(of_many_tokens > 10);
  CHECK(repeated > 5);
  CHECK(inputs_returned > 5);
  CHECK(returned_and_used > 50);
  CHECK(symbolic > 1000);
  CHECK(empty > 20);
  CHECK(versions > 3);
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

TEST_CASE("column reductions occur, with values made for them and readers") {
  int columns = 0, in_front = 0, behind = 0, of_symbols = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Case test = generate(seed);
    const Graph& graph = test.module.entries[0].graph;
    bool column = false, front = false, back = false, symbol = false;
    std::vector<bool> sums(graph.size(), false);
    for (uint32_t i = 0; i < graph.size(); ++i) {
      const Op& op = graph.ops()[i];
      for (ValueId operand : op.operands)
        back = back || (sums[operand.index] && op_class(op) == OpClass::elementwise);
      if (op_class(op) != OpClass::reduce) continue;
      const Op& operand = graph[op.operands[0]];
      const auto space =
          column_space(operand.type.dims, op.attrs.get<std::vector<int64_t>>(AttrName::axes));
      if (!space) continue;
      column = sums[i] = true;
      front = front || op_class(operand) == OpClass::elementwise;
      symbol = symbol || !volume(space->dims).is_constant();
    }
    columns += column, in_front += front, behind += back, of_symbols += symbol;
  }
  MESSAGE(columns << " of " << kSeeds << " modules have column reductions, " << in_front
                  << " of computed values, " << behind << " with readers, " << of_symbols
                  << " of symbolic extents");
  CHECK(columns > kSeeds / 8);
  CHECK(in_front > kSeeds / 10);
  CHECK(behind > kSeeds / 12);
  CHECK(of_symbols > kSeeds / 16);
}

}  // namespace sinter
