// Sums over ranks: their order, what ranks must agree in, and the end of one that others wait for.
#include "runtime/rank_group.h"

#include <doctest/doctest.h>

#include <thread>

#include "runtime/evaluate/host_tensor.h"
#include "support/result.h"

namespace sinter::rank_group_test {
namespace {

/// all_reduce of a tensor for each rank, on threads; the results, or the errors.
std::vector<Status> reduce(RankGroup& group, std::vector<HostTensor>& tensors,
                           llvm::ArrayRef<std::string> steps) {
  std::vector<Status> done(group.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < group.size(); ++rank)
    threads.emplace_back([&, rank] {
      const HostTensor own = tensors[rank];
      done[rank] = group.all_reduce(
          rank, {steps[rank % steps.size()], own.dtype, own.bytes.data(), own.bytes.size()},
          tensors[rank].bytes.data());
      group.leave(rank, !done[rank]);
    });
  for (std::thread& thread : threads) thread.join();
  return done;
}

HostTensor floats(std::vector<float> values) {
  HostTensor tensor = value(make_tensor(DType::f32, {static_cast<int64_t>(values.size())}));
  std::copy(values.begin(), values.end(), tensor.data<float>());
  return tensor;
}

TEST_CASE("sums take the order of the ranks and are the same on all of them") {
  constexpr size_t kRanks = 4;
  constexpr int64_t kCount = 3000;  // more than one piece
  std::vector<HostTensor> tensors;
  std::vector<float> sums(kCount);
  for (size_t rank = 0; rank < kRanks; ++rank) {
    std::vector<float> own(kCount);
    for (int64_t i = 0; i < kCount; ++i) {
      // Of very different sizes, so that another order has other bits.
      own[i] = (rank % 2 == 0 ? 1e8f : -1e8f) + 0.37f * static_cast<float>(i * (rank + 1));
      sums[i] = rank == 0 ? own[i] : sums[i] + own[i];
    }
    tensors.push_back(floats(own));
  }
  RankGroup group(kRanks);
  for (const Status& done : reduce(group, tensors, {"%y"})) REQUIRE(done);
  for (const HostTensor& tensor : tensors) CHECK(tensor.bytes == floats(sums).bytes);
  CHECK_FALSE(group.first_failed());
}

TEST_CASE("i32 wraps around") {
  std::vector<HostTensor> tensors(2, value(make_tensor(DType::i32, {1})));
  tensors[0].data<int32_t>()[0] = INT32_MAX;
  tensors[1].data<int32_t>()[0] = 1;
  RankGroup group(2);
  for (const Status& done : reduce(group, tensors, {"%y"})) REQUIRE(done);
  CHECK(tensors[0].data<int32_t>()[0] == INT32_MIN);
  CHECK(tensors[1].bytes == tensors[0].bytes);
}

TEST_CASE("ranks with other sizes, or at other collectives, fail together") {
  RankGroup sizes(2), steps(2);
  std::vector<HostTensor> unequal = {floats({1, 2}), floats({1})},
                          equal = {floats({1}), floats({2})};
  for (const Status& done : reduce(sizes, unequal, {"entry e, %y"})) {
    REQUIRE_FALSE(done);
    CHECK(done.error().message().find("all ranks must call the same entries with the same sizes") !=
          std::string::npos);
  }
  CHECK(sizes.first_failed());
  for (const Status& done : reduce(steps, equal, {"entry e, %y", "entry e, %z"})) CHECK_FALSE(done);
}

TEST_CASE("a rank that ends does not keep the others waiting") {
  RankGroup group(3);
  group.leave(1, true);
  HostTensor own = floats({1});
  const Status done = group.all_reduce(
      0, {"entry e, %y", own.dtype, own.bytes.data(), own.bytes.size()}, own.bytes.data());
  REQUIRE_FALSE(done);
  CHECK(done.error().message().find("rank 1 has ended, this rank waits for it") !=
        std::string::npos);
  CHECK(group.first_failed() == 1);
}

}  // namespace
}  // namespace sinter::rank_group_test
