// One test for each constraint of infer.cpp, named after it; then the types of good ops.
#include "ir/infer.h"

#include <doctest/doctest.h>

#include <cmath>

#include "ir/graph.h"
#include "ir/symbols.h"

namespace sinter::infer_test {
namespace {

const SymbolId kN{0}, kM{1}, kL{2}, kFew{3};  // L is at most N
const std::vector<Symbol> kSymbols = [] {
  std::vector<Symbol> symbols = {host_symbol("N", 2, 100), host_symbol("M", 8, 64, 8),
                                 host_symbol("L", 1, 100), host_symbol("F", 1, 8)};
  symbols[2].at_most = kN;
  return symbols;
}();
using Types = std::vector<TensorType>;
using Axes = std::vector<int64_t>;

TensorType f32(Dims dims) { return {DType::f32, std::move(dims)}; }
TensorType f16(Dims dims) { return {DType::f16, std::move(dims)}; }
TensorType i32(Dims dims) { return {DType::i32, std::move(dims)}; }
TensorType i64(Dims dims) { return {DType::i64, std::move(dims)}; }
TensorType i1(Dims dims) { return {DType::i1, std::move(dims)}; }

Attributes with(AttrName name, AttrValue value) { return Attributes().set(name, std::move(value)); }
Attributes axes(Axes list) { return with(AttrName::axes, std::move(list)); }
Attributes dims(Dims list) { return with(AttrName::dims, std::move(list)); }

void gives(OpKind kind, const Types& operands, const Attributes& attrs,
           const TensorType& expected) {
  const auto type = infer_type(kind, operands, attrs, kSymbols);
  REQUIRE_MESSAGE(type.has_value(), (type ? std::string() : type.error().message()));
  CHECK_MESSAGE(*type == expected, to_string(*type, kSymbols), " instead of ",
                to_string(expected, kSymbols));
}

void rejects(int constraint, OpKind kind, const Types& operands, const Attributes& attrs = {}) {
  const auto type = infer_type(kind, operands, attrs, kSymbols);
  REQUIRE_MESSAGE(!type.has_value(), op_info(kind).name);
  CHECK_MESSAGE(type.error().what.find(fmt::format("(C{})", constraint)) != std::string::npos,
                type.error().what);
}

void gives(Order order, const Types& operands, Attributes attrs, const TensorType& expected) {
  gives(order_info(order).op, operands, attrs.set(AttrName::order, order), expected);
}

void rejects(int constraint, Order order, const Types& operands, Attributes attrs = {}) {
  rejects(constraint, order_info(order).op, operands, attrs.set(AttrName::order, order));
}

Attributes slice(int64_t axis, int64_t begin, Dim size) {
  return Attributes()
      .set(AttrName::axis, axis)
      .set(AttrName::begin, begin)
      .set(AttrName::size, size);
}

Attributes rope(int64_t rotary, std::string pairing) {
  return Attributes().set(AttrName::rotary, rotary).set(AttrName::pairing, std::move(pairing));
}

Attributes attention(int64_t heads, int64_t kv_heads) {
  return Attributes()
      .set(AttrName::heads, heads)
      .set(AttrName::kv_heads, kv_heads)
      .set(AttrName::scale, 0.5);
}

}  // namespace

TEST_CASE("C1 operand count and attributes") {
  rejects(1, OpKind::add, {f32({2})});
  rejects(1, OpKind::neg, {});
  rejects(1, OpKind::neg, {f32({2}), f32({2})});
  rejects(1, OpKind::concat, Types(65, f32({2})), with(AttrName::axis, int64_t{0}));
  rejects(1, OpKind::reduce_sum, {f32({2})});
  rejects(1, OpKind::neg, {f32({2})}, axes({0}));
  rejects(1, OpKind::input, {});
  for (int64_t checked : {0, 1})
    gives(OpKind::embedding, {f32({5, 8}), i32({kN})}, with(AttrName::checked, checked),
          f32({kN, 8}));
  rejects(1, OpKind::embedding, {f32({5, 8}), i32({kN})}, with(AttrName::checked, int64_t{2}));
  rejects(1, OpKind::neg, {f32({2})}, with(AttrName::checked, int64_t{1}));
}

TEST_CASE("C2 elementwise shapes broadcast") {
  gives(OpKind::add, {f32({kN, 4}), f32({4})}, {}, f32({kN, 4}));
  gives(OpKind::add, {f32({kN, 1}), f32({3, 1, 5})}, {}, f32({3, kN, 5}));
  gives(OpKind::mul, {f32({}), f32({0})}, {}, f32({0}));
  gives(OpKind::where, {i1({4}), f32({kN, 1}), f32({})}, {}, f32({kN, 4}));
  rejects(2, OpKind::add, {f32({3}), f32({4})});
  rejects(2, OpKind::add, {f32({kN}), f32({kM})});
  rejects(2, OpKind::add, {f32({kN}), f32({4})});
  rejects(2, OpKind::add, {f32({0}), f32({4})});
  rejects(2, OpKind::where, {i1({3}), f32({4}), f32({4})});
}

TEST_CASE("C3 elementwise types") {
  gives(OpKind::add, {i32({2}), i32({2})}, {}, i32({2}));
  gives(OpKind::add, {i64({2}), i64({2})}, {}, i64({2}));
  gives(OpKind::less, {i32({2}), i32({2})}, {}, i1({2}));
  gives(OpKind::neg, {i32({2})}, {}, i32({2}));
  gives(OpKind::mod_floor, {i64({2}), i64({2})}, {}, i64({2}));
  rejects(3, OpKind::mod_floor, {f32({2}), f32({2})});
  rejects(3, OpKind::add, {i32({2}), i64({2})});
  rejects(3, OpKind::pow, {i64({2}), i64({2})});
  gives(OpKind::equal, {f16({2}), f16({2})}, {}, i1({2}));
  gives(OpKind::where, {i1({2}), i32({2}), i32({2})}, {}, i32({2}));
  rejects(3, OpKind::add, {f32({2}), f16({2})});
  rejects(3, OpKind::add, {i1({2}), i1({2})});
  rejects(3, OpKind::exp, {i32({2})});
  rejects(3, OpKind::div, {i32({2}), i32({2})});
  rejects(3, OpKind::logical_and, {f32({2}), f32({2})});
  rejects(3, OpKind::where, {f32({2}), f32({2}), f32({2})});
  rejects(3, OpKind::where, {i1({2}), f32({2}), f16({2})});
  rejects(3, OpKind::gelu, {i32({2})});
}

TEST_CASE("C4 reshape keeps the number of elements") {
  gives(OpKind::reshape, {f16({kN, 12})}, dims({3, kN, 4}), f16({3, kN, 4}));
  gives(OpKind::reshape, {f16({1, 1})}, dims({}), f16({}));
  gives(OpKind::reshape, {f16({0, 3})}, dims({5, 0}), f16({5, 0}));
  rejects(4, OpKind::reshape, {f16({kN, 12})}, dims({kN, 13}));
  rejects(4, OpKind::reshape, {f16({kN})}, dims({kM}));
  rejects(4, OpKind::reshape, {f16({kN})}, dims({4}));
  rejects(4, OpKind::reshape, {f16({})}, dims({int64_t{1} << 62, int64_t{1} << 62}));
}

TEST_CASE("C5 transpose by a permutation") {
  gives(OpKind::transpose, {f16({kN, 2, 3})}, axes({2, 0, 1}), f16({3, kN, 2}));
  gives(OpKind::transpose, {f16({})}, axes({}), f16({}));
  rejects(5, OpKind::transpose, {f16({2, 3})}, axes({0}));
  rejects(5, OpKind::transpose, {f16({2, 3})}, axes({0, 0}));
  rejects(5, OpKind::transpose, {f16({2, 3})}, axes({0, 2}));
  rejects(5, OpKind::transpose, {f16({2, 3})}, axes({-1, 0}));
  rejects(5, OpKind::transpose, {f16({2, 3})}, axes({0, 1, 2}));
}

TEST_CASE("C6 slice within the extent") {
  gives(OpKind::slice, {f16({kN, 8})}, slice(1, 2, 6), f16({kN, 6}));
  gives(OpKind::slice, {f16({8})}, slice(0, 8, 0), f16({0}));
  gives(OpKind::slice, {f16({kN, 8})}, slice(0, 1, 1), f16({1, 8}));  // N >= 2
  gives(OpKind::slice, {f16({kN, 8})}, slice(0, 0, kN), f16({kN, 8}));
  rejects(6, OpKind::slice, {f16({8})}, slice(0, 2, 7));
  rejects(6, OpKind::slice, {f16({8})}, slice(0, -1, 2));
  rejects(6, OpKind::slice, {f16({8})}, slice(0, INT64_MAX, 1));
  rejects(6, OpKind::slice, {f16({kN})}, slice(0, 2, 1));
  rejects(6, OpKind::slice, {f16({kN})}, slice(0, 1, kN));
  rejects(6, OpKind::slice, {f16({8})}, slice(0, 0, kN));
  // A size may be another symbol only if that is known to be at most the extent.
  gives(OpKind::slice, {f16({kN, 8})}, slice(0, 0, kL), f16({kL, 8}));
  rejects(6, OpKind::slice, {f16({kN})}, slice(0, 0, kM));
  rejects(6, OpKind::slice, {f16({kL})}, slice(0, 0, kN));
  rejects(6, OpKind::slice, {f16({kN})}, slice(0, 1, kL));
}

TEST_CASE("C7 broadcast to larger dims") {
  gives(OpKind::broadcast, {f16({4})}, dims({kN, 4}), f16({kN, 4}));
  gives(OpKind::broadcast, {f16({kN, 1})}, dims({kN, 4}), f16({kN, 4}));
  rejects(7, OpKind::broadcast, {f16({kN, 4})}, dims({4}));
  rejects(7, OpKind::broadcast, {f16({3})}, dims({4}));
  rejects(7, OpKind::broadcast, {f16({4})}, dims({1}));
  rejects(7, OpKind::broadcast, {f16({kN})}, dims({kM}));
}

TEST_CASE("C8 axes") {
  rejects(8, OpKind::slice, {f16({8})}, slice(1, 0, 1));
  rejects(8, OpKind::slice, {f16({8})}, slice(-1, 0, 1));
  rejects(8, OpKind::reduce_sum, {f16({8})}, axes({1}));
  rejects(8, OpKind::reduce_sum, {f16({8})}, axes({-1}));
  rejects(8, OpKind::reduce_max, {f16({8, 8})}, axes({1, 0}));
  rejects(8, OpKind::reduce_max, {f16({8, 8})}, axes({0, 0}));
  rejects(8, OpKind::reduce_max, {f16({8, 8})}, axes({}));
  rejects(8, OpKind::concat, {f16({8})}, with(AttrName::axis, int64_t{1}));
  rejects(8, OpKind::iota, {}, dims({3}).set(AttrName::axis, int64_t{1}));
  rejects(8, OpKind::iota, {}, dims({}).set(AttrName::axis, int64_t{0}));
}

TEST_CASE("casts of every type to every other") {
  for (const DTypeInfo& from : kDTypes)
    for (const DTypeInfo& to : kDTypes)
      gives(OpKind::cast, {{from.dtype, {kN, 3}}}, with(AttrName::dtype, to.dtype),
            {to.dtype, {kN, 3}});
}

TEST_CASE("C10 concat along one constant axis") {
  const Attributes axis0 = with(AttrName::axis, int64_t{0}),
                   axis1 = with(AttrName::axis, int64_t{1});
  gives(OpKind::concat, {f16({kN, 2}), f16({kN, 3}), f16({kN, 0})}, axis1, f16({kN, 5}));
  rejects(10, OpKind::concat, {f16({kN, 2}), f16({kM, 2})}, axis1);
  rejects(10, OpKind::concat, {f16({kN, 2}), f16({kN, 2})}, axis0);
  rejects(10, OpKind::concat, {f16({2, 2}), f32({2, 2})}, axis0);
  rejects(10, OpKind::concat, {f16({2, 2}), f16({2})}, axis0);
  rejects(10, OpKind::concat, {f16({INT64_MAX}), f16({1})}, axis0);
}

TEST_CASE("C11 embedding") {
  gives(OpKind::embedding, {f16({100, 8}), i32({kN})}, {}, f16({kN, 8}));
  rejects(11, OpKind::embedding, {f16({100}), i32({kN})});
  rejects(11, OpKind::embedding, {f16({100, 8}), f16({kN})});
  gives(OpKind::embedding, {f16({100, 8}), i32({kN, 3})}, {}, f16({kN, 3, 8}));
  gives(OpKind::embedding, {f16({kN, 3, 8}), i32({kM})}, {}, f16({kM, 8}));
  rejects(11, OpKind::embedding, {f16({100, 8}), i32({})});
}

TEST_CASE("C11 gather") {
  const auto along = [](int64_t axis) { return with(AttrName::axis, axis); };
  gives(OpKind::gather, {f16({kN, 8, kM}), i32({kN, 3, kM})}, along(1), f16({kN, 3, kM}));
  gives(OpKind::gather, {i64({5}), i32({kN})}, along(0), i64({kN}));
  rejects(8, OpKind::gather, {f16({kN, 8}), i32({kN, 8})}, along(2));
  rejects(8, OpKind::gather, {f16({}), i32({})}, along(0));
  rejects(11, OpKind::gather, {f16({kN, 8}), i32({kN})}, along(1));
  rejects(11, OpKind::gather, {f16({kN, 8}), i32({kM, 8})}, along(1));
  rejects(11, OpKind::gather, {f16({kN, 8}), i64({kN, 8})}, along(1));
}

TEST_CASE("C12 kv_append") {
  gives(OpKind::kv_append, {f16({kM, 8}), f16({kN, 8}), i32({kN})}, {}, f16({kM, 8}));
  gives(OpKind::kv_append, {f16({kM}), f16({kN}), i32({kN})}, {}, f16({kM}));
  rejects(12, OpKind::kv_append, {f16({kM, 8}), f16({kN, 4}), i32({kN})});
  rejects(12, OpKind::kv_append, {f16({kM, 8}), f32({kN, 8}), i32({kN})});
  rejects(12, OpKind::kv_append, {f16({kM, 8}), f16({kN, 8}), i32({kM})});
  rejects(12, OpKind::kv_append, {f16({kM, 8}), f16({kN, 8}), f32({kN})});
  rejects(12, OpKind::kv_append, {f16({kM, 8}), f16({kN}), i32({kN})});
  rejects(12, OpKind::kv_append, {f16({}), f16({}), i32({})});
}

TEST_CASE("C42 store") {
  gives(OpKind::store, {f16({kM, 8}), f16({kM, 8})}, {}, f16({kM, 8}));
  gives(OpKind::store, {f16({}), f16({})}, {}, f16({}));
  rejects(42, OpKind::store, {f16({kM, 8}), f16({kN, 8})});
  rejects(42, OpKind::store, {f16({kM, 8}), f32({kM, 8})});
  rejects(42, OpKind::store, {f16({kM, 8}), f16({8})});
}

TEST_CASE("C13 operands of reductions, norms and softmax") {
  gives(OpKind::reduce_sum, {f16({kN, 8})}, axes({0, 1}), f16({1, 1}));
  gives(OpKind::softmax, {f16({kN, kM})}, {}, f16({kN, kM}));
  gives(OpKind::reduce_max, {i32({8})}, axes({0}), i32({1}));
  rejects(13, OpKind::reduce_sum, {i64({8})}, axes({0}));
  rejects(13, OpKind::reduce_sum, {i1({8})}, axes({0}));
  rejects(13, OpKind::reduce_sum, {f32({})}, axes({0}));
  rejects(13, OpKind::softmax, {f32({})});
}

TEST_CASE("C14 parameters of norms") {
  const Attributes eps = with(AttrName::eps, 1e-5);
  gives(OpKind::rms_norm, {f16({kN, 8}), f16({8})}, eps, f16({kN, 8}));
  gives(OpKind::layer_norm, {f16({8}), f16({8}), f16({8})}, eps, f16({8}));
  rejects(14, OpKind::rms_norm, {f16({kN, 8}), f16({4})}, eps);
  rejects(14, OpKind::rms_norm, {f16({kN, 8}), f32({8})}, eps);
  rejects(14, OpKind::rms_norm, {f16({8, kN}), f16({kN})}, eps);
  rejects(14, OpKind::rms_norm, {f16({kN, 0}), f16({0})}, eps);
  rejects(14, OpKind::layer_norm, {f16({kN, 8}), f16({8}), f16({1, 8})}, eps);
}

TEST_CASE("C15 rope") {
  const Types good = {f16({kN, 4, 8}), f16({kN, 3}), f16({kN, 3})};
  gives(OpKind::rope, good, rope(6, "half"), good[0]);
  gives(OpKind::rope, good, rope(6, "interleaved"), good[0]);
  rejects(15, OpKind::rope, good, rope(6, "other"));
  rejects(15, OpKind::rope, good, rope(8, "half"));
  rejects(15, OpKind::rope, {f16({kN, 4, 4}), f16({kN, 3}), f16({kN, 3})}, rope(6, "half"));
  rejects(15, OpKind::rope, {f16({kN, 4, 8}), f16({kN, 0}), f16({kN, 0})}, rope(0, "half"));
  rejects(15, OpKind::rope, {f16({kN, 4, 8}), f16({kN, 1}), f16({kN, 1})}, rope(3, "half"));
  rejects(15, OpKind::rope, {f16({kN, 4, 8}), f16({kN, 3}), f32({kN, 3})}, rope(6, "half"));
  rejects(15, OpKind::rope, {f16({kN, 32}), f16({kN, 3}), f16({kN, 3})}, rope(6, "half"));
  rejects(15, OpKind::rope, {f16({kN, 4, 8}), f16({kM, 3}), f16({kM, 3})}, rope(6, "half"));
}

TEST_CASE("C16 linear") {
  gives(OpKind::linear, {f16({kN, 8}), f16({5, 8})}, {}, f16({kN, 5}));
  gives(OpKind::linear, {f16({2, kN, 8}), f16({5, 8}), f16({5})}, {}, f16({2, kN, 5}));
  gives(OpKind::linear, {f16({8}), f16({5, 8})}, {}, f16({5}));
  rejects(16, OpKind::linear, {f16({kN, 8}), f16({8, 5})});
  gives(OpKind::linear, {f16({kN, 8}), f32({5, 8}), f16({5})}, {}, f16({kN, 5}));
  rejects(16, OpKind::linear, {f16({kN, 8}), f32({5, 8}), f32({5})});
  rejects(16, OpKind::linear, {f32({kN, 8}), f16({5, 8})});
  rejects(16, OpKind::linear, {i32({kN, 8}), i32({5, 8})});
  rejects(16, OpKind::linear, {f16({kN, kM}), f16({5, kM})});
  rejects(16, OpKind::linear, {f16({kN, 8}), f16({5, 8}), f16({8})});
  rejects(16, OpKind::linear, {f16({}), f16({5, 8})});
}

TEST_CASE("C1 an order is one of the op's") {
  const Attributes gemv =
      Attributes().set(AttrName::order, Order::gemv).set(AttrName::splits, int64_t{1});
  gives(OpKind::linear, {f16({8, 16}), f16({5, 16})}, gemv, f16({8, 5}));
  rejects(1, OpKind::add, {f16({8, 16}), f16({8, 16})}, gemv);
  rejects(1, OpKind::linear, {f16({8, 16}), f16({5, 16})},
          with(AttrName::order, Order::tiled_attention));
  // Attributes of an order are not the op's.
  rejects(1, OpKind::linear, {f16({8, 16}), f16({5, 16})}, with(AttrName::splits, int64_t{1}));
  rejects(1, OpKind::linear, {f16({8, 16}), f16({5, 16})}, with(AttrName::dtype, DType::f32));
  rejects(1, Order::tiled_linear, {f16({8, 16}), f16({5, 16})}, with(AttrName::splits, int64_t{1}));
}

TEST_CASE("C16 gemv") {
  const auto split = [](int64_t splits) { return with(AttrName::splits, splits); };
  gives(Order::gemv, {f16({8, 16}), f16({5, 16})}, split(1), f16({8, 5}));
  gives(Order::gemv, {f16({kFew, 8}), f16({1, 8}), f16({1})}, split(16), f16({kFew, 1}));
  gives(Order::gemv, {f16({8, 16}), f16({5, 16})}, split(1).set(AttrName::dtype, DType::f32),
        f32({8, 5}));
  for (DType dtype : {DType::bf16, DType::i32})
    rejects(16, Order::gemv, {f16({8, 16}), f16({5, 16})}, split(1).set(AttrName::dtype, dtype));
  rejects(1, Order::gemv, {f16({8, 16}), f16({5, 16})});
  for (int64_t splits : {-1, 0, 3, 12, 32})
    rejects(16, Order::gemv, {f16({8, 16}), f16({5, 16})}, split(splits));
  rejects(16, Order::gemv, {f16({8}), f16({5, 8})}, split(1));
  rejects(16, Order::gemv, {f16({2, 3, 8}), f16({5, 8})}, split(1));
  rejects(16, Order::gemv, {f16({8, 12}), f16({5, 12})}, split(1));
  rejects(16, Order::gemv, {f16({8, 0}), f16({5, 0})}, split(1));
  rejects(16, Order::gemv, {f16({8, 8}), f16({0, 8})}, split(1));
  rejects(16, Order::gemv, {f16({0, 8}), f16({5, 8})}, split(1));
  rejects(16, Order::gemv, {f16({9, 8}), f16({5, 8})}, split(1));
  rejects(16, Order::gemv, {f16({kN, 8}), f16({5, 8})}, split(1));
  rejects(16, Order::gemv, {f16({8, 8}), f32({5, 8})}, split(1));
  rejects(16, Order::gemv, {f16({8, 8}), f16({5, 8}), f16({8})}, split(1));
}

TEST_CASE("C26 tiled_linear") {
  gives(Order::tiled_linear, {f16({kN, 16}), f16({5, 16})}, {}, f16({kN, 5}));
  gives(Order::tiled_linear, {f16({2, 3, 8}), f16({5, 8}), f16({5})}, {}, f16({2, 3, 5}));
  gives(Order::tiled_linear, {f16({kN, 16}), f16({5, 16})}, with(AttrName::dtype, DType::f32),
        f32({kN, 5}));
  for (DType dtype : {DType::bf16, DType::i32})
    rejects(16, Order::tiled_linear, {f16({kN, 16}), f16({5, 16})}, with(AttrName::dtype, dtype));
  rejects(16, Order::tiled_linear, {f16({kN, 16}), f16({5, 8})});
  rejects(26, Order::tiled_linear, {f32({kN, 16}), f32({5, 16})});
  rejects(26, Order::tiled_linear, {f16({kN, 12}), f16({5, 12})});
  rejects(26, Order::tiled_linear, {f16({kN, 0}), f16({5, 0})});
  rejects(26, Order::tiled_linear, {f16({kN, 8}), f16({0, 8})});
}

TEST_CASE("C17 einsum") {
  const auto spec = [](std::string text) { return with(AttrName::spec, std::move(text)); };
  gives(OpKind::einsum, {f16({kN, 8}), f16({5, 8})}, spec("nk,mk->nm"), f16({kN, 5}));
  gives(OpKind::einsum, {f16({kN, 2, 3, 8}), f16({kM, 2, 8})}, spec("nkgd,tkd->kgnt"),
        f16({2, 3, kN, kM}));
  gives(OpKind::einsum, {f16({3}), f16({3})}, spec("a,a->"), f16({}));
  gives(OpKind::einsum, {f16({3}), f16({4})}, spec("a,b->ba").set(AttrName::dtype, DType::f32),
        f32({4, 3}));
  for (const char* bad :
       {"", "ab", "ab,bc", "ab,bc->", "aa,ab->b", "ab,bc->aa", "ab,bc->ad", "ab,bc,cd->ad",
        "ab,bc-ac", "ab,bc->ac->a", "AB,BC->AC", "ab, bc->ac", "ab,bc->a\xFF"})
    rejects(17, OpKind::einsum, {f16({2, 2}), f16({2, 2})}, spec(bad));
  rejects(17, OpKind::einsum, {f16({2, 3}), f16({4, 5})}, spec("ab,bc->ac"));
  rejects(17, OpKind::einsum, {f16({2, kN}), f16({kM, 5})}, spec("ab,bc->ac"));
  rejects(17, OpKind::einsum, {f16({2}), f16({2, 2})}, spec("ab,bc->ac"));
  rejects(17, OpKind::einsum, {f16({2, 2}), f32({2, 2})}, spec("ab,bc->ac"));
  rejects(17, OpKind::einsum, {i32({2, 2}), i32({2, 2})}, spec("ab,bc->ac"));
  rejects(17, OpKind::einsum, {f16({2, 2}), f16({2, 2})},
          spec("ab,bc->ac").set(AttrName::dtype, DType::i32));
}

TEST_CASE("C18 attention") {
  const Types good = {f16({kN, 32}), f16({kM, 16}), f16({kM, 8}), i32({kN}), i32({kN})};
  gives(OpKind::attention, good, attention(4, 2), f16({kN, 16}));
  for (auto [heads, kv_heads] : {std::pair{4, 3}, {0, 1}, {4, 0}, {-4, -2}, {3, 1}, {4, 4}, {4, 1}})
    rejects(18, OpKind::attention, good, attention(heads, kv_heads));
  const auto replaced = [&](size_t operand, TensorType type) {
    Types types = good;
    types[operand] = std::move(type);
    return types;
  };
  rejects(18, OpKind::attention, replaced(0, f32({kN, 32})), attention(4, 2));
  rejects(18, OpKind::attention, replaced(0, f16({kN, 4, 8})), attention(4, 2));
  rejects(18, OpKind::attention, replaced(2, f16({kN, 8})), attention(4, 2));
  rejects(18, OpKind::attention, replaced(2, f16({kM, 9})), attention(4, 2));
  rejects(18, OpKind::attention, replaced(3, i32({kM})), attention(4, 2));
  rejects(18, OpKind::attention, replaced(4, f32({kN})), attention(4, 2));
  rejects(18, OpKind::attention,
          {f16({kN, 0}), f16({0, 0}), f16({0, int64_t{1} << 40}), i32({kN}), i32({kN})},
          attention(int64_t{1} << 40, 1));
  rejects(18, OpKind::attention, good, attention(4, 2).set(AttrName::scale, double(INFINITY)));
  rejects(18, OpKind::attention, good, attention(4, 2).set(AttrName::softcap, 0.0));
  const auto dropped = [](double p) { return attention(4, 2).set(AttrName::dropout, p); };
  auto seeded = good;
  seeded.push_back(i32({}));
  gives(OpKind::attention, seeded, dropped(0.1), f16({kN, 16}));
  for (double p : {0.0, 1.0, -0.5, double(NAN)}) rejects(18, OpKind::attention, seeded, dropped(p));
  rejects(18, OpKind::attention, good, dropped(0.1));
  rejects(18, OpKind::attention, seeded, attention(4, 2));
  gives(Order::tiled_attention, seeded, dropped(0.1), f16({kN, 16}));
  rejects(24, Order::tiled_attention, seeded,
          dropped(0.1).set(AttrName::segment, int64_t{128}).set(AttrName::splits, int64_t{2}));
  rejects(21, Order::decode_attention, seeded, dropped(0.1).set(AttrName::splits, int64_t{2}));
  seeded.back() = i32({1});
  rejects(18, OpKind::attention, seeded, dropped(0.1));
  rejects(18, OpKind::attention, good, attention(4, 2).set(AttrName::window, int64_t{0}));
  for (int64_t sink : {int64_t{-1}, int64_t{1} << 31, INT64_MIN})
    rejects(18, OpKind::attention, good, attention(4, 2).set(AttrName::sink, sink));
  for (int64_t sink : {int64_t{0}, int64_t{4}, (int64_t{1} << 31) - 1})
    gives(OpKind::attention, good, attention(4, 2).set(AttrName::sink, sink), f16({kN, 16}));
  const Attributes softmax =
      Attributes().set(AttrName::dtype, DType::f16).set(AttrName::scale, 1.0);
  const Types scores = {f32({2, kN, kM}), i32({kN}), i32({kN})};
  gives(OpKind::attention_softmax, scores, softmax, f16({2, kN, kM}));
  Attributes with_sink = softmax;
  gives(OpKind::attention_softmax, scores, with_sink.set(AttrName::sink, int64_t{4}),
        f16({2, kN, kM}));
  rejects(18, OpKind::attention_softmax, scores, with_sink.set(AttrName::sink, int64_t{-4}));
  rejects(18, OpKind::attention_softmax, {f16({2, kN, kM}), i32({kN}), i32({kN})}, softmax);
  rejects(18, OpKind::attention_softmax, {f32({kN}), i32({kN}), i32({kN})}, softmax);
  rejects(18, OpKind::attention_softmax, {scores[0], i32({kM}), i32({kN})}, softmax);
  Attributes nan_scale = softmax;
  rejects(18, OpKind::attention_softmax, scores, nan_scale.set(AttrName::scale, double(NAN)));
}

TEST_CASE("C18 attention of several sequences") {
  const Types one = {f16({2, kN, 32}), f16({2, kM, 16}), f16({2, kM, 8}), i32({2, kN}),
                     i32({2, kN})};
  gives(OpKind::attention, one, attention(4, 2), f16({2, kN, 16}));
  gives(Order::tiled_attention, one, attention(4, 2), f16({2, kN, 16}));
  gives(Order::decode_attention, one, attention(4, 2).set(AttrName::splits, int64_t{2}),
        f16({2, kN, 16}));
  gives(OpKind::attention,
        {f16({kL, 3, kN, 32}), f16({kL, 3, kM, 16}), f16({kL, 3, kM, 8}), i32({kL, 3, kN}),
         i32({kL, 3, kN})},
        attention(4, 2), f16({kL, 3, kN, 16}));
  for (const auto& [operand, type] : {std::pair<size_t, TensorType>{0, f16({kN, 32})},
                                      {0, f16({3, kN, 32})},
                                      {0, f16({1, kN, 32})},
                                      {1, f16({kM, 16})},
                                      {1, f16({1, kM, 16})},
                                      {1, f16({3, kM, 16})},
                                      {2, f16({2, 1, kM, 8})},
                                      {2, f16({3, kM, 8})},
                                      {2, f16({2, kN, 8})},
                                      {3, i32({kN})},
                                      {3, i32({1, kN})},
                                      {3, i32({2, kM})},
                                      {4, i32({kN, 2})}}) {
    Types types = one;
    types[operand] = type;
    rejects(18, OpKind::attention, types, attention(4, 2));
  }
}

TEST_CASE("C18 masks of attention") {
  const Types one = {f16({2, kN, 32}), f16({2, kM, 16}), f16({2, kM, 8}), i32({2, kN}),
                     i32({2, kN})};
  const auto masked = [&](TensorType mask) {
    Types types = one;
    types.push_back(std::move(mask));
    return types;
  };
  for (Dims dims : {Dims{2, 4, kN, kM}, Dims{1, 4, kN, kM}, Dims{2, 1, kN, kM}, Dims{2, 4, 1, kM},
                    Dims{2, 4, kN, 1}, Dims{1, 1, 1, 1}})
    for (DType dtype : {DType::i1, DType::f32, DType::f16, DType::bf16}) {
      gives(OpKind::attention, masked({dtype, dims}), attention(4, 2), f16({2, kN, 16}));
      gives(Order::tiled_attention, masked({dtype, dims}), attention(4, 2), f16({2, kN, 16}));
    }
  for (Dims dims : {Dims{4, kN, kM}, Dims{1, 2, 4, kN, kM}, Dims{3, 4, kN, kM}, Dims{2, 2, kN, kM},
                    Dims{2, 4, kM, kM}, Dims{2, 4, kN, kN}, Dims{2, 4, kN, 8}, Dims{}})
    rejects(18, OpKind::attention, masked(i1(dims)), attention(4, 2));
  for (DType dtype : {DType::i32, DType::i64})
    rejects(18, OpKind::attention, masked({dtype, {2, 4, kN, kM}}), attention(4, 2));
  // Kernels take a mask for each sequence or one for all.
  const Types two = {f16({2, 3, kN, 32}), f16({2, 3, kM, 16}), f16({2, 3, kM, 8}),
                     i32({2, 3, kN}),     i32({2, 3, kN}),     i1({2, 1, 4, kN, kM})};
  gives(OpKind::attention, two, attention(4, 2), f16({2, 3, kN, 16}));
  rejects(24, Order::tiled_attention, two, attention(4, 2));
  rejects(21, Order::decode_attention, two, attention(4, 2).set(AttrName::splits, int64_t{2}));
  // One sequence, without leading axes.
  const Types alone = {f16({kN, 32}), f16({kM, 16}), f16({kM, 8}),
                       i32({kN}),     i32({kN}),     i1({1, kN, kM})};
  gives(OpKind::attention, alone, attention(4, 2), f16({kN, 16}));
  Types flat = alone;
  flat[5] = i1({kN, kM});
  rejects(18, OpKind::attention, flat, attention(4, 2));
  Types seven = alone;
  seven.push_back(alone[5]);
  rejects(1, OpKind::attention, seven, attention(4, 2));
}

TEST_CASE("C18 attention_softmax: row numbers and masks that broadcast") {
  const Attributes softmax =
      Attributes().set(AttrName::dtype, DType::f16).set(AttrName::scale, 1.0);
  const auto softmax_of = [](TensorType number) {
    return Types{f32({2, 4, kN, kM}), number, number};
  };
  for (Dims dims : {Dims{kN}, Dims{1, kN}, Dims{4, kN}, Dims{2, 1, kN}, Dims{2, 4, kN}})
    gives(OpKind::attention_softmax, softmax_of(i32(dims)), softmax, f16({2, 4, kN, kM}));
  for (Dims dims : {Dims{}, Dims{1}, Dims{2, kN}, Dims{2, 4, 1}, Dims{3, 4, kN}, Dims{1, 2, 4, kN},
                    Dims{2, 4, kM}})
    rejects(18, OpKind::attention_softmax, softmax_of(i32(dims)), softmax);
  rejects(18, OpKind::attention_softmax, {f32({2, 4, kN, kM}), i32({2, 1, kN}), i32({2, 4, kN})},
          softmax);
  rejects(18, OpKind::attention_softmax, softmax_of(i64({kN})), softmax);
  const auto masked = [&](TensorType mask) {
    Types types = softmax_of(i32({kN}));
    types.push_back(std::move(mask));
    return types;
  };
  for (Dims dims : {Dims{}, Dims{kM}, Dims{1}, Dims{kN, 1}, Dims{4, 1, kM}, Dims{2, 4, kN, kM}})
    for (DType dtype : {DType::i1, DType::f32, DType::bf16})
      gives(OpKind::attention_softmax, masked({dtype, dims}), softmax, f16({2, 4, kN, kM}));
  for (Dims dims : {Dims{kN}, Dims{2}, Dims{2, kN, kM}, Dims{1, 2, 4, kN, kM}})
    rejects(18, OpKind::attention_softmax, masked(i1(dims)), softmax);
  rejects(18, OpKind::attention_softmax, masked(i32({kM})), softmax);
}

TEST_CASE("C1 any_range and empty_zero are 0 or 1") {
  const Types good = {f16({kN, 32}), f16({kM, 16}), f16({kM, 8}), i32({kN}), i32({kN})};
  for (AttrName flag : {AttrName::any_range, AttrName::empty_zero}) {
    for (int64_t value : {0, 1})
      gives(OpKind::attention, good, attention(4, 2).set(flag, value), f16({kN, 16}));
    for (int64_t value : {-1, 2})
      rejects(1, OpKind::attention, good, attention(4, 2).set(flag, value));
    rejects(1, OpKind::softmax, {f32({2, 3})}, Attributes().set(flag, int64_t{1}));
  }
}

TEST_CASE("C19 literals and eps") {
  const auto literal = [](Dims shape, std::vector<double> values) {
    return dims(std::move(shape))
        .set(AttrName::dtype, DType::f32)
        .set(AttrName::values, std::move(values));
  };
  gives(OpKind::literal, {}, literal({2, 2}, {1, 2, 3, 4}), f32({2, 2}));
  gives(OpKind::literal, {}, literal({}, {1}), f32({}));
  gives(OpKind::literal, {}, literal({0}, {}), f32({0}));
  rejects(19, OpKind::literal, {}, literal({2, 2}, {1, 2, 3}));
  rejects(19, OpKind::literal, {}, literal({kN}, {1, 2}));
  for (double eps : {0.0, -1e-5, double(NAN), double(INFINITY)})
    rejects(19, OpKind::rms_norm, {f16({kN, 8}), f16({8})}, with(AttrName::eps, eps));
}

TEST_CASE("C20 values have at most 2^48 bytes") {
  rejects(20, OpKind::broadcast, {f32({})}, dims({(int64_t{1} << 46) + 1}));
  gives(OpKind::broadcast, {f32({})}, dims({int64_t{1} << 46}), f32({int64_t{1} << 46}));
  rejects(20, OpKind::add, {f32({int64_t{1} << 31, 1}), f32({int64_t{1} << 31})});
  rejects(20, OpKind::broadcast, {f32({})}, dims({kN, kM, int64_t{1} << 40}));
}

TEST_CASE("C21 decode_attention") {
  const auto split = [](int64_t splits) { return attention(4, 2).set(AttrName::splits, splits); };
  const Types good = {f16({kN, 32}), f16({kM, 16}), f16({kM, 6}), i32({kN}), i32({kN})};
  gives(Order::decode_attention, good, split(1), f16({kN, 12}));
  gives(Order::decode_attention, good,
        split(8).set(AttrName::softcap, 5.0).set(AttrName::window, int64_t{3}), f16({kN, 12}));
  const auto streams = [&](int64_t count) { return split(1).set(AttrName::streams, count); };
  for (int64_t count : {32, 64})
    gives(Order::decode_attention, good, streams(count), f16({kN, 12}));
  for (int64_t count : {int64_t{0}, int64_t{16}, int64_t{48}, int64_t{128}, INT64_MIN})
    rejects(21, Order::decode_attention, good, streams(count));
  for (int64_t splits : {int64_t{0}, int64_t{-1}, int64_t{9}, INT64_MAX})
    rejects(21, Order::decode_attention, good, split(splits));
  rejects(1, Order::decode_attention, good, attention(4, 2));
  // Attributes that `attention` rejects too.
  rejects(18, Order::decode_attention, good, split(4).set(AttrName::kv_heads, int64_t{3}));
  rejects(18, Order::decode_attention, good, split(4).set(AttrName::scale, double(NAN)));
  rejects(18, Order::decode_attention, good, split(4).set(AttrName::softcap, -1.0));
  rejects(18, Order::decode_attention, good, split(4).set(AttrName::window, int64_t{0}));
  const auto widths = [&](int64_t width, int64_t value_width) -> Types {
    return {f16({kN, 4 * width}), f16({kM, 2 * width}), f16({kM, 2 * value_width}), good[3],
            good[4]};
  };
  gives(Order::decode_attention, widths(256, 256), split(4), f16({kN, 1024}));
  gives(Order::decode_attention, widths(1, 1), split(4), f16({kN, 4}));
  for (const auto& [width, value_width] : {std::pair{257, 8}, {8, 257}, {0, 8}, {8, 0}})
    rejects(21, Order::decode_attention, widths(width, value_width), split(4));
}

TEST_CASE("C24 tiled_attention") {
  const Types good = {f16({kN, 32}), f16({kM, 16}), f16({kM, 6}), i32({kN}), i32({kN})};
  gives(Order::tiled_attention, good, attention(4, 2), f16({kN, 12}));
  gives(Order::tiled_attention, good,
        attention(4, 2).set(AttrName::softcap, 5.0).set(AttrName::window, int64_t{3}),
        f16({kN, 12}));
  rejects(24, Order::tiled_attention, good, attention(4, 2).set(AttrName::scale, 0.0));
  rejects(24, Order::tiled_attention,
          {f32({kN, 32}), f32({kM, 16}), f32({kM, 6}), i32({kN}), i32({kN})}, attention(4, 2));
  const auto widths = [&](int64_t width, int64_t value_width) -> Types {
    return {f16({kN, 4 * width}), f16({kM, 2 * width}), f16({kM, 2 * value_width}), good[3],
            good[4]};
  };
  gives(Order::tiled_attention, widths(256, 256), attention(4, 2), f16({kN, 1024}));
  gives(Order::tiled_attention, widths(1, 1), attention(4, 2), f16({kN, 4}));
  for (const auto& [width, value_width] : {std::pair{257, 8}, {8, 257}, {0, 8}, {8, 0}})
    rejects(24, Order::tiled_attention, widths(width, value_width), attention(4, 2));
  const auto cut = [](int64_t segment) { return attention(4, 2).set(AttrName::segment, segment); };
  gives(Order::tiled_attention, good, cut(128), f16({kN, 12}));
  gives(Order::tiled_attention, widths(256, 256), cut(64).set(AttrName::splits, int64_t{8}),
        f16({kN, 1024}));
  for (int64_t segment : {-128, 0, 64, 1 << 21})
    rejects(24, Order::tiled_attention, good, cut(segment));
  for (int64_t splits : {-1, 0, 9})
    rejects(24, Order::tiled_attention, good, cut(128).set(AttrName::splits, splits));
  rejects(24, Order::tiled_attention, good, attention(4, 2).set(AttrName::splits, int64_t{1}));
  // Attributes that `attention` rejects too.
  rejects(18, Order::tiled_attention, good, attention(4, 3));
}

TEST_CASE("C24 tiled_attention with a summary of its mask") {
  const auto with = [](TensorType mask, TensorType tiles) -> Types {
    return {f16({2, 300, 32}), f16({2, 130, 16}), f16({2, 130, 8}), i32({2, 300}),
            i32({2, 300}),     std::move(mask),   std::move(tiles)};
  };
  const TensorType result = f16({2, 300, 16});
  const auto attrs = attention(4, 2);
  gives(Order::tiled_attention, with(i1({2, 4, 300, 130}), i1({2, 4, 3, 2})), attrs, result);
  gives(Order::tiled_attention, with(f32({1, 1, 1, 130}), i1({1, 1, 1, 2})), attrs, result);
  gives(Order::tiled_attention, with(i1({2, 1, 300, 1}), i1({2, 1, 3, 1})), attrs, result);
  for (const TensorType& tiles :
       {i1({2, 4, 3, 3}), i1({2, 4, 5, 2}), i1({2, 1, 3, 2}), i1({1, 4, 3, 2}), i32({2, 4, 3, 2})})
    rejects(24, Order::tiled_attention, with(i1({2, 4, 300, 130}), tiles), attrs);
}

TEST_CASE("C33 place") {
  const auto at = [](int64_t begin, Dim size, int64_t axis = 1) {
    return Attributes()
        .set(AttrName::axis, axis)
        .set(AttrName::begin, begin)
        .set(AttrName::size, size);
  };
  gives(OpKind::place, {f16({kN, 2})}, at(0, 5), f16({kN, 5}));
  gives(OpKind::place, {f16({kN, 2, kM}), f16({kN, 5, kM})}, at(3, 5), f16({kN, 5, kM}));
  gives(OpKind::place, {f16({kN, 0})}, at(5, 5), f16({kN, 5}));
  rejects(33, OpKind::place, {f16({kN, 2})}, at(4, 5));
  rejects(33, OpKind::place, {f16({kN, 2})}, at(-1, 5));
  rejects(33, OpKind::place, {f16({kN, 2})}, at(INT64_MAX, 5));
  rejects(33, OpKind::place, {f16({kN, 2})}, at(0, kM));
  rejects(33, OpKind::place, {f16({kN, 2})}, at(0, 5, 0));
  rejects(33, OpKind::place, {f16({kN, 2}), f16({kN, 4})}, at(0, 5));
  rejects(33, OpKind::place, {f16({kN, 2}), f32({kN, 5})}, at(0, 5));
  rejects(8, OpKind::place, {f16({kN, 2})}, at(0, 5, 2));
}

TEST_CASE("C24 attention_log_sum") {
  const Types good = {f16({2, kN, 32}), f16({2, kM, 16}), f16({2, kM, 6}), i32({2, kN}),
                      i32({2, kN})};
  gives(OpKind::attention_log_sum, good, attention(4, 2), f32({2, 4, kN}));
  rejects(24, OpKind::attention_log_sum, good, attention(4, 2).set(AttrName::scale, 0.0));
  rejects(24, OpKind::attention_log_sum,
          {f32({kN, 32}), f32({kM, 16}), f32({kM, 6}), i32({kN}), i32({kN})}, attention(4, 2));
  rejects(18, OpKind::attention_log_sum, good, attention(4, 3));
  gives(OpKind::attention_log_sum, good, attention(4, 2).set(AttrName::softcap, 5.0),
        f32({2, 4, kN}));
  rejects(18, OpKind::attention_log_sum, good, attention(4, 2).set(AttrName::softcap, 0.0));
}

TEST_CASE("C29 gradients of attention") {
  const auto of = [](int64_t width, int64_t value_width) -> Types {
    return {f16({2, kN, 4 * width}),
            f16({2, kM, 2 * width}),
            f16({2, kM, 2 * value_width}),
            i32({2, kN}),
            i32({2, kN}),
            f16({2, kN, 4 * value_width}),
            f32({2, 4, kN}),
            f32({2, 4, kN})};
  };
  const auto attrs = attention(4, 2);
  const std::pair<OpKind, size_t> kinds[] = {{OpKind::attention_query_gradient, 0},
                                             {OpKind::attention_key_gradient, 1},
                                             {OpKind::attention_value_gradient, 2}};
  for (const auto& [kind, operand] : kinds) {
    gives(kind, of(8, 3), attrs, of(8, 3)[operand]);
    gives(kind, of(128, 128), attrs, of(128, 128)[operand]);
    for (const auto& [width, value_width] : {std::pair{129, 8}, {8, 129}, {0, 8}, {8, 0}})
      rejects(29, kind, of(width, value_width), attrs);
    rejects(29, kind, of(8, 3), attention(4, 2).set(AttrName::scale, 0.0));
    gives(kind, of(8, 3), attention(4, 2).set(AttrName::softcap, 5.0), of(8, 3)[operand]);
    rejects(18, kind, of(8, 3), attention(4, 2).set(AttrName::softcap, -5.0));
    const auto with = [&](size_t place, TensorType type) {
      Types types = of(8, 3);
      types[place] = std::move(type);
      return types;
    };
    rejects(29, kind, with(5, f16({2, kN, 32})), attrs);
    rejects(29, kind, with(6, f32({2, kN, 4})), attrs);
    rejects(29, kind, with(7, f16({2, 4, kN})), attrs);
    Types masked = of(8, 3);
    masked.push_back(i1({2, 1, kN, kM}));
    gives(kind, masked, attrs, of(8, 3)[operand]);
    rejects(18, kind, of(8, 3), attention(4, 3));
  }
}

TEST_CASE("C28 mask_tiles") {
  const auto of = [](int64_t tokens, int64_t keys) {
    return Attributes().set(AttrName::tile_tokens, tokens).set(AttrName::tile_keys, keys);
  };
  gives(OpKind::mask_tiles, {i1({2, 3, 129, 64})}, of(128, 64), i1({2, 3, 2, 1}));
  gives(OpKind::mask_tiles, {f16({1, 1, 65})}, of(128, 64), i1({1, 1, 2}));
  gives(OpKind::mask_tiles, {f32({kN, 1, 0})}, of(32, 1024), i1({kN, 1, 0}));
  for (const TensorType& mask : {i32({1, 1, 65}), i1({4, 65}), i1({})})
    rejects(28, OpKind::mask_tiles, {mask}, of(128, 64));
  for (const auto& [tokens, keys] : {std::pair{0, 64}, {128, 65}, {128, 2048}, {-32, 64}})
    rejects(28, OpKind::mask_tiles, {i1({1, 1, 65})}, of(tokens, keys));
}

TEST_CASE("C27 float_attention") {
  const auto widths = [](int64_t width, int64_t value_width) -> Types {
    return {f32({kN, 4 * width}), f32({kM, 2 * width}), f32({kM, 2 * value_width}), i32({kN}),
            i32({kN})};
  };
  gives(Order::float_attention, widths(8, 3), attention(4, 2).set(AttrName::scale, 0.0),
        f32({kN, 12}));
  gives(Order::float_attention, widths(256, 256), attention(4, 2), f32({kN, 1024}));
  gives(Order::float_attention, widths(1, 1), attention(4, 2), f32({kN, 4}));
  for (const auto& [width, value_width] : {std::pair{257, 8}, {8, 257}, {0, 8}, {8, 0}})
    rejects(27, Order::float_attention, widths(width, value_width), attention(4, 2));
  rejects(27, Order::float_attention,
          {f16({kN, 32}), f16({kM, 16}), f16({kM, 6}), i32({kN}), i32({kN})}, attention(4, 2));
  rejects(18, Order::float_attention, widths(8, 3), attention(4, 3));
  const auto masked = [](Dims mask) -> Types {
    return {f32({2, 3, kN, 32}), f32({2, 3, kM, 32}), f32({2, 3, kM, 32}),
            i32({2, 3, kN}),     i32({2, 3, kN}),     f32(std::move(mask))};
  };
  for (const Dims& mask : {Dims{1, 1, 1, kN, kM}, Dims{2, 3, 4, 1, kM}})
    gives(Order::float_attention, masked(mask), attention(4, 4), f32({2, 3, kN, 32}));
  for (const Dims& mask : {Dims{2, 1, 1, kN, kM}, Dims{1, 3, 4, 1, kM}})
    rejects(27, Order::float_attention, masked(mask), attention(4, 4));
}

TEST_CASE("C25 scatter_add") {
  const auto rows = [](Dim count) { return with(AttrName::rows, count); };
  gives(OpKind::scatter_add, {i32({kN}), f16({kN, 8})}, rows(7), f16({7, 8}));
  gives(OpKind::scatter_add, {i32({kN}), f32({kN, kM})}, rows(kM), f32({kM, kM}));
  rejects(25, OpKind::scatter_add, {i32({kM}), f16({kN, 8})}, rows(7));
  rejects(25, OpKind::scatter_add, {i64({kN}), f16({kN, 8})}, rows(7));
  rejects(25, OpKind::scatter_add, {i32({kN}), i32({kN, 8})}, rows(7));
  rejects(25, OpKind::scatter_add, {i32({kN}), f16({kN})}, rows(7));
  rejects(25, OpKind::scatter_add, {i32({kN}), f16({kN, 1})}, rows((int64_t{1} << 31) + 1));
}

TEST_CASE("C34 run_sums") {
  const auto runs = [](int64_t count) { return with(AttrName::runs, count); };
  gives(OpKind::run_sums, {f32({100, 24})}, runs(4), f32({4, 1, 24}));
  gives(OpKind::run_sums, {f16({2, 50, 24}), f32({2, 50, 24})}, runs(16), f32({16, 2, 24}));
  gives(OpKind::run_sums, {f32({32768, 2048})}, runs(128), f32({128, 1, 2048}));
  rejects(1, OpKind::run_sums, {f32({100, 24})});
  rejects(1, OpKind::run_sums, Types(9, f32({100, 24})), runs(4));
  rejects(34, OpKind::run_sums, {f32({100, 24}), f32({100, 32})}, runs(4));
  rejects(34, OpKind::run_sums, {i32({100, 24})}, runs(4));
  rejects(34, OpKind::run_sums, {f32({kN, 24})}, runs(4));
  rejects(34, OpKind::run_sums, {f32({24})}, runs(1));
  rejects(34, OpKind::run_sums, {f32({1, 24})}, runs(1));
  rejects(34, OpKind::run_sums, {f32({0, 24})}, runs(1));
  rejects(34, OpKind::run_sums, {f32({100, 12})}, runs(4));
  rejects(34, OpKind::run_sums, {f32({100, 0})}, runs(4));
  rejects(34, OpKind::run_sums, {f32({100, 8200})}, runs(16));
  // 100 rows have 16 lanes, 32768 have 1024.
  for (int64_t count : {-1, 0, 3, 32}) rejects(34, OpKind::run_sums, {f32({100, 24})}, runs(count));
  rejects(34, OpKind::run_sums, {f32({100, 24})}, runs(1));
  rejects(34, OpKind::run_sums, {f32({32768, 4096})}, runs(128));
}

TEST_CASE("C30 pack_codes and dequantize") {
  const auto codes = [](Dim size, const char* text) {
    return with(AttrName::size, size).set(AttrName::codes, std::string(text));
  };
  // Four rounds of 128 bytes, and the scales of 8 groups.
  gives(OpKind::pack_codes, {i32({5, 128}), f16({5, 8})}, codes(1024, "int4 g128 f16"),
        i32({5, 132}));
  gives(OpKind::pack_codes, {i32({5, 1}), f32({5, 1})}, codes(3, "int8 row f32"), i32({5, 68}));
  gives(OpKind::pack_codes, {i32({5, 32}), f16({5, 2}), i32({5, 2}), f16({5, 2})},
        codes(256, "uint4 g128 f16 zeros minima"), i32({5, 36}));
  // 144 bytes for 256 codes, as GGUF's Q4_K; 848 for 1,024, of which 8 are padding.
  gives(OpKind::pack_codes, {i32({5, 128}), f16({5, 4}), f16({5, 4}), i32({5, 32})},
        codes(1024, "uint4 g32 f16x6 minima"), i32({5, 144}));
  gives(OpKind::pack_codes, {i32({5, 192}), f16({5, 4}), i32({5, 64})},
        codes(1024, "int6 g16 f16x8"), i32({5, 212}));
  gives(OpKind::pack_codes, {i32({5, 2}), f16({5, 1}), f16({5, 1})},
        codes(11, "uint5 g32 f16 minima"), i32({5, 48}));
  rejects(30, OpKind::pack_codes, {i32({5, 192}), f16({5, 4})}, codes(1024, "int6 g16 f16x8"));
  rejects(30, OpKind::pack_codes, {i32({5, 192}), f16({5, 64}), i32({5, 64})},
          codes(1024, "int6 g16 f16x8"));
  rejects(30, OpKind::pack_codes, {i32({5, 127}), f16({5, 8})}, codes(1024, "int4 g128 f16"));
  rejects(30, OpKind::pack_codes, {i32({5, 128}), f32({5, 8})}, codes(1024, "int4 g128 f16"));
  rejects(30, OpKind::pack_codes, {i32({5, 128}), f16({5, 7})}, codes(1024, "int4 g128 f16"));
  rejects(30, OpKind::pack_codes, {i32({kN, 128}), f16({kN, 8})}, codes(1024, "int4 g128 f16"));
  rejects(30, OpKind::pack_codes, {i32({5, 128}), f16({5, 8}), i32({5, 8})},
          codes(1024, "int4 g128 f16"));
  rejects(30, OpKind::pack_codes, {i32({5, 128}), f16({5, 8}), f16({5, 8})},
          codes(1024, "int4 g128 f16 zeros"));
  gives(OpKind::dequantize, {i32({5, 132})}, codes(1024, "int4 g128 f16"), f32({5, 1024}));
  gives(OpKind::dequantize, {i32({0, 68})}, codes(3, "e4m3 row bf16"), f32({0, 3}));
  gives(OpKind::dequantize, {i32({5, 36})}, codes(256, "iq4nl g32 f16"), f32({5, 256}));
  rejects(30, OpKind::dequantize, {i32({5, 131})}, codes(1024, "int4 g128 f16"));
  rejects(30, OpKind::dequantize, {f32({5, 132})}, codes(1024, "int4 g128 f16"));
  gives(OpKind::dequantize, {i32({kN, 3, 132})}, codes(1024, "int4 g128 f16"), f32({kN, 3, 1024}));
  rejects(30, OpKind::dequantize, {i32({132})}, codes(1024, "int4 g128 f16"));
  rejects(30, OpKind::dequantize, {i32({5, 132})}, codes(kN, "int4 g128 f16"));
  rejects(30, OpKind::dequantize, {i32({5, 0})}, codes(0, "int4 g128 f16"));
  rejects(30, OpKind::dequantize, {i32({5, 0})}, codes(int64_t{1} << 40, "int4 g128 f16"));
  for (const char* text :
       {"", "int4", "int4 g128", "int3 g128 f16", "int4 g12 f16", "int4 g128 i32", "int4  g128 f16",
        "int4 g128 f16 ", "int4 g128 f16 minima zeros", "e4m3 row f32 zeros", "INT4 g128 f16",
        "int4 row f16x6", "int8 g32 f16x6", "int4 g32 f16x6 zeros", "int4 g32 f16x8 minima",
        "int4 g32 bf16x6", "int7 g32 f16"})
    rejects(30, OpKind::dequantize, {i32({5, 132})}, codes(1024, text));
}

TEST_CASE("C31 quantized_linear") {
  const auto attrs = [](int64_t size, int64_t splits) {
    return with(AttrName::size, Dim(size))
        .set(AttrName::splits, splits)
        .set(AttrName::codes, std::string("int4 g128 f16"));
  };
  const OpKind kind = OpKind::quantized_linear;
  gives(kind, {f16({8, 1024}), i32({5, 132})}, attrs(1024, 2), f16({8, 5}));
  gives(kind, {f32({kFew, 1024}), i32({5, 132}), f32({5})}, attrs(1024, 1), f32({kFew, 5}));
  gives(kind, {f16({8, 1024}), i32({5, 132})}, attrs(1024, 2).set(AttrName::dtype, DType::f32),
        f32({8, 5}));
  rejects(31, kind, {f16({8, 1024}), i32({5, 132})},
          attrs(1024, 2).set(AttrName::dtype, DType::bf16));
  for (int64_t splits : {-1, 0, 3, 32})
    rejects(31, kind, {f16({8, 1024}), i32({5, 132})}, attrs(1024, splits));
  rejects(31, kind, {f16({8, 1016}), i32({5, 132})}, attrs(1024, 1));
  rejects(31, kind, {f16({8, 1020}), i32({5, 132})}, attrs(1020, 1));
  rejects(31, kind, {f16({8, 1024}), i32({5, 131})}, attrs(1024, 1));
  rejects(31, kind, {f16({8, 1024}), i32({0, 132})}, attrs(1024, 1));
  rejects(31, kind, {f16({9, 1024}), i32({5, 132})}, attrs(1024, 1));
  rejects(31, kind, {f16({kN, 1024}), i32({5, 132})}, attrs(1024, 1));
  rejects(31, kind, {f16({1024}), i32({5, 132})}, attrs(1024, 1));
  rejects(31, kind, {f16({8, 1024}), i32({5, 132}), f32({5})}, attrs(1024, 1));
  rejects(31, kind, {i32({8, 1024}), i32({5, 132})}, attrs(1024, 1));
}

TEST_CASE("C32 tiled_codes") {
  const auto attrs = [](const char* format) {
    return with(AttrName::size, Dim(1024)).set(AttrName::codes, std::string(format));
  };
  const Order order = Order::tiled_codes;
  const Attributes int4 = attrs("int4 g128 f16");
  const auto with_more = [&](AttrName name, AttrValue value) {
    return Attributes(int4).set(name, std::move(value));
  };
  gives(order, {f16({kN, 1024}), i32({5, 132})}, int4, f16({kN, 5}));
  gives(order, {f16({2, 3, 1024}), i32({5, 132}), f16({5})}, int4, f16({2, 3, 5}));
  gives(order, {f16({kN, 1024}), i32({5, 132})}, with_more(AttrName::dtype, DType::f32),
        f32({kN, 5}));
  rejects(31, order, {f16({kN, 1016}), i32({5, 132})}, int4);
  rejects(31, order, {f16({kN, 1024}), i32({5, 131})}, int4);
  rejects(32, order, {f32({kN, 1024}), i32({5, 132})}, int4);
  rejects(32, order, {f16({kN, 1024}), i32({5, 132})}, with_more(AttrName::splits, int64_t{1}));
  gives(order, {f16({kN, 1024}), i32({5, 136})}, attrs("int4 g128 f16 minima"), f16({kN, 5}));
}

TEST_CASE("C35 grouped_linear") {
  const OpKind kind = OpKind::grouped_linear;
  gives(kind, {f16({kN, 16}), f16({3, 5, 16}), i32({3})}, {}, f16({kN, 5}));
  rejects(35, kind, {f16({kN, 16}), f16({3, 5, 16}), i32({2})});
  rejects(35, kind, {f16({kN, 16}), f16({3, 5, 16}), i32({3, 1})});
  rejects(35, kind, {f16({kN, 16}), f16({3, 5, 16}), f16({3})});
  rejects(35, kind, {f16({kN, 16}), f16({5, 16}), i32({5})});
  gives(kind, {f16({2, kN, 16}), f16({3, 5, 16}), i32({3})}, {}, f16({2, kN, 5}));
  rejects(35, kind, {f16({16}), f16({3, 5, 16}), i32({3})});
  rejects(35, kind, {f16({kN, 16}), f16({3, 5, 24}), i32({3})});
  rejects(35, kind, {f16({kN, 12}), f16({3, 5, 12}), i32({3})});
  rejects(35, kind, {f32({kN, 16}), f32({3, 5, 16}), i32({3})});
  rejects(35, kind, {f16({kN, 16}), f16({0, 5, 16}), i32({0})});
  rejects(35, kind, {f16({kN, 16}), f16({3, 0, 16}), i32({3})});
  rejects(35, kind, {f16({kN, 16}), f16({1 << 16, 1 << 15, 16}), i32({1 << 16})});
}

TEST_CASE("C36 grouped_outer") {
  const OpKind kind = OpKind::grouped_outer;
  gives(kind, {f16({kN, 16}), f16({kN, 24}), i32({3})}, {}, f16({3, 16, 24}));
  rejects(36, kind, {f16({kN, 16}), f16({5, 24}), i32({3})});
  rejects(36, kind, {f16({kN, 16}), f16({kN, 24}), i32({3, 1})});
  rejects(36, kind, {f16({kN, 16}), f16({kN, 24}), f16({3})});
  gives(kind, {f16({kN, 2, 16}), f16({kN, 2, 24}), i32({3})}, {}, f16({3, 16, 24}));
  rejects(36, kind, {f16({2, kN, 16}), f16({kN, 24}), i32({3})});
  rejects(36, kind, {f16({kN, 2, 16}), f16({kN, 3, 24}), i32({3})});
  rejects(36, kind, {f16({kN, 12}), f16({kN, 24}), i32({3})});
  rejects(36, kind, {f16({kN, 16}), f16({kN, 20}), i32({3})});
  rejects(36, kind, {f32({kN, 16}), f32({kN, 24}), i32({3})});
  rejects(36, kind, {f16({kN, 16}), f16({kN, 24}), i32({0})});
  rejects(36, kind, {f16({kN, kN}), f16({kN, 24}), i32({3})});
  rejects(36, kind, {f16({kN, 1 << 15}), f16({kN, 24}), i32({1 << 16})});
}

TEST_CASE("C37 expert_sum") {
  const OpKind kind = OpKind::expert_sum;
  gives(kind, {f16({kN, 3, kM}), f16({kN, 3})}, {}, f16({kN, kM}));
  gives(kind, {f16({kN, 64, 5}), f32({kN, 64})}, {}, f16({kN, 5}));
  rejects(37, kind, {f16({kN, 65, 5}), f32({kN, 65})});
  rejects(37, kind, {f16({kN, 0, 5}), f32({kN, 0})});
  rejects(37, kind, {f16({kN, kM, 5}), f32({kN, kM})});
  rejects(37, kind, {f16({kN, 3, 5}), f16({kN, 2})});
  rejects(37, kind, {f32({kN, 3, 5}), f16({kN, 3})});
  rejects(37, kind, {f16({kN, 3}), f16({kN, 3})});
  rejects(37, kind, {i32({kN, 3, 5}), i32({kN, 3})});
}

TEST_CASE("C38 top_k") {
  const auto of = [](int64_t count) { return with(AttrName::count, count); };
  gives(OpKind::top_k, {f16({kN, 128})}, of(8), i32({kN, 8}));
  gives(OpKind::top_k, {f32({3, 1})}, of(1), i32({3, 1}));
  gives(OpKind::top_k, {f32({3, 1024})}, of(64), i32({3, 64}));
  rejects(1, OpKind::top_k, {f32({kN, 128})});
  for (const int64_t count : {int64_t{0}, int64_t{-1}, int64_t{9}, INT64_MAX})
    rejects(38, OpKind::top_k, {f32({kN, 8})}, of(count));
  rejects(38, OpKind::top_k, {f32({kN, 128})}, of(65));
  for (const TensorType& bad : {f32({kN, 1025}), f32({kN, 0}), f32({kN, kM}), f32({128}),
                                f32({2, kN, 128}), i32({kN, 128})})
    rejects(38, OpKind::top_k, {bad}, of(1));
}

TEST_CASE("C43 all_reduce") {
  const auto of = [](std::string group) { return with(AttrName::group, std::move(group)); };
  gives(OpKind::all_reduce, {f16({kN, 3})}, of("tp"), f16({kN, 3}));
  gives(OpKind::all_reduce, {i32({2})}, of("tp"), i32({2}));
  rejects(1, OpKind::all_reduce, {f16({kN, 3})});
  rejects(43, OpKind::all_reduce, {f16({kN, 3})}, of(""));
  for (const DType dtype : {DType::i1, DType::i64})
    rejects(43, OpKind::all_reduce, {TensorType{dtype, {3}}}, of("tp"));
}

TEST_CASE("C39 expert_linear") {
  const OpKind kind = OpKind::expert_linear;
  gives(kind, {f16({kN, 16}), f16({4, 5, 16}), i32({kN, 3})}, {}, f16({kN, 3, 5}));
  gives(kind, {f32({kN, 3, 15}), f32({4, 5, 15}), i32({kN, 3})}, {}, f32({kN, 3, 5}));
  rejects(39, kind, {f16({kN, 2, 16}), f16({4, 5, 16}), i32({kN, 3})});
  rejects(39, kind, {f16({kM, 16}), f16({4, 5, 16}), i32({kN, 3})});
  rejects(39, kind, {f16({kN, 16}), f16({4, 5, 24}), i32({kN, 3})});
  rejects(39, kind, {f16({kN, 16}), f32({4, 5, 16}), i32({kN, 3})});
  rejects(39, kind, {f16({kN, 16}), f16({5, 16}), i32({kN, 3})});
  rejects(39, kind, {f16({kN, 16}), f16({0, 5, 16}), i32({kN, 3})});
  rejects(39, kind, {f16({kN, 16}), f16({4, kM, 16}), i32({kN, 3})});
  rejects(39, kind, {f16({kN, 16}), f16({4, 5, 16}), i32({kN, 0})});
  rejects(39, kind, {f16({kN, 16}), f16({4, 5, 16}), i32({kN, kM})});
  rejects(39, kind, {f16({kN, 16}), f16({4, 5, 16}), f16({kN, 3})});
  rejects(39, kind, {f16({kN, 16}), f16({4, 5, 16}), i32({kN})});
  constexpr int64_t kLarge = int64_t{1} << 30;
  gives(kind, {f16({kN, 1}), f16({1, kLarge, 1}), i32({kN, 1})}, {}, f16({kN, 1, kLarge}));
  rejects(39, kind, {f16({kN, 1}), f16({1, kLarge + 1, 1}), i32({kN, 1})});
  rejects(39, kind, {f16({kN, kLarge + 1}), f16({1, 1, kLarge + 1}), i32({kN, 1})});
}

TEST_CASE("C40 sorts of numbers") {
  const auto of = [](int64_t count) { return with(AttrName::count, count); };
  for (const OpKind kind : {OpKind::sorted_positions, OpKind::sorted_places, OpKind::run_ends}) {
    const bool ends = kind == OpKind::run_ends;
    gives(kind, {i32({kN, 8})}, of(128), ends ? i32({128}) : i32({kN, 8}));
    gives(kind, {i32({0, 1})}, of(1024), ends ? i32({1024}) : i32({0, 1}));
    rejects(1, kind, {i32({kN, 8})});
    for (const int64_t count : {int64_t{0}, int64_t{-1}, int64_t{1025}, INT64_MAX})
      rejects(40, kind, {i32({kN, 8})}, of(count));
    for (const TensorType& bad :
         {i32({kN}), i32({kN, kM}), i32({kN, 0}), i32({2, kN, 8}), f32({kN, 8})})
      rejects(40, kind, {bad}, of(4));
    gives(kind, {i32({(int64_t{1} << 30) - 1, 2})}, of(1),
          ends ? i32({1}) : i32({(int64_t{1} << 30) - 1, 2}));
    rejects(40, kind, {i32({int64_t{1} << 30, 2})}, of(1));
  }
}

TEST_CASE("C41 expert_linear of codes") {
  const OpKind kind = OpKind::expert_linear;
  const auto codes = [](int64_t size) {
    return with(AttrName::size, Dim(size)).set(AttrName::codes, std::string("int4 g128 f16"));
  };
  const Types good = {f16({kN, 1024}), i32({4, 5, 132}), i32({kN, 3})};
  gives(kind, good, codes(1024), f16({kN, 3, 5}));
  gives(kind, {f32({kN, 3, 1020}), i32({4, 5, 132}), i32({kN, 3})}, codes(1020), f32({kN, 3, 5}));
  rejects(41, kind, good, with(AttrName::size, Dim(1024)));
  rejects(41, kind, good, with(AttrName::codes, std::string("int4 g128 f16")));
  rejects(41, kind, good, codes(1024).set(AttrName::codes, std::string("int4")));
  rejects(41, kind, {f16({kN, 1024}), i32({4, 5, 131}), i32({kN, 3})}, codes(1024));
  rejects(41, kind, {f16({kN, 1024}), i32({5, 132}), i32({kN, 3})}, codes(1024));
  rejects(41, kind, {f16({kN, 1024}), f16({4, 5, 132}), i32({kN, 3})}, codes(1024));
  rejects(39, kind, {f16({kN, 1016}), i32({4, 5, 132}), i32({kN, 3})}, codes(1024));
  rejects(39, kind, {i32({kN, 1024}), i32({4, 5, 132}), i32({kN, 3})}, codes(1024));
}

TEST_CASE("C21 sample") {
  const Types good = {f16({kN, 100}), f32({kN}), i32({kN}), f32({kN}), i32({kN}), i32({kN})};
  gives(OpKind::sample, good, {}, i32({kN}));
  const auto replaced = [&](size_t operand, TensorType type) {
    Types types = good;
    types[operand] = std::move(type);
    return types;
  };
  gives(OpKind::sample, replaced(0, f32({kN, 1})), {}, i32({kN}));
  gives(OpKind::sample, replaced(0, f32({kN, 1 << 20})), {}, i32({kN}));
  for (const TensorType& bad : {f16({kN}), f16({kN, 0}), f16({kN, kM}), f16({kN, (1 << 20) + 1}),
                                f16({kM, 100}), i32({kN, 100}), f16({kN, 100, 1})})
    rejects(21, OpKind::sample, replaced(0, bad));
  for (size_t operand = 1; operand < 6; ++operand) {
    const bool real = good[operand].dtype == DType::f32;
    for (const TensorType& bad :
         {real ? i32({kN}) : f32({kN}), real ? f16({kN}) : i1({kN}),
          TensorType{good[operand].dtype, {kM}}, TensorType{good[operand].dtype, {kN, 1}},
          TensorType{good[operand].dtype, {}}})
      rejects(21, OpKind::sample, replaced(operand, bad));
  }
}

TEST_CASE("C22 cumulative_sum") {
  const auto sum = [](int64_t axis) { return with(AttrName::axis, axis); };
  gives(OpKind::cumulative_sum, {f16({kN, 7, kM})}, sum(1), f16({kN, 7, kM}));
  gives(OpKind::cumulative_sum, {f32({5})}, sum(0).set(AttrName::reverse, int64_t{1}), f32({5}));
  gives(OpKind::cumulative_sum, {i32({kN, 0})},
        sum(0).set(AttrName::reverse, int64_t{0}).set(AttrName::exclusive, int64_t{1}),
        i32({kN, 0}));
  gives(OpKind::cumulative_sum, {f32({3, 1 << 20})}, sum(1), f32({3, 1 << 20}));
  gives(OpKind::cumulative_sum, {f32({3, 1 << 21})}, sum(0), f32({3, 1 << 21}));
  rejects(1, OpKind::cumulative_sum, {f32({5})});
  rejects(1, OpKind::cumulative_sum, {f32({5})}, sum(0).set(AttrName::begin, int64_t{0}));
  for (int64_t axis : {int64_t{-1}, int64_t{2}, INT64_MAX})
    rejects(8, OpKind::cumulative_sum, {f32({5, 6})}, sum(axis));
  rejects(8, OpKind::cumulative_sum, {f32({})}, sum(0));
  rejects(22, OpKind::cumulative_sum, {i1({5})}, sum(0));
  rejects(22, OpKind::cumulative_sum, {f32({3, (1 << 20) + 1})}, sum(1));
  for (AttrName name : {AttrName::reverse, AttrName::exclusive})
    for (int64_t value : {int64_t{-1}, int64_t{2}, INT64_MIN})
      rejects(22, OpKind::cumulative_sum, {f32({5})}, sum(0).set(name, value));
}

}  // namespace sinter::infer_test
