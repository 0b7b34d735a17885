// A problem's call in the library's terms, carried out as the library defines it, gives the
// product.
#include "runtime/cuda/cublaslt_call.h"

#include <doctest/doctest.h>

#include <cstring>

#include "runtime/evaluate/host_view.h"
#include "runtime/gemm_case.h"

namespace sinter::cublaslt_call_test {
namespace {

float load_at(CudaAddress base, DType dtype, int64_t index) {
  float value = 0;
  load_run(storage_of(dtype), reinterpret_cast<const std::byte*>(base) + index * whole_bytes(dtype),
           1, 1, &value);
  return value;
}

/// Element (row, column) of op(matrix), in column order.
float element(const CublasLtCall::Matrix& matrix, CudaAddress base, int64_t copy, int64_t row,
              int64_t column) {
  if (matrix.transposed) std::swap(row, column);
  REQUIRE(row < matrix.rows);
  REQUIRE(column < matrix.columns);
  return load_at(base, matrix.dtype, copy * matrix.batch_stride + row + column * matrix.leading);
}

/// Computes what cublasLtMatmul does with the call at one place; sums are exact.
void carry_out(const CublasLtCall& call, const GemmPlace& place) {
  const CudaAddress a = call.swapped ? place.b : place.a, b = call.swapped ? place.a : place.b;
  const int64_t depth = call.a.transposed ? call.a.rows : call.a.columns;
  CHECK(depth == (call.b.transposed ? call.b.columns : call.b.rows));
  CHECK(!call.d.transposed);
  for (const CublasLtCall::Matrix* matrix : {&call.a, &call.b, &call.d})
    CHECK(matrix->leading >= matrix->rows);
  for (int64_t copy = 0; copy < call.batch; ++copy)
    for (int64_t i = 0; i < call.d.rows; ++i)
      for (int64_t j = 0; j < call.d.columns; ++j) {
        float sum = 0;
        for (int64_t p = 0; p < depth; ++p)
          sum += element(call.a, a, copy, i, p) * element(call.b, b, copy, p, j);
        if (call.bias) sum += load_at(place.bias, call.bias->dtype, i);
        const int64_t at = copy * call.d.batch_stride + i + j * call.d.leading;
        if (call.residual) sum += load_at(place.residual, call.d.dtype, at);
        sum = activated(call.activation, sum);
        store_run(&sum, 1, storage_of(call.d.dtype),
                  reinterpret_cast<std::byte*>(place.c) + at * whole_bytes(call.d.dtype));
      }
}

GemmCase::Buffer expected_result(const GemmCase& test) {
  GemmCase::Buffer c = test.c;
  test.for_each([&](const GemmCase::Element& e) {
    float sum = 0;
    for (size_t p = 0; p < e.a.size(); ++p) sum += e.a[p] * e.b[p];
    write_element(c, e.index, activated(test.step.activation, sum + e.bias + e.residual));
  });
  return c;
}

CudaAddress address(std::vector<std::byte>& bytes) {
  return reinterpret_cast<CudaAddress>(bytes.data());
}

bool column_order(const GemmProblem::Operand& c, const GemmProblem& p) {
  return c.row_stride == 1 && (p.n == 1 || c.column_stride >= p.m);
}

TEST_CASE("all orders of all operands, copies, places, epilogues: the call computes the product") {
  Random random(20);
  int called = 0, swapped = 0, transposed[2] = {}, batched = 0, biased = 0, repeated = 0;
  int residual = 0, activated = 0;
  for (int i = 0; i < 3000; ++i) {
    GemmCase test =
        random_gemm_case(random, {.integers = true, .epilogues = i % 2 == 0, .most = 9});
    CAPTURE(test.text());
    const auto calls =
        make_gemm_calls(test.step,
                        test.at(address(test.a.bytes), address(test.b.bytes), address(test.c.bytes),
                                address(test.bias.bytes), address(test.residual.bytes)),
                        {}, {});
    REQUIRE(calls.has_value());
    const GemmProblem& problem = calls->problem;
    const auto call = cublaslt_call(problem);
    // The library supports all of these but a bias along the lines of a result in column order.
    CHECK(call.has_value() == !(problem.bias && column_order(problem.c, problem)));
    if (!call) continue;
    const GemmCase::Buffer expected = expected_result(test);
    for (const GemmPlace& place : calls->places) carry_out(*call, place);
    CHECK(test.c.bytes == expected.bytes);
    ++called;
    swapped += call->swapped;
    transposed[0] += call->a.transposed;
    transposed[1] += call->b.transposed;
    batched += call->batch > 1;
    biased += call->bias.has_value();
    residual += call->residual.has_value();
    activated += call->activation != Activation::none;
    repeated += calls->places.size() > 1;
  }
  for (int seen : {swapped, called - swapped, transposed[0], called - transposed[0], transposed[1],
                   called - transposed[1], batched, biased, residual, activated, repeated})
    CHECK(seen > 200);
}

GemmProblem dense(int64_t m, int64_t n, int64_t k, DType dtype) {
  GemmProblem problem;
  problem.m = m, problem.n = n, problem.k = k;
  problem.a = {dtype, k, 1, 0, 16};
  problem.b = {dtype, n, 1, 0, 16};
  problem.c = {dtype, n, 1, 0, 16};
  return problem;
}

TEST_CASE("what the library does not take") {
  const GemmProblem taken = dense(4, 8, 16, DType::f16);
  REQUIRE(cublaslt_call(taken).has_value());
  const auto refused = [&](auto&& change) {
    GemmProblem problem = taken;
    change(problem);
    return !cublaslt_call(problem).has_value();
  };
  CHECK(refused([](GemmProblem& p) { p.k = 0; }));
  CHECK(refused([](GemmProblem& p) { p.b.dtype = DType::bf16; }));
  CHECK(refused([](GemmProblem& p) { p.c.dtype = DType::bf16; }));
  CHECK(refused([](GemmProblem& p) { p.a.dtype = p.b.dtype = p.c.dtype = DType::i32; }));
  CHECK(refused([](GemmProblem& p) { p.a.column_stride = 2; }));
  CHECK(refused([](GemmProblem& p) { p.a.row_stride = 15; }));  // lines overlap
  CHECK(refused([](GemmProblem& p) { p.b.row_stride = 0; }));   // a repeated line
  CHECK(refused([](GemmProblem& p) { p.batch = int64_t{1} << 31; }));
  CHECK(!refused([](GemmProblem& p) { p.c.dtype = DType::f32; }));
  CHECK(!refused([](GemmProblem& p) { p.bias = GemmProblem::Bias{DType::f16, 2}; }));
  CHECK(refused([](GemmProblem& p) { p.bias = GemmProblem::Bias{DType::f32, 4}; }));
  CHECK(!refused([](GemmProblem& p) { p.a.row_stride = 17; }));
}

}  // namespace
}  // namespace sinter::cublaslt_call_test
