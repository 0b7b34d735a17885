// Hand-written kernels, right and wrong ones: the shim gives CUDA's results to the first kind and
// names what is wrong with the second.
#include <doctest/doctest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "shim/guarded_memory.h"
#include "shim/shim_module.h"
#include "shim/shim_source.h"

namespace sinter::shim_test {
namespace {

// A row sum as emitted kernels make it: lanes, then warps, then the block.
constexpr const char* kRowSum = R"(
#include "sinter/butterfly.cuh"
extern "C" __global__ void __launch_bounds__(128) row_sum(const float* __restrict__ x,
                                                          float* __restrict__ y, long long n) {
  const float* row = x + blockIdx.x * n;
  float sum = 0.0f;
  for (long long i = threadIdx.x; i < n; i += blockDim.x) sum += row[i];
  sum = block_sum<128>(sum);
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
)";
constexpr const char* kButterfly = R"(
#pragma once
template <int kThreads>
__device__ __forceinline__ float block_sum(float sum) {
  __shared__ __align__(16) float partial[kThreads / 32];
  #pragma unroll
  for (int stride = 1; stride < 32; stride *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, stride);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int i = 0; i < kThreads / 32; ++i) sum += partial[i];
  return sum;
}
)";
// As row_sum, but thread 0 reads other warps' sums before they are known to be written.
constexpr const char* kRace = R"(
extern "C" __global__ void race(float* y) {
  __shared__ float partial[4];
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = 1.0f;
  if (threadIdx.x == 0) y[0] = partial[0] + partial[1] + partial[2] + partial[3];
}
)";
constexpr const char* kScan = R"(
extern "C" __global__ void scan(const int* x, int* y) {
  extern __shared__ int values[];
  int mine = x[threadIdx.x];
  for (int delta = 1; delta < 16; delta *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, mine, delta, 16);
    if (threadIdx.x % 16 >= delta) mine += other;
  }
  values[threadIdx.x] = mine;
  __syncwarp();
  const unsigned odd = __ballot_sync(0xffffffffu, threadIdx.x % 2);
  y[threadIdx.x] = values[threadIdx.x ^ 1] + (odd == 0xaaaaaaaau) * 1000 +
                   __shfl_sync(0xffffffffu, mine, 3, 8) * 10000;
}
)";
// Halves of a warp exchange on their own.
constexpr const char* kHalves = R"(
extern "C" __global__ void halves(int* y) {
  const unsigned mask = threadIdx.x < 16 ? 0x0000ffffu : 0xffff0000u;
  int v = threadIdx.x;
  for (int i = 0; i < (threadIdx.x < 16 ? 1 : 3); ++i) v = __shfl_xor_sync(mask, v, 1);
  y[threadIdx.x] = v;
}
)";
constexpr const char* kPartBarrier = R"(
extern "C" __global__ void part_barrier(float* y) {
  if (threadIdx.x < 32) __syncthreads();
  y[threadIdx.x] = 1.0f;
}
)";
constexpr const char* kTwoBarriers = R"(
extern "C" __global__ void two_barriers(float* y) {
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
  y[threadIdx.x] = 1.0f;
}
)";
constexpr const char* kPartShuffle = R"(
extern "C" __global__ void part_shuffle(float* y) {
  float v = 1.0f;
  if (threadIdx.x % 2 == 0) v = __shfl_xor_sync(0xffffffffu, v, 2);
  else __syncthreads();
  y[threadIdx.x] = v;
}
)";
constexpr const char* kForeignMask = R"(
extern "C" __global__ void foreign_mask(float* y) {
  y[threadIdx.x] = __shfl_xor_sync(0x0000ffffu, 1.0f, 1);
}
)";
constexpr const char* kAbsentLane = R"(
extern "C" __global__ void absent_lane(float* y) {
  if (threadIdx.x == 5) return;
  y[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
}
)";
constexpr const char* kPartProduct = R"(
extern "C" __global__ void part_product(float* y) {
  if (threadIdx.x == 5) return;
  float sums[4] = {};
  const sinter_shim::WarpProduct product = {sums, {}, false};
  sinter_shim::whole_warp(sinter_shim::ExchangeKind::product, &product, __FILE__, __LINE__);
  y[threadIdx.x] = sums[0];
}
)";
constexpr const char* kBeyond = R"(
extern "C" __global__ void beyond(float* y, long long n) {
  const long long i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) y[i] = 1.0f;
}
)";
constexpr const char* kSharedBeyond = R"(
extern "C" __global__ void shared_beyond(float* y) {
  __shared__ float values[16];
  values[threadIdx.x] = 1.0f;
  y[threadIdx.x] = 2.0f;
}
)";
constexpr const char* kTooMuchShared = R"(
extern "C" __global__ void too_much_shared(float* y) {
  __shared__ float a[8192], b[8192];
  a[threadIdx.x] = b[threadIdx.x] = 1.0f;
  y[threadIdx.x] = a[threadIdx.x];
}
)";

const ShimModule& kernels() {
  static const ShimModule module = [] {
    const ShimSource sources[] = {{"row_sum", kRowSum},
                                  {"race", kRace},
                                  {"scan", kScan},
                                  {"halves", kHalves},
                                  {"part_barrier", kPartBarrier},
                                  {"two_barriers", kTwoBarriers},
                                  {"part_shuffle", kPartShuffle},
                                  {"part_product", kPartProduct},
                                  {"foreign_mask", kForeignMask},
                                  {"absent_lane", kAbsentLane},
                                  {"beyond", kBeyond},
                                  {"shared_beyond", kSharedBeyond},
                                  {"too_much_shared", kTooMuchShared}};
    auto compiled =
        ShimModule::compile(sources, EmbeddedHeader{"sinter/butterfly.cuh", kButterfly});
    REQUIRE_MESSAGE(compiled.has_value(), (compiled ? "" : compiled.error().message()));
    return std::move(*compiled);
  }();
  return module;
}

/// Runs a kernel of one output parameter in one block of `threads`; returns the error's text.
std::string run_wrong(const char* name, unsigned threads, size_t elements = 64) {
  GuardedMemory y(elements * sizeof(float), kFinitePoison);
  void* pointer = y.data();
  void* arguments[] = {&pointer};
  const Status status = kernels().launch(name, {{1, 1, 1}, {threads, 1, 1}, 0}, arguments);
  REQUIRE_FALSE(status.has_value());
  return status.error().message();
}

}  // namespace

TEST_CASE("a row sum over many blocks has CUDA's result in every thread order") {
  constexpr long long kRows = 5, kWidth = 300;
  GuardedMemory x(kRows * kWidth * sizeof(float), kNanPoison);
  auto* values = reinterpret_cast<float*>(x.data());
  for (long long i = 0; i < kRows * kWidth; ++i) values[i] = static_cast<float>(i % 7);
  for (ThreadOrder order : kThreadOrders) {
    GuardedMemory y(kRows * sizeof(float), kFinitePoison);
    void* in = x.data();
    void* out = y.data();
    long long n = kWidth;
    void* arguments[] = {&in, &out, &n};
    const Status status =
        kernels().launch("row_sum", {{kRows, 1, 1}, {128, 1, 1}, 0}, arguments, order);
    REQUIRE(status.has_value());
    for (long long row = 0; row < kRows; ++row) {
      const float expected =
          std::accumulate(values + row * kWidth, values + (row + 1) * kWidth, 0.0f);
      CHECK(reinterpret_cast<float*>(y.data())[row] == expected);
    }
    CHECK(y.damage().empty());
  }
}

TEST_CASE("shuffles, ballots and dynamic shared memory follow the CUDA definition") {
  std::vector<int> x(32), y(32);
  std::iota(x.begin(), x.end(), 1);
  const int* in = x.data();
  int* out = y.data();
  void* arguments[] = {&in, &out};
  for (ThreadOrder order : kThreadOrders) {
    const Grid grid{{1, 1, 1}, {32, 1, 1}, 32 * sizeof(int)};
    REQUIRE(kernels().launch("scan", grid, arguments, order).has_value());
    for (int i = 0; i < 32; ++i) {
      const auto prefix = [](int lane) {  // of 1, 2, 3, ... within 16 lanes
        int sum = 0;
        for (int j = lane / 16 * 16; j <= lane; ++j) sum += j + 1;
        return sum;
      };
      CHECK(y[i] == prefix(i ^ 1) + 1000 + 10000 * prefix(i / 8 * 8 + 3));
    }
  }
}

TEST_CASE("masks that split a warp exchange independently") {
  std::vector<int> y(32);
  int* out = y.data();
  void* arguments[] = {&out};
  REQUIRE(kernels().launch("halves", {{1, 1, 1}, {32, 1, 1}, 0}, arguments).has_value());
  for (int i = 0; i < 32; ++i) CHECK(y[i] == (i ^ 1));
}

TEST_CASE("a missing barrier shows as a result that depends on the thread order") {
  std::vector<float> results;
  for (ThreadOrder order : kThreadOrders) {
    float y = 0;
    float* out = &y;
    void* arguments[] = {&out};
    REQUIRE(kernels().launch("race", {{1, 1, 1}, {128, 1, 1}, 0}, arguments, order).has_value());
    results.push_back(y);
  }
  CHECK(results[0] != results[0]);  // NaN: storage that was never written
  CHECK(results[1] == 4.0f);
}

TEST_CASE("a barrier that a part of the block skips is reported") {
  CHECK(run_wrong("part_barrier", 64) ==
        "part_barrier, block 0 of 1: threads 0..31 wait at the barrier part_barrier.cu:3, "
        "threads 32..63 have returned");
}

TEST_CASE("two barriers at a time are reported") {
  CHECK(run_wrong("two_barriers", 64) ==
        "two_barriers, block 0 of 1: thread 0 waits at the barrier two_barriers.cu:4, thread 32 "
        "at the barrier two_barriers.cu:6");
}

TEST_CASE("a shuffle that a part of the mask skips is reported") {
  const std::string message = run_wrong("part_shuffle", 32);
  CHECK(message.find("threads 0..0 wait in the exchange part_shuffle.cu:4 with mask 0xffffffff") !=
        message.npos);
}

TEST_CASE("a mask without the caller is reported") {
  CHECK(run_wrong("foreign_mask", 32) ==
        "foreign_mask, block 0 of 1: foreign_mask.cu:3: thread 16: lane 16 is not in its own mask "
        "0x0000ffff");
}

TEST_CASE("a shuffle from a lane that returned, or that never was, is reported") {
  CHECK(run_wrong("absent_lane", 32) ==
        "absent_lane, block 0 of 1: absent_lane.cu:4: thread 4: lane 4 reads lane 5, which takes "
        "no part (mask 0xffffffff, present 0xffffffdf)");
}

TEST_CASE("an instruction of the whole warp without one of its lanes is reported") {
  CHECK(run_wrong("part_product", 32) ==
        "part_product, block 0 of 1: part_product.cu:6: thread 0: lanes take no part in an "
        "instruction of the whole warp (present 0xffffffdf)");
}

TEST_CASE("more shared memory than a block has is reported") {
  const std::string message = run_wrong("too_much_shared", 32);
  CHECK(message.find("65536 bytes of declared shared memory, at most 49152 are allowed") !=
        message.npos);
}

// AddressSanitizer ends the process at once, so that these look at the guards only without it.
#if !defined(__SANITIZE_ADDRESS__)
TEST_CASE("a write beyond shared memory is reported") {
  CHECK(run_wrong("shared_beyond", 32) ==
        "shared_beyond, block 0 of 1: shared_beyond.cu:3: shared memory of 64 bytes was overrun "
        "at byte 0 after its end");
}

TEST_CASE("a write beyond a buffer damages its guard") {
  GuardedMemory y(10 * sizeof(float), kFinitePoison);
  void* out = y.data();
  long long n = 10;
  void* arguments[] = {&out, &n};
  REQUIRE(kernels().launch("beyond", {{1, 1, 1}, {32, 1, 1}, 0}, arguments).has_value());
  CHECK(y.damage() == "byte 0 after its end");
}
#endif

TEST_CASE("a launch with too few arguments is refused") {
  void* arguments[] = {nullptr};
  const Status status = kernels().launch("beyond", {{1, 1, 1}, {32, 1, 1}, 0}, arguments);
  REQUIRE_FALSE(status.has_value());
  CHECK(status.error().message() == "beyond: the kernel has 2 parameters, the launch 1 arguments");
}

TEST_CASE("text that is no C++ is refused with the compiler's message") {
  const auto module =
      ShimModule::compile(ShimSource{"wrong", "extern \"C\" __global__ void wrong() { x; }"}, {});
  REQUIRE_FALSE(module.has_value());
  CHECK(module.error().what.find("wrong.cu:1") != std::string::npos);
}

TEST_CASE("shared declarations are rewritten in place, lines keep their numbers") {
  const auto text = rewrite_shared(
      "// __shared__ float no;\n"
      "extern\n"
      "  __shared__ __align__(16) unsigned char raw[];\n"
      "__shared__ Pair<int, 2>\n"
      "    a[4][kN], b;\n"
      "int my__shared__x;\n");
  REQUIRE(text.has_value());
  CHECK(
      *text ==
      "// __shared__ float no;\n"
      "\n"
      " unsigned char* const raw = static_cast<unsigned char*>(sinter_shim_calls->shared_storage("
      "nullptr, 0, {__FILE__, __LINE__}));\n"
      "\n"
      " using a_sinter_type = Pair<int, 2>[4][kN]; a_sinter_type& a = *static_cast<a_sinter_type*>("
      "sinter_shim_calls->shared_storage([] { static char variable; return &variable; }(), "
      "sizeof(a_sinter_type), {__FILE__, __LINE__}));"
      "using b_sinter_type = Pair<int, 2>; b_sinter_type& b = *static_cast<b_sinter_type*>("
      "sinter_shim_calls->shared_storage([] { static char variable; return &variable; }(), "
      "sizeof(b_sinter_type), {__FILE__, __LINE__}));\n"
      "int my__shared__x;\n");
  CHECK_FALSE(rewrite_shared("__shared__ x;").has_value());
}

}  // namespace sinter::shim_test
