// The tuner on a driver that is made up: what it takes is the fastest of what is right.
#include "runtime/cuda/gemm_tuner.h"

#include <doctest/doctest.h>

#include "runtime/cuda/known_product.h"
#include "runtime/cuda/launch.h"
#include "runtime/evaluate/host_view.h"
#include "runtime/fake_driver.h"
#include "support/result.h"

namespace sinter::gemm_tuner_test {
namespace {

CudaDevicePtr device() {
  static const FakeDriver fake(SINTER_FAKE_DRIVER);
  static const CudaDevicePtr opened = value(CudaDevice::open(0));
  return opened;
}

/// The fault of a test's implementation of a product.
enum class Fault : uint8_t { none, half_of_k, last_element, gap };

float read(CudaAddress at, DType dtype, int64_t index) {
  float result = 0;
  load_run(storage_of(dtype), reinterpret_cast<const std::byte*>(at) + index * whole_bytes(dtype),
           1, 1, &result);
  return result;
}
void write(CudaAddress at, DType dtype, int64_t index, float value) {
  store_run(&value, 1, storage_of(dtype),
            reinterpret_cast<std::byte*>(at) + index * whole_bytes(dtype));
}

CudaAddress address(const std::vector<std::byte>& bytes) {
  return reinterpret_cast<CudaAddress>(bytes.data());
}

/// The product on the host, where the made-up device's memory is.
void multiply(const GemmProblem& p, const GemmPlace& at, Fault fault) {
  const int64_t k = fault == Fault::half_of_k ? p.k / 2 : p.k;
  for (int64_t copy = 0; copy < p.batch; ++copy)
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j) {
        const auto index = [&](const GemmProblem::Operand& x, int64_t row, int64_t column) {
          return copy * x.batch_stride + row * x.row_stride + column * x.column_stride;
        };
        float sum = 0;
        for (int64_t l = 0; l < k; ++l)
          sum += read(at.a, p.a.dtype, index(p.a, i, l)) * read(at.b, p.b.dtype, index(p.b, l, j));
        if (p.bias) sum += read(at.bias, p.bias->dtype, j);
        if (p.residual) sum += read(at.residual, p.c.dtype, index(p.c, i, j));
        const bool last = copy == p.batch - 1 && i == p.m - 1 && j == p.n - 1;
        if (fault == Fault::last_element && last) continue;
        write(at.c, p.c.dtype, index(p.c, i, j), activated(p.activation, sum));
      }
  if (fault == Fault::gap) write(at.c, p.c.dtype, p.n, 1);
}

/// An implementation that takes so long.
class Implementation {
 public:
  Implementation(const GemmProblem& problem, double milliseconds, Fault fault)
      : problem_(&problem), fault_(fault) {
    kernel_.parameters = 6;
    kernel_.milliseconds = milliseconds;
    kernel_.run = [](const FakeKernel&, unsigned, const uint64_t* values) {
      const auto& self = *reinterpret_cast<const Implementation*>(values[5]);
      multiply(*self.problem_, {values[0], values[1], values[2], values[3], values[4]},
               self.fault_);
    };
    library_ = value(CudaLibrary::load(device(), kernel_.code(), "product"));
  }
  Implementation(const Implementation&) = delete;

  GemmCandidate candidate() const {
    return [this](const GemmPlace& place, const CudaStream& stream) -> Status {
      GemmPlace at = place;
      SINTER_LET(kernel, library_.kernel("product"));
      const Implementation* self = this;
      void* parameters[] = {&at.a, &at.b, &at.c, &at.bias, &at.residual, &self};
      return launch({.kernel = kernel, .name = "product", .blocks = 1, .threads = 1}, parameters,
                    stream);
    };
  }

 private:
  const GemmProblem* problem_;
  Fault fault_;
  FakeKernel kernel_;
  CudaLibrary library_;
};

/// Rows of C are `gap` elements apart.
GemmProblem linear(DType dtype, int64_t m, int64_t n, int64_t k, int64_t gap = 0) {
  GemmProblem problem;
  problem.m = m, problem.n = n, problem.k = k;
  problem.a = {dtype, k, 1, 0, 16};
  problem.b = {dtype, 1, k, 0, 16};
  problem.c = {dtype, n + gap, 1, 0, 16};
  return problem;
}

TEST_CASE("the fastest implementation is taken") {
  const GemmProblem problem = linear(DType::f16, 3, 5, 40);
  const Implementation slow(problem, 3, Fault::none), fast(problem, 2, Fault::none);
  const Implementation same(problem, 2, Fault::none);
  const FastestGemm fastest =
      value(tune_gemm(device(), problem, {slow.candidate(), fast.candidate(), same.candidate()}));
  CHECK(fastest.candidate == 1);
  CHECK(fastest.seconds == doctest::Approx(0.002 + 0.002 / 16));
}

TEST_CASE("an implementation that is fastest and wrong is dropped for the next fastest") {
  const GemmProblem problem = linear(DType::bf16, 4, 6, 300, 2);
  const Implementation right(problem, 3, Fault::none), slow(problem, 4, Fault::none);
  for (Fault fault : {Fault::half_of_k, Fault::last_element, Fault::gap}) {
    CAPTURE(static_cast<int>(fault));
    const Implementation wrong(problem, 2, fault);
    CHECK(value(tune_gemm(device(), problem,
                          {slow.candidate(), wrong.candidate(), right.candidate()}))
              .candidate == 2);
  }
}

TEST_CASE("beside a wrong one that is much faster, the others are measured after all") {
  const GemmProblem problem = linear(DType::f32, 4, 6, 64);
  const Implementation wrong(problem, 0.001, Fault::half_of_k);
  const Implementation slow(problem, 900, Fault::none), right(problem, 800, Fault::none);
  CHECK(
      value(tune_gemm(device(), problem, {wrong.candidate(), slow.candidate(), right.candidate()}))
          .candidate == 2);
}

TEST_CASE("where every implementation is wrong, the error shows what the last one gave") {
  const GemmProblem problem = linear(DType::f16, 2, 3, 64);
  const Implementation half(problem, 1, Fault::half_of_k), hole(problem, 2, Fault::last_element);
  const auto fastest = tune_gemm(device(), problem, {hole.candidate(), half.candidate()});
  REQUIRE(!fastest);
  CHECK(fastest.error().code == ExitCode::device);
  CHECK(fastest.error().what ==
        "none of 2 implementations computes this product; the last: elements that are wrong in "
        "a product with a known result: 1 of 6; nan instead of 64 in row 1, column 2 of copy 0");
  CHECK(fastest.error().where.starts_with("product 1x2x3x64 A f16"));

  const auto wrong = tune_gemm(device(), problem, {half.candidate()});
  REQUIRE(!wrong);
  CHECK(wrong.error().what.find("6 of 6; 32 instead of 64 in row 0, column 0") !=
        std::string::npos);
}

TEST_CASE("an implementation that fails is left out, whatever it would give") {
  const GemmProblem problem = linear(DType::f32, 2, 3, 8);
  const Implementation right(problem, 1, Fault::none);
  const GemmCandidate broken = [](const GemmPlace&, const CudaStream&) -> Status {
    return fail("not supported", {}, {}, ExitCode::device);
  };
  CHECK(value(tune_gemm(device(), problem, {broken, right.candidate()})).candidate == 1);
  const auto none = tune_gemm(device(), problem, {broken});
  REQUIRE(!none);
  CHECK(none.error().what ==
        "none of 1 implementations computes this product; the last: not supported");
}

TEST_CASE("a right implementation passes with any epilogue, type, size of k and layout") {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (int64_t k : {1, 7, 8, 257, 4096, 4097, 20000, 70000})
      for (Activation activation : {Activation::none, Activation::relu, Activation::gelu_tanh})
        for (int epilogue = 0; epilogue < 4; ++epilogue) {
          GemmProblem problem = linear(dtype, 1, 3, k, 1);
          problem.activation = activation;
          problem.batch = 2;
          problem.a.batch_stride = k + 3;
          problem.c.batch_stride = 4;
          if (epilogue % 2 == 1) problem.bias = GemmProblem::Bias{dtype, 2};
          if (epilogue / 2 == 1) problem.residual = 16;
          CAPTURE(problem.key());
          const KnownProduct known = *known_product(problem);
          const auto filled = [&](int64_t elements, float value) {
            std::vector<std::byte> bytes(static_cast<size_t>(storage_bytes(dtype, elements)));
            for (int64_t i = 0; i < elements; ++i) write(address(bytes), dtype, i, value);
            return bytes;
          };
          const auto a = filled(problem.span_a(), known.a), b = filled(problem.span_b(), 1);
          const auto added = filled(problem.span_c(), known.added);
          std::vector<std::byte> c(static_cast<size_t>(storage_bytes(dtype, problem.span_c())),
                                   kUnwritten);
          multiply(problem, {address(a), address(b), address(c), address(added), address(added)},
                   Fault::none);
          const Status right = check_known_product(problem, known, c);
          CHECK_MESSAGE(right.has_value(), (right ? "" : right.error().message()));
        }
}

TEST_CASE("the known result is the same whether a sum is rounded before its epilogue or not") {
  GemmProblem problem = linear(DType::bf16, 2, 3, 257);
  problem.bias = GemmProblem::Bias{DType::bf16, 16};
  KnownProduct known = *known_product(problem);
  CHECK(known.added == 0);  // bf16 has no 257
  CHECK(known.result == 257);
  problem.k = 11008;
  known = *known_product(problem);
  CHECK(known.added == 11008);
  CHECK(known.result == 22016);
  problem.k = (1 << 24) + 1;
  CHECK(!known_product(problem));
}

}  // namespace
}  // namespace sinter::gemm_tuner_test
