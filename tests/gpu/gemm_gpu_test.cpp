// Matrix products on a device against float64 on the host, in every policy.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "kernels/library.h"
#include "runtime/cuda/gemm.h"
#include "runtime/gemm_case.h"
#include "support/result.h"

namespace sinter {
namespace {

CudaDevicePtr device() {
  static const CudaDevicePtr opened = value(CudaDevice::open(0));
  return opened;
}

std::shared_ptr<CudaGemm> make_gemm(GemmPolicy policy, GemmRecord record = {}) {
  return value(CudaGemm::create(device(), kernel_library(), std::move(record), policy));
}

/// How far a result may be from the sum of its k terms in float64, `exact`, whose absolute values
/// add up to `magnitude`. Every addition may lose 2^-23 of what is summed so far (tensor cores
/// truncate), and as much again where terms are aligned to a larger one; the result is rounded
/// once, or twice where the sum may be rounded before its bias (sums_may_round_twice), a
/// sum that is then no larger than `magnitude`.
double error_bound(DType dtype, size_t k, double exact, double magnitude, bool twice) {
  const double half_ulp = dtype == DType::f32 ? 0x1p-24 : dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
  const double least = dtype == DType::f16 ? 0x1p-25 : 0;  // half the smallest f16
  return static_cast<double>(k + 2) * 0x1p-22 * magnitude +
         half_ulp * (std::abs(exact) + (twice ? magnitude : 0)) + least * (twice ? 2 : 1);
}

/// A case's buffers on the device.
class DeviceCase {
 public:
  explicit DeviceCase(const GemmCase& test) : test_(test) {
    stream_ = value(CudaStream::create(device()));
    upload(test.a, a_);
    upload(test.b, b_);
    upload(test.c, c_);
    upload(test.bias, bias_);
    upload(test.residual, residual_);
    require(stream_.synchronize("uploading"));
  }

  GemmOperands operands() const {
    return test_.at(a_.address(), b_.address(), c_.address(), bias_.address(), residual_.address());
  }
  void prepare(CudaGemm& gemm) const { require(try_prepare(gemm)); }
  Status try_prepare(CudaGemm& gemm) const { return gemm.prepare(test_.step, operands(), {}, {}); }
  Status enqueue(CudaGemm& gemm) const { return gemm.run(test_.step, operands(), {}, {}, stream_); }
  /// c after `enqueue` has worked on a poisoned one.
  template <typename Enqueue>
  GemmCase::Buffer result_of(Enqueue&& enqueue) const {
    require(stream_.fill(c_.address(), 0xff, c_.bytes()));
    require(enqueue());
    GemmCase::Buffer c{test_.c.dtype, std::vector<std::byte>(test_.c.bytes.size())};
    require(stream_.copy_to_host(c.bytes, c_.address()));
    require(stream_.synchronize("a test's product"));
    return c;
  }
  GemmCase::Buffer run(CudaGemm& gemm) const {
    prepare(gemm);
    return result_of([&] { return enqueue(gemm); });
  }
  const GemmCase& test() const { return test_; }
  const CudaStream& stream() const { return stream_; }

 private:
  void upload(const GemmCase::Buffer& buffer, CudaMemory& memory) {
    memory = value(CudaMemory::allocate(device(), buffer.bytes.size(), "a test"));
    require(stream_.copy_to_device(memory.address(), buffer.bytes));
  }

  const GemmCase& test_;
  CudaStream stream_;
  CudaMemory a_, b_, c_, bias_, residual_;
};

double activated(Activation activation, double x) {
  if (activation == Activation::relu) return std::max(x, 0.0);
  if (activation == Activation::none) return x;
  return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

/// Elements (each, or every so manieth) outside the bound, and bytes of gaps that were written.
int64_t wrong_elements(const GemmCase& test, const GemmCase::Buffer& got, int64_t every = 1) {
  int64_t wrong = 0;
  GemmCase::Buffer rest = got;
  const GemmStep& step = test.step;
  const bool epilogue = step.bias >= 0 || needs_fast_numerics(step);
  const bool twice = got.dtype != DType::f32 &&
                     (step.residual >= 0 || (epilogue && step.m.constant() <= kFewRows));
  test.for_each(
      [&](const GemmCase::Element& e) {
        double exact = static_cast<double>(e.bias) + static_cast<double>(e.residual);
        double magnitude = std::abs(e.bias) + std::abs(e.residual);
        for (size_t p = 0; p < e.a.size(); ++p) {
          const double term = static_cast<double>(e.a[p]) * static_cast<double>(e.b[p]);
          exact += term;
          magnitude += std::abs(term);
        }
        const double result = activated(step.activation, exact);
        const double error = std::abs(read_element(got, e.index) - result);
        // No activation is steeper than 1.13; the library's GELU may take tanh from the hardware.
        double allowed = 1.13 * error_bound(got.dtype, e.a.size(), exact, magnitude, twice);
        if (step.activation == Activation::gelu_tanh) allowed += 0x1p-10 * std::abs(exact);
        wrong += !(error <= (step.activation == Activation::none ? allowed / 1.13 : allowed));
        const auto size = static_cast<size_t>(whole_bytes(rest.dtype));
        std::memset(rest.bytes.data() + static_cast<size_t>(e.index) * size, 0xff, size);
      },
      every);
  if (every == 1)
    for (std::byte b : rest.bytes) wrong += b != std::byte{0xff};
  return wrong;
}

int64_t count_of(const GemmRecord& record, GemmChoice::Kind kind) {
  return std::count_if(record.choices.begin(), record.choices.end(),
                       [&](const auto& entry) { return entry.second.kind == kind; });
}

TEST_CASE("random products of all layouts and types, twice with the same bits") {
  const auto gemm = make_gemm(GemmPolicy::first);
  Random random(11);
  for (int i = 0; i < 600; ++i) {
    const GemmCase test = random_gemm_case(random, {.any_stride = i % 3 == 0,
                                                    .empty = i % 5 == 0,
                                                    .epilogues = i % 4 == 1,
                                                    .most = i % 10 ? 70 : 200});
    CAPTURE(test.text());
    const DeviceCase on_device(test);
    const GemmCase::Buffer got = on_device.run(*gemm);
    CHECK(wrong_elements(test, got) == 0);
    CHECK(on_device.run(*gemm).bytes == got.bytes);
  }
  // Both implementations were at work.
  CHECK(count_of(gemm->record(), GemmChoice::Kind::own) > 50);
  CHECK(count_of(gemm->record(), GemmChoice::Kind::cublaslt) > 150);
}

TEST_CASE("linear layers of models: the library takes them, tuned or not") {
  Random random(12);
  const auto first = make_gemm(GemmPolicy::first), tuned = make_gemm(GemmPolicy::tune);
  for (DType dtype : kFloats)
    for (int64_t m : {1, 7, 64, 300})
      for (const auto& [n, k, bias] :
           {std::tuple<int64_t, int64_t, bool>{3072, 1024, false}, {1024, 4096, true}}) {
        const GemmCase test = linear_gemm_case(random, dtype, m, n, k, bias);
        CAPTURE(test.text());
        const DeviceCase on_device(test);
        for (CudaGemm* gemm : {first.get(), tuned.get()}) {
          const GemmCase::Buffer got = on_device.run(*gemm);
          CHECK(wrong_elements(test, got, 97) == 0);
          for (int again = 0; again < 3; ++again) CHECK(on_device.run(*gemm).bytes == got.bytes);
        }
      }
  CHECK(count_of(first->record(), GemmChoice::Kind::own) == 0);
  for (const auto& [key, choice] : tuned->record().choices) {
    CAPTURE(key);
    CHECK(choice.seconds > 0);
    CHECK(choice.seconds < 1);
  }
}

TEST_CASE("activations and residuals of 16-bit linears are the library's") {
  Random random(17);
  const auto first = make_gemm(GemmPolicy::first), tuned = make_gemm(GemmPolicy::tune);
  for (DType dtype : kFloats)
    for (int64_t m : {9, 300})
      for (bool bias : {false, true})
        for (bool residual : {false, true})
          for (Activation activation :
               {Activation::none, Activation::relu, Activation::gelu_tanh}) {
            if (!residual && activation == Activation::none) continue;
            if (dtype == DType::f32 && activation == Activation::gelu_tanh)
              continue;  // fusion makes none
            GemmCase test = linear_gemm_case(random, dtype, m, 1024, 2048, bias);
            test.add_epilogue(random, residual, activation);
            CAPTURE(test.text());
            const DeviceCase on_device(test);
            for (CudaGemm* gemm : {first.get(), tuned.get()}) {
              const GemmCase::Buffer got = on_device.run(*gemm);
              CHECK(wrong_elements(test, got, 97) == 0);
              CHECK(on_device.run(*gemm).bytes == got.bytes);
            }
          }
  CHECK(count_of(first->record(), GemmChoice::Kind::own) == 0);
  CHECK(first->record().choices.size() == 2 * 2 * (5 + 5 + 3));
  // The tuner finds the library's epilogues right, and no other kernel is near it at 300 rows.
  for (const auto& [key, choice] : tuned->record().choices) {
    CAPTURE(key);
    CHECK((key.starts_with("1x9x") || key.find("A f32") != key.npos ||
           choice.kind == GemmChoice::Kind::cublaslt));
  }
}

TEST_CASE("prepared products can be recorded in a graph that was never run before") {
  Random random(13);
  for (DType dtype : kFloats)
    for (bool bias : {false, true}) {
      const GemmCase linear = linear_gemm_case(random, dtype, 5, 264, 136, bias);
      const GemmCase strided = random_gemm_case(random, {.any_stride = true});
      for (const GemmCase* test : {&linear, &strided}) {
        CAPTURE(test->text());
        const DeviceCase on_device(*test);
        const auto gemm = make_gemm(GemmPolicy::first);
        on_device.prepare(*gemm);
        const CudaGraph graph =
            value(CudaGraph::record(on_device.stream(), [&] { return on_device.enqueue(*gemm); }));
        const auto launch = [&] { return graph.launch(on_device.stream()); };
        const GemmCase::Buffer got = on_device.result_of(launch);
        CHECK(wrong_elements(*test, got) == 0);
        CHECK(on_device.result_of(launch).bytes == got.bytes);
        CHECK(on_device.run(*gemm).bytes == got.bytes);
      }
    }
}

TEST_CASE("products of one shape share a decision, not a bias") {
  Random random(16);
  const GemmCase one = linear_gemm_case(random, DType::f16, 4, 64, 32, true);
  GemmCase other = one;
  for (int64_t i = 0; i < 64; ++i) write_element(other.bias, i, 100.0f + static_cast<float>(i));
  const DeviceCase cases[] = {DeviceCase(one), DeviceCase(other)};
  const auto gemm = make_gemm(GemmPolicy::first);
  for (const DeviceCase& on_device : cases) on_device.prepare(*gemm);
  CHECK(gemm->record().choices.size() == 1);
  CHECK(count_of(gemm->record(), GemmChoice::Kind::cublaslt) == 1);
  std::vector<CudaGraph> graphs;
  for (const DeviceCase& on_device : cases)
    graphs.push_back(
        value(CudaGraph::record(on_device.stream(), [&] { return on_device.enqueue(*gemm); })));
  for (size_t i = 0; i < graphs.size(); ++i) {
    const auto launch = [&] { return graphs[i].launch(cases[i].stream()); };
    CHECK(wrong_elements(cases[i].test(), cases[i].result_of(launch)) == 0);
  }
}

TEST_CASE("a frozen record gives the same bits, and nothing that it does not hold") {
  Random random(14);
  const GemmCase test = linear_gemm_case(random, DType::bf16, 33, 512, 2048, true);
  const DeviceCase on_device(test);
  const auto tuned = make_gemm(GemmPolicy::tune);
  const GemmCase::Buffer expected = on_device.run(*tuned);
  const GemmRecord record = value(GemmRecord::parse(tuned->record().to_json(), "record.json"));
  const auto frozen = make_gemm(GemmPolicy::frozen, record);
  CHECK(on_device.run(*frozen).bytes == expected.bytes);
  CHECK(frozen->record().choices == record.choices);

  const auto empty = make_gemm(GemmPolicy::frozen);
  const Status missing = on_device.try_prepare(*empty);
  REQUIRE(!missing);
  CHECK(missing.error().what == "the record does not decide this matrix product");
  CHECK(missing.error().where.starts_with("product 1x33x512x2048 A bf16"));

  const auto unprepared = make_gemm(GemmPolicy::first);
  const Status run = on_device.enqueue(*unprepared);
  REQUIRE(!run);
  CHECK(run.error().code == ExitCode::internal_error);
}

TEST_CASE("a class of lengths has one decision, right and frozen at each of them") {
  Random random(18);
  const Symbol tokens{"T", 1, 4096};
  const auto tuned = make_gemm(GemmPolicy::tune);
  const auto run = [&](CudaGemm& gemm, const DeviceCase& on_device) {
    GemmStep step = on_device.test().step;
    const int64_t length = step.m.constant();
    step.m = SymExpr(Dim(SymbolId{0}));
    require(gemm.prepare(step, on_device.operands(), tokens, length));
    return on_device.result_of(
        [&] { return gemm.run(step, on_device.operands(), tokens, length, on_device.stream()); });
  };
  std::vector<GemmCase> cases;
  for (int64_t length : {1801, 2048, 1793, 2000})
    cases.push_back(linear_gemm_case(random, DType::bf16, length, 1024, 4096, false));
  std::vector<GemmCase::Buffer> results;
  for (const GemmCase& test : cases) {
    CAPTURE(test.text());
    results.push_back(run(*tuned, DeviceCase(test)));
    CHECK(wrong_elements(test, results.back(), 97) == 0);
  }
  REQUIRE(tuned->record().choices.size() == 1);
  CHECK(tuned->record().choices.begin()->first.starts_with("1x1793..2048x1024x4096 A bf16"));
  const auto frozen = make_gemm(GemmPolicy::frozen, tuned->record());
  for (size_t i = 0; i < cases.size(); ++i)
    CHECK(run(*frozen, DeviceCase(cases[i])).bytes == results[i].bytes);
}

TEST_CASE("a record of another device or library is refused with both names") {
  const GemmRecord own = make_gemm(GemmPolicy::first)->record();
  for (GemmRecord other : {GemmRecord{"Some GPU", own.library, {}, {}},
                           GemmRecord{own.device, "cuBLASLt 1", {}, {}}}) {
    const auto gemm = CudaGemm::create(device(), kernel_library(), other, GemmPolicy::first);
    REQUIRE(!gemm);
    CHECK(gemm.error().what.find(other.device + " with " + other.library) != std::string::npos);
    CHECK(gemm.error().what.find(own.device + " with " + own.library) != std::string::npos);
  }
}

TEST_CASE("damaged algorithms are errors when frozen, and decided anew otherwise") {
  Random random(15);
  const GemmCase test = linear_gemm_case(random, DType::f16, 16, 256, 512, false);
  const DeviceCase on_device(test);
  const auto first = make_gemm(GemmPolicy::first);
  const GemmCase::Buffer expected = on_device.run(*first);
  const GemmRecord good = first->record();
  REQUIRE(count_of(good, GemmChoice::Kind::cublaslt) == 1);

  for (int i = 0; i < 40; ++i) {
    GemmRecord damaged = good;
    GemmChoice& choice = damaged.choices.begin()->second;
    if (i == 0)
      choice.workspace_bytes += 1;
    else
      choice.algorithm[static_cast<size_t>(i) % choice.algorithm.size()] ^=
          1u << random.between(16, 31);  // fields are small numbers
    const auto frozen = make_gemm(GemmPolicy::frozen, damaged);
    const Status refused = on_device.try_prepare(*frozen);
    REQUIRE(!refused);
    CHECK(refused.error().what ==
          "the recorded algorithm is none that cuBLASLt proposes for this product");
    const auto renewed = make_gemm(GemmPolicy::first, damaged);
    CHECK(on_device.run(*renewed).bytes == expected.bytes);
    CHECK(renewed->record().choices == good.choices);
  }
}

}  // namespace
}  // namespace sinter
