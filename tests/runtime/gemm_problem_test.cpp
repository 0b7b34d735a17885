// A step's sizes and addresses as one canonical problem at its places.
#include "runtime/cuda/gemm_problem.h"

#include <doctest/doctest.h>

namespace sinter::gemm_problem_test {
namespace {

constexpr CudaAddress kA = 0x10000, kB = 0x20000, kC = 0x30000;

GemmOperands operands(DType dtype) { return {{kA, dtype}, {kB, dtype}, {kC, dtype}, {}}; }

GemmStep dense_step(SymExpr m, int64_t n, int64_t k) {
  GemmStep step;
  step.m = m, step.n = n, step.k = k;
  step.a = {0, 0, k, 1};
  step.b = {1, 0, 1, k};  // a linear layer's weight
  step.c = {2, 0, n, 1};
  return step;
}

GemmCalls made(const GemmStep& step, const GemmOperands& at, llvm::ArrayRef<int64_t> values = {}) {
  auto calls = make_gemm_calls(step, at, {}, values);
  REQUIRE_MESSAGE(calls.has_value(), (calls ? "" : calls.error().message()));
  return *calls;
}

TEST_CASE("the key shows all that a decision depends on") {
  GemmOperands at = operands(DType::f16);
  at.bias = GemmOperands::Operand{0x40008, DType::f32};
  GemmStep step = dense_step(3, 4096, 64);
  step.bias = 3;
  step.c.offset = 1;
  const GemmCalls calls = made(step, at);
  CHECK(calls.problem.key() ==
        "1x3x4096x64 A f16 64,1,0@16 B f16 1,64,0@16 C f16 4096,1,0@2 bias f32@8");
  REQUIRE(calls.places.size() == 1);
  CHECK(calls.places[0].a == kA);
  CHECK(calls.places[0].c == kC + 2);
  CHECK(calls.places[0].bias == 0x40008);
}

TEST_CASE("sizes follow the symbols") {
  const GemmStep step = dense_step(SymExpr(Dim(SymbolId{0})), 8, 4);
  CHECK(made(step, operands(DType::f32), {5}).problem.m == 5);
  CHECK(made(step, operands(DType::f32), {0}).places.empty());
}

TEST_CASE("the longest loop is the batch, the others are places") {
  GemmStep step = dense_step(2, 8, 4);
  step.loops = {{3, 100, 50, 1000}, {5, 20, 7, 16}, {2, 4, 0, 500}};
  GemmOperands at = operands(DType::f32);
  at.b.dtype = DType::f16;
  const GemmCalls calls = made(step, at);
  CHECK(calls.problem.batch == 5);
  CHECK(calls.problem.a.batch_stride == 20);
  CHECK(calls.problem.b.batch_stride == 7);
  CHECK(calls.problem.c.batch_stride == 16);
  REQUIRE(calls.places.size() == 6);
  CHECK(calls.places[1].a == kA + 4 * 4);
  CHECK(calls.places[1].b == kB);
  CHECK(calls.places[1].c == kC + 4 * 500);
  CHECK(calls.places[2].a == kA + 4 * 100);
  CHECK(calls.places[5].a == kA + 4 * 204);
  CHECK(calls.places[5].b == kB + 2 * 100);
  CHECK(calls.places[5].c == kC + 4 * 2500);
  // b's copies are 14 bytes apart.
  CHECK(calls.problem.a.alignment == 16);
  CHECK(calls.problem.b.alignment == 2);
}

TEST_CASE("a residual moves as the result does, and parts problems as an activation does") {
  GemmStep step = dense_step(2, 8, 4);
  const GemmProblem plain = made(step, operands(DType::f16)).problem;
  step.residual = 4;
  step.c.offset = 16;
  step.loops = {{3, 8, 0, 16}, {5, 20, 7, 64}};
  GemmOperands at = operands(DType::f16);
  at.residual = 0x50004;
  const GemmCalls calls = made(step, at);
  CHECK(calls.problem.residual == 4);
  REQUIRE(calls.places.size() == 3);
  CHECK(calls.places[0].residual == 0x50004 + 2 * 16);
  CHECK(calls.places[2].residual == 0x50004 + 2 * 48);
  CHECK(calls.problem.key().ends_with(" residual @4"));
  CHECK(made(dense_step(2, 8, 4), operands(DType::f16)).problem == plain);

  step = dense_step(2, 8, 4);
  step.activation = Activation::gelu_tanh;
  const GemmProblem gelu = made(step, operands(DType::f16)).problem;
  CHECK(gelu != plain);
  CHECK(gelu.key() == plain.key() + " gelu_tanh");
}

TEST_CASE("a loop of no rounds, wherever it stands, leaves nothing to do") {
  GemmStep step = dense_step(2, 8, 4);
  step.loops = {{3, 8, 0, 16}, {0, 8, 0, 16}};
  CHECK(made(step, operands(DType::f32)).places.empty());
  step.loops = {{3, 8, 0, 16}};
  step.n = 0;
  CHECK(made(step, operands(DType::f32)).places.empty());
}

TEST_CASE("a loop of one round has no strides") {
  GemmStep step = dense_step(2, 8, 4);
  step.loops = {{1, 3, 5, 7}};
  CHECK(made(step, operands(DType::f32)).problem ==
        made(dense_step(2, 8, 4), operands(DType::f32)).problem);
}

TEST_CASE("strides of extents of 1 do not part problems") {
  GemmStep decode = dense_step(1, 8, 4), sliced = decode;
  sliced.a.row_stride = 4096;  // a row out of a larger matrix
  sliced.c.row_stride = 77;
  CHECK(made(decode, operands(DType::f16)).problem == made(sliced, operands(DType::f16)).problem);

  GemmStep column = dense_step(6, 1, 4);
  column.c.row_stride = 10;  // a column out of a matrix in row order: its stride counts
  const GemmProblem problem = made(column, operands(DType::f16)).problem;
  CHECK(problem.c.row_stride == 10);
  CHECK(problem.c.column_stride == 1);
  column.c.row_stride = 1;
  column.c.column_stride = 99;
  CHECK(made(column, operands(DType::f16)).problem.c.column_stride == 6);
}

TEST_CASE("lengths of a class have one key, which shows the class") {
  const SymExpr tokens{Dim(SymbolId{0})};
  const auto problem = [&](const GemmStep& step, int64_t length) {
    return made(step, operands(DType::f16), {length, length}).problem;
  };
  const GemmProblem odd = problem(dense_step(tokens, 4096, 64), 2000);
  CHECK(odd.open == GemmExtent::m);
  CHECK(odd.key() == "1x2000x4096x64 A f16 64,1,0@16 B f16 1,64,0@16 C f16 4096,1,0@16");
  CHECK(odd.class_key() ==
        "1x1793..2048x4096x64 A f16 64,1,0@16 B f16 1,64,0@16 C f16 4096,1,0@16");
  CHECK(problem(dense_step(tokens, 4096, 64), 2048).class_key() == odd.class_key());
  CHECK(problem(dense_step(tokens, 4096, 64), 2049).class_key() != odd.class_key());
  CHECK(odd.longest() == problem(dense_step(2048, 4096, 64), 2048));

  // Decode steps, and products of fixed size.
  for (int64_t length : {1, 16, 64}) {
    CHECK(problem(dense_step(tokens, 8, 64), length) == problem(dense_step(length, 8, 64), 0));
    CHECK(problem(dense_step(tokens, 8, 64), length).class_key() ==
          problem(dense_step(length, 8, 64), 0).key());
  }
  CHECK(problem(dense_step(2000, 8, 64), 0).class_key() ==
        problem(dense_step(2000, 8, 64), 0).key());

  // A gradient of weights sums over the tokens.
  GemmStep gradient = dense_step(64, 32, 1);
  gradient.k = tokens;
  gradient.a = {0, 0, 1, 64};
  gradient.b = {1, 0, 32, 1};
  CHECK(problem(gradient, 100).class_key().starts_with("1x64x32x97..112 A f16 1,64,0@16"));
  // A column of 2000 rows: its canonical stride is also the class's stride.
  CHECK(problem(dense_step(tokens, 1, 64), 2000).class_key() ==
        problem(dense_step(tokens, 1, 64), 1801).class_key());
}

TEST_CASE("a product with more than one open extent, open strides or an open loop has no class") {
  const SymExpr tokens{Dim(SymbolId{0})}, keys{Dim(SymbolId{1})};
  const auto open = [&](const GemmStep& step) {
    return made(step, operands(DType::f16), {100, 200}).problem.open;
  };
  GemmStep scores = dense_step(tokens, 1, 64);
  CHECK(open(scores) == GemmExtent::m);
  scores.n = keys;
  CHECK(open(scores) == GemmExtent::none);
  GemmStep strided = dense_step(tokens, 8, 64);
  strided.c = {2, 0, 1, tokens};
  CHECK(open(strided) == GemmExtent::none);
  GemmStep copies = dense_step(tokens, 8, 64);
  copies.loops = {{2, 0, 512, 16}};
  CHECK(open(copies) == GemmExtent::m);
  copies.loops[0].count = keys;
  CHECK(open(copies) == GemmExtent::none);
  GemmStep last = dense_step(tokens, 8, 64);
  last.a.offset = keys * SymExpr(64);
  CHECK(open(last) == GemmExtent::m);
}

TEST_CASE("sizes beyond 63 bits and endless repetitions are errors") {
  GemmStep step = dense_step(SymExpr(Dim(SymbolId{0})), 8, 4);
  step.a.offset = SymExpr(Dim(SymbolId{0})) * SymExpr(INT64_MAX / 2);
  const Symbol symbol{"N", 1, 1000};
  auto calls = make_gemm_calls(step, operands(DType::f32), symbol, {3});
  REQUIRE(!calls);
  CHECK(calls.error().message() ==
        "a size of the product, 4611686018427387903*N, is not of 0..2^63-1");
  step = dense_step(2, 8, 4);
  step.loops = {{1000000, 0, 0, 16}, {100000, 0, 0, 0}};
  calls = make_gemm_calls(step, operands(DType::f32), {}, {});
  REQUIRE(!calls);
  CHECK(calls.error().message() == "the product is repeated more than 65536 times");
}

}  // namespace
}  // namespace sinter::gemm_problem_test
