// The bounds of contractions hold for sums in any order, and are missed by small faults.
#include "differential/contraction_bound.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "differential/random.h"
#include "ir/builder.h"
#include "ir/code_format.h"
#include "runtime/compare.h"
#include "runtime/evaluate/evaluate.h"
#include "runtime/evaluate/host_view.h"

namespace sinter::contraction_bound_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

HostTensor tensor(DType dtype, std::vector<int64_t> dims, const std::vector<float>& values) {
  auto made = make_tensor(dtype, std::move(dims));
  REQUIRE(made);
  REQUIRE(made->volume() == static_cast<int64_t>(values.size()));
  store_run(values.data(), made->volume(), storage_of(dtype), made->bytes.data());
  return *made;
}

HostTensor random_tensor(DType dtype, std::vector<int64_t> dims, Random& random) {
  int64_t count = 1;
  for (int64_t extent : dims) count *= extent;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(random.unit());
  return tensor(dtype, std::move(dims), values);
}

/// An op of inputs of these tensors' types.
struct Contraction {
  Contraction(OpKind kind, std::vector<HostTensor> values, Attributes attrs = {})
      : operands(std::move(values)) {
    Builder builder(graph, {});
    llvm::SmallVector<ValueId, 5> ids;
    for (const HostTensor& operand : operands) {
      TensorType type{operand.dtype, {}};
      for (int64_t extent : operand.dims) type.dims.push_back(extent);
      ids.push_back(builder.leaf(OpKind::input, type, fmt::format("x{}", ids.size())));
    }
    id = builder.op(kind, ids, std::move(attrs), "y");
    graph.outputs.push_back(id);
  }

  HostTensor evaluated() const {
    auto results = evaluate(graph, {}, {}, addresses_of(operands));
    REQUIRE(results);
    return (*results)[0];
  }

  /// How a result violates the bound; empty: it does not.
  std::string check(const HostTensor& result) {
    const auto bounded = bounded_contraction(graph, graph[id], addresses_of(operands), {}, {});
    REQUIRE(bounded);
    const Status status = check_bound("y", result, *bounded, elements);
    return status ? "" : status.error().message();
  }

  Graph graph;
  std::vector<HostTensor> operands;
  ValueId id;
  BoundedElements elements;
};

Contraction dot(std::vector<float> a, std::vector<float> b, DType dtype = DType::f32) {
  const auto n = static_cast<int64_t>(a.size());
  return Contraction(OpKind::einsum, {tensor(dtype, {n}, a), tensor(dtype, {n}, b)},
                     Attributes().set(AttrName::spec, std::string("a,a->")));
}

HostTensor number(float value, DType dtype = DType::f32) { return tensor(dtype, {}, {value}); }

}  // namespace

TEST_CASE("sums in any order are within their bounds, whatever cancels") {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    const int64_t count = random.between(1, 300);
    std::vector<float> a, b;
    for (int64_t i = 0; i < count; ++i) {
      a.push_back(random.unit() * static_cast<float>(1 << random.below(20)));
      b.push_back(random.unit());
    }
    Contraction product = dot(a, b);
    float ascending = 0, descending = 0, fused = 0;
    for (int64_t i = 0; i < count; ++i) {
      ascending += a[i] * b[i];
      descending += a[count - 1 - i] * b[count - 1 - i];
      fused = std::fma(a[i], b[i], fused);
    }
    for (float sum : {ascending, descending, fused}) CHECK(product.check(number(sum)) == "");
    CHECK(product.elements.compared == 3);
  }
}

TEST_CASE("sums of sums of blocks of rows are within the bounds of a reduce_sum") {
  Random random(3);
  Contraction sum(OpKind::reduce_sum, {random_tensor(DType::f32, {320, 8}, random)},
                  Attributes().set(AttrName::axes, std::vector<int64_t>{0}));
  const auto of_blocks = [&](int64_t first) {
    std::vector<float> sums(8);
    for (int64_t column = 0; column < 8; ++column)
      for (int64_t block = first; block < 320; block += 64) {
        float of_block = 0;
        for (int64_t row = block; row < block + 64; ++row)
          of_block += sum.operands[0].data<float>()[row * 8 + column];
        sums[column] += of_block;
      }
    return tensor(DType::f32, {1, 8}, sums);
  };
  CHECK(sum.check(of_blocks(0)) == "");
  CHECK(sum.elements.compared == 8);
  CHECK(sum.check(of_blocks(64)) != "");
}

TEST_CASE("a term that is missing, and a sum in a narrow type, are outside of the bounds") {
  Random random(2);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    CAPTURE(to_string(dtype));
    Contraction product(OpKind::linear,
                        {random_tensor(dtype, {2, 40}, random),
                         random_tensor(dtype, {3, 40}, random), random_tensor(dtype, {3}, random)});
    const HostTensor right = product.evaluated();
    CHECK(product.check(right) == "");
    CHECK(product.elements.compared == 6);
    CHECK(product.elements.unbounded == 0);
    std::vector<double> values = to_doubles(right);
    std::vector<float> wrong(values.begin(), values.end());
    wrong[4] += std::max(0.01f, std::abs(wrong[4]) / 50);
    CHECK(product.check(tensor(dtype, {2, 3}, wrong)).find("element 4 is") != std::string::npos);
  }
  // 2048 + 1 + 1 is 2048 where every addition is rounded to f16.
  Contraction sum = dot({2048, 1, 1}, {1, 1, 1}, DType::f16);
  CHECK(sum.check(number(2050, DType::f16)) == "");
  CHECK(sum.check(number(2048, DType::f16)) ==
        "y: element 0 is 2048, float64 gives 2050, rounded 2050 .. 2050");
}

TEST_CASE("infinities and NaN of operands are those of the result") {
  CHECK(dot({kInfinity, 1}, {1, 1}).check(number(kInfinity)) == "");
  CHECK(dot({kInfinity, 1}, {1, 1}).check(number(-kInfinity)) != "");
  CHECK(dot({kInfinity, 1}, {1, 1}).check(number(kNan)) != "");
  CHECK(dot({kInfinity, -kInfinity}, {1, 1}).check(number(kNan)) == "");
  CHECK(dot({kInfinity, 1}, {0, 1}).check(number(kNan)) == "");
  CHECK(dot({kInfinity, 1}, {0, 1}).check(number(1)) != "");
  CHECK(dot({kNan, 1}, {1, 1}).check(number(0)) != "");
  // 65520 is rounded to infinity.
  CHECK(dot({65504, 16}, {1, 1}, DType::f16).check(number(kInfinity, DType::f16)) == "");
  CHECK(dot({65504, 15}, {1, 1}, DType::f16).check(number(kInfinity, DType::f16)) != "");
}

TEST_CASE("sums that may leave the range of float32 have no bound") {
  Contraction sum = dot({3e38f, 3e38f, -3e38f}, {1, 1, 1});
  CHECK(sum.check(number(3e38f)) == "");
  CHECK(sum.check(number(kInfinity)) == "");
  CHECK(sum.elements.compared == 0);
  CHECK(sum.elements.unbounded == 2);
}

TEST_CASE("products with codes have no bound where a sum leaves the range before it is scaled") {
  // A row of x per length: the code 4 times 1e38 is beyond float32, and the scale is 0.
  const std::vector<float> x = {1, 1, 1e38f, 1};
  const CodeFormat format = *parse_code_format("int8 row f32");
  Graph graph;
  Builder builder(graph, {});
  const ValueId operand = builder.leaf(OpKind::input, {DType::f32, {Dim(2), Dim(2)}}, "x");
  const ValueId packed =
      builder.leaf(OpKind::input, {DType::i32, {Dim(1), row_words(format, 2)}}, "packed");
  const ValueId matrix =
      builder.op(OpKind::dequantize, {packed},
                 Attributes().set(AttrName::size, Dim(2)).set(AttrName::codes, to_string(format)));
  const ValueId product = builder.op(OpKind::linear, {operand, matrix});
  const HostTensor rows = tensor(DType::f32, {2, 2}, x), zeros = tensor(DType::f32, {1, 2}, {0, 0});
  const auto bounded = bounded_contraction(graph, graph[product], {&rows, &zeros}, {}, {});
  REQUIRE(bounded);
  BoundedElements elements;
  CHECK(check_bound("y", tensor(DType::f32, {2, 1}, {0, kNan}), *bounded, elements).has_value());
  CHECK(elements.compared == 1);
  CHECK(elements.unbounded == 1);
}

TEST_CASE("attention is within its bound, and other attention is not") {
  Random random(3);
  const auto attention = [](double scale, std::vector<HostTensor> operands, int64_t sink = 0) {
    return Contraction(OpKind::attention, std::move(operands),
                       Attributes()
                           .set(AttrName::sink, sink)
                           .set(AttrName::heads, int64_t{4})
                           .set(AttrName::kv_heads, int64_t{2})
                           .set(AttrName::scale, scale)
                           .set(AttrName::window, int64_t{5})
                           .set(AttrName::softcap, 5.0));
  };
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    CAPTURE(to_string(dtype));
    const std::vector<HostTensor> operands = {
        random_tensor(dtype, {3, 32}, random), random_tensor(dtype, {10, 16}, random),
        random_tensor(dtype, {10, 6}, random), i32_tensor({0, 2, 5}), i32_tensor({9, 4, 4})};
    Contraction right = attention(0.5, operands);
    CHECK(right.check(right.evaluated()) == "");
    CHECK(right.elements.compared == 36);  // the last token sees nothing: NaN
    CHECK(right.check(attention(0.4, operands).evaluated()) != "");
    std::vector<HostTensor> later = operands;
    later[3] = i32_tensor({0, 3, 5});
    CHECK(right.check(attention(0.5, later).evaluated()) != "");
    Contraction with_sink = attention(0.5, operands, 1);
    CHECK(with_sink.check(with_sink.evaluated()) == "");
    CHECK(with_sink.check(attention(0.5, operands, 2).evaluated()) != "");
    CHECK(with_sink.check(right.evaluated()) != "");
  }
  // Two values of 3e38 are added before they are divided by the sum of their weights.
  const std::vector<float> same(4, 1);
  std::vector<HostTensor> large = {
      tensor(DType::f32, {1, 4}, same), tensor(DType::f32, {2, 2}, same),
      tensor(DType::f32, {2, 2}, {3e38f, 1, 3e38f, 1}), i32_tensor({0}), i32_tensor({1})};
  Contraction overflowing = attention(0.5, large);
  CHECK(overflowing.check(tensor(DType::f32, {1, 4}, {kInfinity, kInfinity, 1, 1})) == "");
  CHECK(overflowing.elements.unbounded == 2);
  CHECK(overflowing.elements.compared == 2);
}

TEST_CASE("attention has no bound where a score leaves the range before it is scaled") {
  // q·k is -4e38; the key's weight is exp(-1e38).
  Contraction scaled(OpKind::attention,
                     {tensor(DType::f32, {1, 1}, {2}), tensor(DType::f32, {2, 1}, {1, -2e38f}),
                      tensor(DType::f32, {2, 1}, {3, 5}), i32_tensor({0}), i32_tensor({1})},
                     Attributes()
                         .set(AttrName::heads, int64_t{1})
                         .set(AttrName::kv_heads, int64_t{1})
                         .set(AttrName::scale, 0.25));
  CHECK(scaled.check(tensor(DType::f32, {1, 1}, {kNan})) == "");
  CHECK(scaled.elements.unbounded == 1);
}

TEST_CASE("attention of several sequences with a mask is within its bound, and another is not") {
  Random random(4);
  const auto attention = [](std::vector<HostTensor> operands, bool zeros = false) {
    Attributes attrs;
    attrs.set(AttrName::heads, int64_t{2}).set(AttrName::kv_heads, int64_t{1});
    attrs.set(AttrName::scale, 0.5).set(AttrName::any_range, int64_t{1});
    if (zeros) attrs.set(AttrName::empty_zero, int64_t{1});
    return Contraction(OpKind::attention, std::move(operands), std::move(attrs));
  };
  const auto numbers = [](const std::vector<int32_t>& values) {
    HostTensor made = *make_tensor(DType::i32, {2, 3});
    std::copy(values.begin(), values.end(), made.data<int32_t>());
    return made;
  };
  const auto truths = [](const std::vector<int>& seen) {
    HostTensor made = *make_tensor(DType::i1, {2, 2, 1, 6});
    std::copy(seen.begin(), seen.end(), made.data<uint8_t>());
    return made;
  };
  const std::vector<int> seen = {1, 0, 1, 1, 1, 0, 1, 1, 0, 0, 1, 1,
                                 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 1, 1};
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    CAPTURE(to_string(dtype));
    const std::vector<HostTensor> operands = {
        random_tensor(dtype, {2, 3, 16}, random), random_tensor(dtype, {2, 6, 8}, random),
        random_tensor(dtype, {2, 6, 5}, random),  numbers({-3, 1, 0, INT32_MIN, 2, 0}),
        numbers({9, 4, 2, INT32_MAX, 3, 2}),      truths(seen)};
    Contraction right = attention(operands);
    CHECK(right.check(right.evaluated()) == "");
    // The last token's first head sees no key.
    CHECK(std::isnan(to_doubles(right.evaluated())[50]));
    CHECK(right.elements.compared == 60);
    CHECK(right.check(attention(operands, true).evaluated()) != "");
    Contraction zeros = attention(operands, true);
    CHECK(zeros.check(zeros.evaluated()) == "");
    CHECK(zeros.check(right.evaluated()) != "");
    // The mask of the other head, and of the other sequence; keys of the other sequence.
    std::vector<HostTensor> heads = operands, sequences = operands, keys = operands;
    heads[5] = truths(seen), sequences[5] = truths(seen);
    for (int i = 0; i < 24; ++i) {
      heads[5].data<uint8_t>()[i] = static_cast<uint8_t>(seen[i / 12 * 12 + (i + 6) % 12]);
      sequences[5].data<uint8_t>()[i] = static_cast<uint8_t>(seen[(i + 12) % 24]);
    }
    std::rotate(keys[1].bytes.begin(),
                keys[1].bytes.begin() + static_cast<int64_t>(keys[1].bytes.size() / 2),
                keys[1].bytes.end());
    CHECK(right.check(attention(heads).evaluated()) != "");
    CHECK(right.check(attention(sequences).evaluated()) != "");
    CHECK(right.check(attention(keys).evaluated()) != "");
  }
}

TEST_CASE("scores of numbers that a mask adds, down to the lowest one") {
  const auto attention = [](const std::vector<float>& mask) {
    return Contraction(
        OpKind::attention,
        {tensor(DType::f32, {1, 2}, {1, 2}), tensor(DType::f32, {3, 2}, {1, 0, 0, 1, 1, 1}),
         tensor(DType::f32, {3, 1}, {1, 2, 4}), i32_tensor({0}), i32_tensor({2}),
         tensor(DType::f32, {1, 1, 3}, mask)},
        Attributes()
            .set(AttrName::heads, int64_t{1})
            .set(AttrName::kv_heads, int64_t{1})
            .set(AttrName::scale, 1.0));
  };
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  const auto result = [](float value) { return tensor(DType::f32, {1, 1}, {value}); };
  Contraction one = attention({kLowest, 0.5f, -kInfinity});
  CHECK(one.check(one.evaluated()) == "");
  CHECK(one.check(result(2)) == "");
  CHECK(one.check(result(2.01f)) != "");
  Contraction two = attention({kLowest, 1, 0});
  CHECK(two.check(result(3)) == "");
  CHECK(two.check(result(2.99f)) != "");
  CHECK(two.elements.compared == 2);
  // Nothing is known of weights of scores that float32 cannot tell apart.
  Contraction none = attention({kLowest, kLowest, kLowest});
  CHECK(none.check(none.evaluated()) == "");
  CHECK(none.elements.unbounded == 1);
  CHECK(attention({-kInfinity, -kInfinity, -kInfinity}).check(result(kNan)) == "");
  CHECK(attention({-kInfinity, -kInfinity, -kInfinity}).check(result(0)) != "");
}

}  // namespace sinter::contraction_bound_test
