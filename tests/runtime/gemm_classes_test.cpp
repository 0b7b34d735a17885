// One decision for a class of lengths: what is tuned, recorded, found again and refused, with a
// driver and a cuBLASLt that are made up.
#include <doctest/doctest.h>

#include "kernels/library.h"
#include "plan/plan_file.h"
#include "runtime/cuda/gemm.h"
#include "runtime/cuda/strided_gemm.h"
#include "runtime/fake_cublaslt.h"
#include "runtime/fake_driver.h"
#include "support/result.h"

namespace sinter::gemm_classes_test {
namespace {

constexpr int64_t kColumns = 4, kDepth = 8;

const FakeCublasLt& library() {
  static const FakeDriver driver(SINTER_FAKE_DRIVER);
  static const FakeCublasLt fake(SINTER_FAKE_CUBLASLT);
  return fake;
}

CudaDevicePtr device() {
  library();
  static const CudaDevicePtr opened = value(CudaDevice::open(0));
  return opened;
}

/// A linear layer of M tokens, in float32, with its operands on the device.
struct Linear {
  GemmStep step;
  std::vector<Symbol> symbols = {{"M", 1, 1 << 20}};
  CudaMemory memory;

  Linear() {
    step.m = SymExpr(Dim(SymbolId{0}));
    step.n = kColumns, step.k = kDepth;
    step.a = {0, 0, kDepth, 1};
    step.b = {1, 0, 1, kDepth};
    step.c = {2, 0, kColumns, 1};
    memory = value(CudaMemory::allocate(device(), kBytes * 3, "a test"));
  }
  GemmOperands operands() const {
    const CudaAddress at = memory.address();
    return {{at, DType::f32}, {at + kBytes, DType::f32}, {at + 2 * kBytes, DType::f32}, {}, 0};
  }
  static constexpr size_t kBytes = size_t{1} << 17;  // 4096 tokens
};

/// The own kernel: machine code that computes nothing and takes ever so long.
MachineCodeByText slow_own_kernel() {
  static const FakeKernel kernel = {6, [](const FakeKernel&, unsigned, const uint64_t*) {}, 1000};
  return {{content_hash(strided_gemm_kernel(GemmProblem()).text), kernel.code()}};
}

std::shared_ptr<CudaGemm> make_gemm(GemmPolicy policy, GemmRecord record = {}) {
  const auto gemm = value(CudaGemm::create(device(), kernel_library(), std::move(record), policy));
  gemm->add_machine_code(slow_own_kernel());
  return gemm;
}

/// The algorithm that computes the product of so many tokens; 0: the own kernel.
uint32_t algorithm_of(CudaGemm& gemm, const Linear& linear, int64_t tokens) {
  require(gemm.prepare(linear.step, linear.operands(), linear.symbols, {tokens}));
  const CudaStream stream = value(CudaStream::create(device()));
  library().take_products();
  require(gemm.run(linear.step, linear.operands(), linear.symbols, {tokens}, stream));
  require(stream.synchronize("a test"));
  if (library().take_products() == 0) return 0;
  CHECK(library().last_rows() == static_cast<uint64_t>(tokens));
  return library().last_id();
}

std::vector<std::string> keys(const GemmRecord& record) {
  std::vector<std::string> result;
  for (const auto& [key, choice] : record.choices) result.push_back(key.substr(0, key.find(' ')));
  return result;
}

/// Algorithms 1, 2, .. in this order for 2048 rows, of which 5 is the fastest. At 2000 rows the
/// order is the reverse, so that 5 is beyond the first eight; at 1900 rows there is no 5.
bool propose(uint64_t rows, int index, FakeAlgorithm& out) {
  constexpr int kCount = 20;
  if (index >= kCount) return false;
  out.id = static_cast<uint32_t>(rows == 2000 ? kCount - index : index + 1);
  if (rows == 1900) out.id += 100;
  out.milliseconds = out.id == 5 ? 1 : 2 + 0.01 * out.id;
  return true;
}

TEST_CASE("a class is tuned once, at its longest length, whichever length comes first") {
  library().propose(propose);
  const Linear linear;
  for (const auto& order : {std::vector<int64_t>{2000, 2048, 1900, 1793},
                            std::vector<int64_t>{1793, 1900, 2048, 2000}}) {
    const auto gemm = make_gemm(GemmPolicy::tune);
    for (int64_t tokens : order) {
      // Where the library does not propose the class's algorithm, its first proposal is taken.
      CHECK(algorithm_of(*gemm, linear, tokens) == (tokens == 1900 ? 101 : 5));
    }
    CHECK(keys(gemm->record()) == std::vector<std::string>{"1x1793..2048x4x8"});
    const GemmChoice& choice = gemm->record().choices.begin()->second;
    CHECK(choice.algorithm[0] == 5);
    CHECK(choice.workspace_bytes == 2048);
    CHECK(choice.seconds > 0.001);
  }
}

TEST_CASE("a product works in free memory of the arena, and in its own where that is too little") {
  library().propose(propose);
  const Linear linear;
  const auto gemm = make_gemm(GemmPolicy::first);
  const CudaMemory arena = value(CudaMemory::allocate(device(), 4096, "a test"));
  const CudaStream stream = value(CudaStream::create(device()));
  const auto workspace = [&](size_t free) {
    GemmOperands operands = linear.operands();
    operands.free = {arena.address(), free};
    require(gemm->prepare(linear.step, operands, linear.symbols, {2000}));
    require(gemm->run(linear.step, operands, linear.symbols, {2000}, stream));
    require(stream.synchronize("a test"));
    return library().last_workspace();
  };
  CHECK(workspace(2000) == arena.address());  // the algorithm needs a byte a token
  const uint64_t own = workspace(1999);
  CHECK(own != 0);
  CHECK(own != arena.address());
  CHECK(workspace(4096) == arena.address());
  CHECK(workspace(0) == own);
}

TEST_CASE("a frozen record decides every length of its classes, and names the class it lacks") {
  library().propose(propose);
  const Linear linear;
  const auto tuned = make_gemm(GemmPolicy::tune);
  algorithm_of(*tuned, linear, 1800);
  algorithm_of(*tuned, linear, 64);
  CHECK(keys(tuned->record()) == std::vector<std::string>{"1x1793..2048x4x8", "1x64x4x8"});
  const GemmRecord record = value(GemmRecord::parse(tuned->record().to_json(), "r.json"));

  const auto frozen = make_gemm(GemmPolicy::frozen, record);
  for (int64_t tokens : {1793, 1900, 2000, 2048})
    CHECK(algorithm_of(*frozen, linear, tokens) == algorithm_of(*tuned, linear, tokens));
  CHECK(algorithm_of(*frozen, linear, 64) == 5);
  CHECK(frozen->record().choices == record.choices);

  const auto refused = [&](int64_t tokens) {
    const Status status = frozen->prepare(linear.step, linear.operands(), linear.symbols, {tokens});
    REQUIRE(!status);
    return status.error().message();
  };
  CHECK(refused(2049) ==
        "product 1x2049x4x8 A f32 8,1,0@16 B f32 1,8,0@16 C f32 4,1,0@16: the record decides "
        "neither this matrix product nor its class 1x2049..2560x4x8 A f32 8,1,0@16 B f32 "
        "1,8,0@16 C f32 4,1,0@16; make a record of these products, or run without one");
  CHECK(refused(63) ==
        "product 1x63x4x8 A f32 8,1,0@16 B f32 1,8,0@16 C f32 4,1,0@16: the record does not "
        "decide this matrix product; make a record of these products, or run without one");
}

TEST_CASE("a record of exact sizes is honoured, before the class and for its length alone") {
  library().propose(propose);
  const Linear linear;
  // Tuned for a step whose length is no symbol, as an older version recorded every step.
  Linear fixed;
  fixed.step.m = 2048;
  const auto older = make_gemm(GemmPolicy::tune);
  algorithm_of(*older, fixed, 2048);
  GemmRecord record = older->record();
  CHECK(keys(record) == std::vector<std::string>{"1x2048x4x8"});
  record.choices.begin()->second.algorithm[0] = 3;

  const auto frozen = make_gemm(GemmPolicy::frozen, record);
  CHECK(algorithm_of(*frozen, linear, 2048) == 3);
  CHECK(!frozen->prepare(linear.step, linear.operands(), linear.symbols, {2000}));

  // Beside a decision for the class.
  const auto tuned = make_gemm(GemmPolicy::tune, record);
  CHECK(algorithm_of(*tuned, linear, 2000) == 5);
  CHECK(algorithm_of(*tuned, linear, 2048) == 3);
  const auto both = make_gemm(GemmPolicy::frozen, tuned->record());
  CHECK(algorithm_of(*both, linear, 2048) == 3);
  CHECK(algorithm_of(*both, linear, 2000) == 5);
  // The step whose length is fixed is no product of the class.
  CHECK(algorithm_of(*both, fixed, 2048) == 3);
}

TEST_CASE("without tuning each length has the library's first proposal, whatever came before") {
  library().propose(propose);
  const Linear linear;
  const auto gemm = make_gemm(GemmPolicy::first);
  CHECK(algorithm_of(*gemm, linear, 2048) == 1);
  CHECK(algorithm_of(*gemm, linear, 2000) == 20);
  CHECK(keys(gemm->record()) == std::vector<std::string>{"1x2000x4x8", "1x2048x4x8"});
}

TEST_CASE("a class's algorithm that the library does not have is an error when frozen") {
  library().propose(propose);
  const Linear linear;
  const auto tuned = make_gemm(GemmPolicy::tune);
  algorithm_of(*tuned, linear, 2000);
  GemmRecord damaged = tuned->record();
  damaged.choices.begin()->second.algorithm[0] = 77;
  const auto frozen = make_gemm(GemmPolicy::frozen, damaged);
  for (int64_t tokens : {1900, 2000, 2048}) {
    const Status status = frozen->prepare(linear.step, linear.operands(), linear.symbols, {tokens});
    REQUIRE(!status);
    CHECK(status.error().what ==
          "the recorded algorithm is none that cuBLASLt proposes for this product");
  }
  const auto renewed = make_gemm(GemmPolicy::tune, damaged);
  CHECK(algorithm_of(*renewed, linear, 2000) == 5);
  CHECK(renewed->record().choices == tuned->record().choices);
}

TEST_CASE("an exact decision that cannot be used makes way for the class's") {
  library().propose(propose);
  Linear linear, fixed;
  fixed.step.m = 2048;
  const auto older = make_gemm(GemmPolicy::tune);
  algorithm_of(*older, fixed, 2048);
  GemmRecord damaged = older->record();
  damaged.choices.begin()->second.algorithm[0] = 77;
  const auto renewed = make_gemm(GemmPolicy::tune, damaged);
  CHECK(algorithm_of(*renewed, linear, 2048) == 5);
  CHECK(keys(renewed->record()) == std::vector<std::string>{"1x1793..2048x4x8"});
  const auto frozen = make_gemm(GemmPolicy::frozen, renewed->record());
  CHECK(algorithm_of(*frozen, linear, 2048) == 5);
}

TEST_CASE("the fastest algorithm of a class is not taken if it is wrong") {
  library().propose([](uint64_t rows, int index, FakeAlgorithm& out) {
    out.wrong = index == 4;
    return propose(rows, index, out);
  });
  const Linear linear;
  const auto gemm = make_gemm(GemmPolicy::tune);
  CHECK(algorithm_of(*gemm, linear, 2048) == 1);
}

TEST_CASE("those who share decisions take what the first of them tuned, whatever is faster then") {
  library().propose(propose);
  const Linear linear;
  const auto shared = std::make_shared<TunedProducts>();
  const auto first = make_gemm(GemmPolicy::tune), second = make_gemm(GemmPolicy::tune);
  first->share(shared);
  second->share(shared);
  CHECK(algorithm_of(*first, linear, 2048) == 5);
  library().propose([](uint64_t rows, int index, FakeAlgorithm& out) {
    const bool proposed = propose(rows, index, out);
    if (out.id == 7) out.milliseconds = 0.5;
    return proposed;
  });
  CHECK(algorithm_of(*second, linear, 2000) == 5);
  CHECK(algorithm_of(*make_gemm(GemmPolicy::tune), linear, 2048) == 7);
}

TEST_CASE("an own kernel that was decided for a class computes all its lengths") {
  library().propose([](uint64_t rows, int index, FakeAlgorithm& out) {
    return rows != 2048 && propose(rows, index, out);
  });
  const Linear linear;
  const auto tuned = make_gemm(GemmPolicy::tune);
  CHECK(algorithm_of(*tuned, linear, 2000) == 0);
  CHECK(keys(tuned->record()) == std::vector<std::string>{"1x1793..2048x4x8"});
  const auto frozen = make_gemm(GemmPolicy::frozen, tuned->record());
  CHECK(algorithm_of(*frozen, linear, 1800) == 0);
}

}  // namespace
}  // namespace sinter::gemm_classes_test
