// Hand-written kernels of clusters, right and wrong ones: the shim gives CUDA's results to the
// first kind and names what is wrong with the second.
#include <doctest/doctest.h>

#include <numeric>
#include <utility>
#include <vector>

#include "kernels/library.h"
#include "shim/shim_module.h"
#include "shim/shim_source.h"

namespace sinter::shim_cluster_test {
namespace {

// Sums 64 numbers a block in the first block of the cluster; each block then has all blocks' sums.
constexpr const char* kClusterSum = R"(
#include "kernels/isa/cluster.cuh"
using namespace sinter;
extern "C" __global__ void cluster_sum(const float* x, float* y) {
  __shared__ float sums[8], warps[2];
  const int blocks = cluster_nctaid_x(), rank = blockIdx.x % blocks;
  barrier_cluster_arrive_relaxed();
  float sum = x[blockIdx.x * 64 + threadIdx.x];
  for (int stride = 1; stride < 32; stride *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, stride);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  barrier_cluster_wait();
  if (threadIdx.x < blocks) st_shared_cluster<8>(sums + rank, threadIdx.x, warps[0] + warps[1]);
  barrier_cluster_arrive();
  barrier_cluster_wait();
  if (threadIdx.x != 0) return;
  float total = 0.0f;
  for (int i = 0; i < blocks; ++i) total += sums[i] * (i + 1);
  y[blockIdx.x] = total;
}
)";
/// The kernel `name`, of a cluster: each block gives 1 to the next one, in this way.
std::string giving(const char* name, const char* text) {
  return fmt::format(R"(
#include "kernels/isa/cluster.cuh"
using namespace sinter;
extern "C" __global__ void {}(float* y) {{
  __shared__ float given[1];
  const int blocks = cluster_nctaid_x(), rank = blockIdx.x % blocks, next = (rank + 1) % blocks;
  {}
  if (threadIdx.x == 0) y[blockIdx.x] = given[0];
}}
)",
                     name, text);
}
constexpr const char* kGivenRight = R"(barrier_cluster_arrive_relaxed();
  barrier_cluster_wait();
  if (threadIdx.x == 0) st_shared_cluster<2>(given, next, 1.0f);
  barrier_cluster_arrive();
  barrier_cluster_wait();)";
constexpr const char* kGivenUnseen = R"(barrier_cluster_arrive_relaxed();
  barrier_cluster_wait();
  if (threadIdx.x == 0) st_shared_cluster<2>(given, next, 1.0f);
  __syncthreads();)";
constexpr const char* kGivenRelaxed = R"(barrier_cluster_arrive_relaxed();
  barrier_cluster_wait();
  if (threadIdx.x == 0) st_shared_cluster<2>(given, next, 1.0f);
  barrier_cluster_arrive_relaxed();
  barrier_cluster_wait();)";
constexpr const char* kGivenLate = R"(barrier_cluster_arrive_relaxed();
  barrier_cluster_wait();
  barrier_cluster_arrive();
  if (threadIdx.x == 0) st_shared_cluster<2>(given, next, 1.0f);
  barrier_cluster_wait();)";
constexpr const char* kGivenEarly = R"(barrier_cluster_arrive_relaxed();
  if (threadIdx.x == 0) st_shared_cluster<2>(given, next, 1.0f);
  barrier_cluster_wait();)";
constexpr const char* kGivenToEnded = R"(barrier_cluster_arrive_relaxed();
  barrier_cluster_wait();
  if (rank == 0) return;
  __syncthreads();
  if (threadIdx.x == 0) st_shared_cluster<2>(given, next, 1.0f);)";
constexpr const char* kGivenBeyond = R"(barrier_cluster_arrive_relaxed();
  barrier_cluster_wait();
  if (threadIdx.x == 0) st_shared_cluster<2>(given + 1, next, 1.0f);)";
constexpr const char* kGivenNobody = R"(barrier_cluster_arrive_relaxed();
  barrier_cluster_wait();
  if (threadIdx.x == 0) st_shared_cluster<2>(given, rank + 1, 1.0f);)";
constexpr const char* kArrivesTwice = R"(barrier_cluster_arrive_relaxed();
  barrier_cluster_arrive();
  barrier_cluster_wait();)";
constexpr const char* kWaitsOnly = R"(barrier_cluster_wait();)";
constexpr const char* kArrivesOnly = R"(barrier_cluster_arrive();)";
constexpr const char* kEndsBefore = R"(if (rank == 1) return;
  barrier_cluster_arrive();
  barrier_cluster_wait();)";

const ShimModule& cluster_kernels() {
  static const ShimModule module = [] {
    constexpr std::pair<const char*, const char*> kGiving[] = {
        {"right", kGivenRight},           {"unseen", kGivenUnseen},
        {"relaxed", kGivenRelaxed},       {"late", kGivenLate},
        {"early", kGivenEarly},           {"to_ended", kGivenToEnded},
        {"given_beyond", kGivenBeyond},   {"nobody", kGivenNobody},
        {"arrives_twice", kArrivesTwice}, {"waits_only", kWaitsOnly},
        {"arrives_only", kArrivesOnly},   {"ends_before", kEndsBefore}};
    std::vector<ShimSource> sources{{"cluster_sum", kClusterSum}};
    for (const auto& [name, text] : kGiving) sources.push_back({name, giving(name, text)});
    auto compiled = ShimModule::compile(sources, kernel_library());
    REQUIRE_MESSAGE(compiled.has_value(), (compiled ? "" : compiled.error().message()));
    return std::move(*compiled);
  }();
  return module;
}

/// The values that four blocks of 32 threads, in two clusters, store at y.
Result<std::vector<float>> run_clusters(const char* name,
                                        ThreadOrder order = ThreadOrder::ascending) {
  std::vector<float> y(4);
  float* out = y.data();
  void* arguments[] = {&out};
  SINTER_TRY(cluster_kernels().launch(name, {{4, 1, 1}, {32, 1, 1}, 0, 2}, arguments, order));
  return y;
}

std::string cluster_error(const char* name, ThreadOrder order = ThreadOrder::ascending) {
  const auto result = run_clusters(name, order);
  REQUIRE_FALSE(result.has_value());
  return result.error().message();
}

}  // namespace

TEST_CASE("blocks of a cluster sum into one another's shared memory, in every thread order") {
  for (const unsigned cluster : {1u, 2u, 4u, 8u}) {
    CAPTURE(cluster);
    std::vector<float> x(16 * 64);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i / 64 + i % 3);
    for (ThreadOrder order : kThreadOrders) {
      std::vector<float> y(16, -1.0f);
      const float* in = x.data();
      float* out = y.data();
      void* arguments[] = {&in, &out};
      const Status status = cluster_kernels().launch(
          "cluster_sum", {{16, 1, 1}, {64, 1, 1}, 0, cluster}, arguments, order);
      REQUIRE_MESSAGE(status.has_value(), (status ? "" : status.error().message()));
      for (size_t block = 0; block < y.size(); ++block) {
        float expected = 0;
        for (size_t rank = 0; rank < cluster; ++rank) {
          const auto begin = x.begin() + static_cast<long>((block / cluster * cluster + rank) * 64);
          expected += std::accumulate(begin, begin + 64, 0.0f) * static_cast<float>(rank + 1);
        }
        CHECK(y[block] == expected);
      }
    }
  }
}

TEST_CASE("what is given to another block is there after both halves of the cluster's barrier") {
  for (ThreadOrder order : kThreadOrders) {
    const auto right = run_clusters("right", order);
    REQUIRE(right.has_value());
    CHECK(*right == std::vector<float>(4, 1.0f));
    for (const char* wrong : {"unseen", "relaxed", "late"}) {
      CAPTURE(std::string(wrong));
      const auto result = run_clusters(wrong, order);
      REQUIRE(result.has_value());
      for (float value : *result) CHECK(value != value);  // NaN: storage that was never written
    }
  }
}

TEST_CASE("an arrival without a wait, and a wait without an arrival, are reported") {
  CHECK(cluster_error("arrives_twice") ==
        "arrives_twice, block 0 of 4: arrives_twice.cu:8: thread 0: arrives in the cluster without "
        "having waited since it arrived at arrives_twice.cu:7; wait once after each arrival");
  CHECK(cluster_error("waits_only", ThreadOrder::descending) ==
        "waits_only, block 3 of 4: waits_only.cu:7: thread 31: waits for the cluster without "
        "having arrived; arrive before each wait");
  CHECK(cluster_error("arrives_only") ==
        "arrives_only, block 0 of 4: arrives_only.cu:7: thread 0: returns without having waited "
        "for the cluster, where it arrived; wait once after each arrival");
}

TEST_CASE("blocks that wait for one that has ended without arriving are reported") {
  CHECK(cluster_error("ends_before", ThreadOrder::descending) ==
        "ends_before, blocks 2..3 of 4: block 2: threads 0..31 wait for the cluster at "
        "ends_before.cu:9; block 3: threads 0..31 have returned");
}

TEST_CASE("writes to a block that may not have begun, has ended or is none are reported") {
  CHECK(cluster_error("early") ==
        "early, block 0 of 4: early.cu:8: thread 0: gives to the block of rank 1, which may not "
        "have begun; wait for the cluster first");
  CHECK(cluster_error("to_ended") ==
        "to_ended, block 1 of 4: to_ended.cu:11: thread 0: gives to the block of rank 0, which has "
        "ended; have it wait for the cluster once more");
  CHECK(cluster_error("given_beyond") ==
        "given_beyond, block 0 of 4: given_beyond.cu:9: thread 0: gives to the block of rank 1 at "
        "an address outside its own shared memory; give a place of it");
  CHECK(cluster_error("nobody") ==
        "nobody, block 1 of 4: nobody.cu:9: thread 0: gives to the block of rank 2; the cluster's "
        "ranks are 0..1");
}

TEST_CASE("blocks that are no whole clusters are refused") {
  void* pointer = nullptr;
  void* arguments[] = {&pointer};
  for (const unsigned cluster : {0u, 4u, 9u}) {
    const Status status =
        cluster_kernels().launch("right", {{18, 1, 1}, {32, 1, 1}, 0, cluster}, arguments);
    REQUIRE_FALSE(status.has_value());
    CHECK(status.error().message() ==
          fmt::format("right: 18 blocks in clusters of {}; give whole clusters of at most 8",
                      cluster));
  }
}

}  // namespace sinter::shim_cluster_test
