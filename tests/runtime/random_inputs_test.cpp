#include "runtime/random_inputs.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ir/builder.h"
#include "runtime/compare.h"

namespace sinter::random_inputs_test {
namespace {

TEST_CASE("floats have mean 0 and the scale asked for") {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const auto values = to_doubles(*random_tensor(dtype, {64, 256}, 3, {2, 0, 0}));
    double sum = 0, squares = 0;
    for (double v : values) {
      sum += v;
      squares += v * v;
    }
    const auto n = static_cast<double>(values.size());
    CHECK(std::abs(sum / n) < 0.06);
    CHECK(std::abs(squares / n - 4) < 0.2);
  }
}

TEST_CASE("a seed is a tensor") {
  const HostTensor a = *random_tensor(DType::f32, {100}, 1);
  CHECK(a.bytes == random_tensor(DType::f32, {100}, 1)->bytes);
  CHECK(a.bytes != random_tensor(DType::f32, {100}, 2)->bytes);
  // The bytes are part of what a seed means.
  CHECK(random_tensor(DType::i32, {2}, 0, {1, 0, 99})->data<int32_t>()[0] == 88);
}

TEST_CASE("integers and truth values cover their range") {
  const HostTensor tensor = *random_tensor(DType::i32, {1000}, 1, {1, -2, 2});
  std::set<int32_t> seen(tensor.data<int32_t>(), tensor.data<int32_t>() + 1000);
  CHECK(seen == std::set<int32_t>{-2, -1, 0, 1, 2});
  const HostTensor truth = *random_tensor(DType::i1, {1000}, 1);
  std::set<std::byte> bytes(truth.bytes.begin(), truth.bytes.end());
  CHECK(bytes == std::set<std::byte>{std::byte{0}, std::byte{1}});
}

TEST_CASE("inputs of an entry point into their tables") {
  const std::vector<Symbol> symbols = {{.name = "N", .low = 1, .high = 64},
                                       {.name = "R", .low = 1, .high = 64}};
  const Dim n(SymbolId{0}), r(SymbolId{1});
  Graph graph;
  Builder b(graph, symbols);
  const ValueId id = b.leaf(OpKind::input, {DType::i32, {n}}, "tokens");
  const ValueId slot = b.leaf(OpKind::input, {DType::i32, {n}}, "slot");
  const ValueId first = b.leaf(OpKind::input, {DType::i32, {n}}, "first");
  const ValueId table = b.leaf(OpKind::weight, {DType::f32, {5, 8}}, "table");
  const ValueId cache = b.leaf(OpKind::state, {DType::f32, {r, 8}}, "cache");
  const ValueId x = b.op(OpKind::embedding, {table, b.reshape(id, {n})});
  const ValueId k = b.op(OpKind::kv_append, {cache, x, slot});
  graph.outputs = {b.op(OpKind::attention, {x, k, k, first, slot},
                        Attributes()
                            .set(AttrName::heads, int64_t{1})
                            .set(AttrName::kv_heads, int64_t{1})
                            .set(AttrName::scale, 1.0))};
  const auto inputs = random_inputs(graph, symbols, {{40, 64}}, 9);
  if (!inputs) FAIL(inputs.error().message());
  REQUIRE(inputs->size() == 3);
  const auto at = [&](size_t input, int64_t i) { return (*inputs)[input].data<int32_t>()[i]; };
  int32_t largest_id = 0, sequences = 0;
  for (int64_t i = 0; i < 40; ++i) {
    CHECK(at(0, i) >= 0);
    largest_id = std::max(largest_id, at(0, i));
    CHECK(at(1, i) == i);
    CHECK((at(2, i) == i || (i > 0 && at(2, i) == at(2, i - 1))));
    sequences += at(2, i) == i;
  }
  CHECK(largest_id == 4);
  CHECK(sequences > 1);
  CHECK_FALSE(random_inputs(graph, symbols, {{40, 39}}, 9));
}

TEST_CASE("the tokens of each sequence see rows of its own keys") {
  const std::vector<Symbol> symbols = {{.name = "N", .low = 1, .high = 64}};
  const Dim n(SymbolId{0});
  Graph graph;
  Builder b(graph, symbols);
  const ValueId q = b.leaf(OpKind::input, {DType::f32, {3, n, 8}}, "q");
  const ValueId keys = b.leaf(OpKind::input, {DType::f32, {3, 20, 8}}, "keys");
  llvm::SmallVector<ValueId, 4> numbers;
  for (const char* name : {"first", "last", "any_first", "any_last"})
    numbers.push_back(b.leaf(OpKind::input, {DType::i32, {3, n}}, name));
  const Attributes attrs = Attributes()
                               .set(AttrName::heads, int64_t{1})
                               .set(AttrName::kv_heads, int64_t{1})
                               .set(AttrName::scale, 1.0);
  graph.outputs = {b.op(OpKind::attention, {q, keys, keys, numbers[0], numbers[1]}, attrs),
                   b.op(OpKind::attention, {q, keys, keys, numbers[2], numbers[3]},
                        Attributes(attrs).set(AttrName::any_range, int64_t{1}))};
  const auto inputs = random_inputs(graph, symbols, {{15}}, 9);
  if (!inputs) FAIL(inputs.error().message());
  const auto at = [&](size_t input, int64_t i) { return (*inputs)[input].data<int32_t>()[i]; };
  int64_t sequences = 0, any = 0;
  for (int64_t i = 0; i < 45; ++i) {
    CHECK(at(3, i) == i % 15);
    CHECK((at(2, i) == i % 15 || (i % 15 > 0 && at(2, i) == at(2, i - 1))));
    sequences += at(2, i) == i % 15;
    any += at(4, i) > at(5, i);
  }
  CHECK(sequences > 4);
  CHECK(any > 0);
  CHECK_FALSE(random_inputs(graph, symbols, {{21}}, 9));
}

}  // namespace
}  // namespace sinter::random_inputs_test
