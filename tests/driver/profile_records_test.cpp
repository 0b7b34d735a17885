// From a device's records to tokens, times and rows.
#include <doctest/doctest.h>

#include <algorithm>

#include "driver/profile_case.h"

namespace sinter::profile_records_test {
namespace {

using namespace test;

TEST_CASE("kernels go to the token and step of their tag") {
  DeviceRecords records = tagged_records(2);
  records.kernels.insert(records.kernels.begin(), kernel("before", 10, 20, 7));  // without a tag
  const auto tokens = tokens_by_tag(records, 2, 2);
  REQUIRE(tokens);
  REQUIRE(tokens->size() == 2);
  for (const ProfiledToken& token : *tokens) {
    REQUIRE(token.kernels.size() == 3);
    CHECK(token.kernels[0].step == 0);
    CHECK(token.kernels[1].step == 1);
    CHECK(token.kernels[2].step == 1);
    CHECK(token.copies.size() == 1);
  }
  const auto missing = tokens_by_tag(records, 2, 3);
  REQUIRE(!missing);
  CHECK(missing.error().code == ExitCode::device);
  CHECK(missing.error().what == "CUPTI recorded no kernels of call 2 of 3, among 7 kernels");
}

TEST_CASE(
    "recorded kernels are dealt to tokens in their order; a number that has no equal parts is an "
    "error") {
  const auto tokens = tokens_in_order(records_of(3), 3);
  REQUIRE(tokens);
  REQUIRE(tokens->size() == 3);
  CHECK((*tokens)[1].kernels.front().record.start_ns == 110000);
  CHECK((*tokens)[1].copies.size() == 1);
  const auto wrong = tokens_in_order(records_of(3), 4);
  REQUIRE(!wrong);
  CHECK(wrong.error().what == "CUPTI recorded 9 kernels, which do not divide into 4 tokens");
  CHECK(!tokens_in_order({}, 0));
  CHECK(!tokens_in_order({}, 3));
}

TEST_CASE("a copy belongs to the token that began before it; one before all tokens to none") {
  DeviceRecords records = records_of(2);
  records.copies.push_back(copy(CopyRecord::Kind::host_to_device, 64, 500));
  records.copies.push_back(copy(CopyRecord::Kind::device_to_device, 64, 110000));
  const auto tokens = tokens_in_order(records, 2);
  REQUIRE(tokens);
  CHECK((*tokens)[0].copies.size() == 1);
  CHECK((*tokens)[1].copies.size() == 2);
  const std::vector<TokenCopies> copies = token_copies(*tokens);
  REQUIRE(copies.size() == 2);
  CHECK(copies[0].kind == CopyRecord::Kind::device_to_host);
  CHECK(copies[0].bytes == 4);
  CHECK(copies[0].count == 1);
  CHECK(copies[1].kind == CopyRecord::Kind::device_to_device);
  CHECK(copies[1].count == 0.5);
}

TEST_CASE("steps are taken over where the kernels are the same in the same order") {
  const auto stepped = tokens_by_tag(tagged_records(1), 2, 1);
  auto recorded = tokens_in_order(records_of(1), 1);
  REQUIRE(stepped);
  REQUIRE(recorded);
  ProfiledToken token = (*recorded)[0];
  REQUIRE(take_steps((*stepped)[0], token));
  CHECK(token.kernels[2].step == 1);

  ProfiledToken other = (*recorded)[0];
  other.kernels[1].record.name = "another_gemv";
  CHECK(!take_steps((*stepped)[0], other));
  CHECK(other.kernels[0].step == ProfiledKernel::kNoStep);
  other = (*recorded)[0];
  other.kernels.pop_back();
  CHECK(!take_steps((*stepped)[0], other));
}

TEST_CASE("a token's time is from the end of the one before it to its own") {
  const auto tokens = tokens_in_order(records_of(3), 3);
  REQUIRE(tokens);
  const TokenTimes times = token_times(*tokens);
  CHECK(times.period == doctest::Approx(10e-6));
  CHECK(times.kernels == doctest::Approx(6e-6));
  CHECK(times.gaps == doctest::Approx(1e-6));
  CHECK(times.pause == doctest::Approx(3e-6));
  const TokenTimes alone = token_times({(*tokens)[0]});
  CHECK(alone.period == doctest::Approx(7e-6));
  CHECK(alone.pause == 0);
}

TEST_CASE("kernels that overlap leave no gap, and their sum is more than their span") {
  DeviceRecords records;
  records.kernels = {kernel("a", 1000, 5000, 1), kernel("b", 2000, 3000, 1),
                     kernel("c", 4000, 6000, 1)};
  const auto tokens = tokens_in_order(records, 1);
  REQUIRE(tokens);
  const TokenTimes times = token_times(*tokens);
  CHECK(times.period == doctest::Approx(5e-6));
  CHECK(times.kernels == doctest::Approx(7e-6));
  CHECK(times.overlapped == doctest::Approx(2e-6));
  CHECK(times.gaps == 0);
  // Each has the time from the end of those before it.
  const std::vector<double> added = added_seconds((*tokens)[0]);
  REQUIRE(added.size() == 3);
  CHECK(added[0] == doctest::Approx(4e-6));
  CHECK(added[1] == 0);
  CHECK(added[2] == doctest::Approx(1e-6));
}

TEST_CASE("tokens of one graph overlap, and pause where it ends") {
  DeviceRecords records;  // four tokens in two graphs
  for (const uint64_t start : {1000, 21000}) {
    records.kernels.push_back(kernel("a", start, start + 4000, 1));
    records.kernels.push_back(kernel("b", start + 1000, start + 6000, 1));
    records.kernels.push_back(kernel("a", start + 5000, start + 8000, 1));  // waits for b
    records.kernels.push_back(kernel("b", start + 7000, start + 10000, 1));
  }
  records.copies = {
      copy(CopyRecord::Kind::device_to_host, 4, 7100),  // of the first, beside the second
      copy(CopyRecord::Kind::device_to_device, 4, 7200)};
  const auto tokens = tokens_in_order(records, 4);
  REQUIRE(tokens);
  CHECK((*tokens)[0].copies.size() == 1);
  CHECK((*tokens)[1].copies.size() == 1);
  CHECK((*tokens)[0].before_ns == 0);
  CHECK((*tokens)[1].before_ns == 7000);
  const std::vector<double> added = added_seconds((*tokens)[1]);
  REQUIRE(added.size() == 2);
  CHECK(added[0] == doctest::Approx(2e-6));
  CHECK(added[1] == doctest::Approx(2e-6));
  const TokenTimes times = token_times(*tokens);
  CHECK(times.pause == doctest::Approx(10e-6 / 3));  // one between the second token and the third
  CHECK(times.period == doctest::Approx(24e-6 / 3));
  CHECK(times.gaps == 0);
}

TEST_CASE("a kernel that was launched early is as fast as it is after its wait") {
  DeviceRecords records;
  records.kernels = {kernel("a", 1000, 5000, 1, 0), kernel("b", 1500, 6000, 2, 1)};
  const auto tokens = tokens_by_tag(records, 2, 1);
  REQUIRE(tokens);
  const auto rows = profile_rows({{"e", "a", {"x"}, {8000, 0, 0}}, {"e", "b", {"y"}, {2000, 0, 0}}},
                                 *tokens, ceilings());
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].seconds == doctest::Approx(4e-6));
  CHECK(rows[0].of_ceiling == doctest::Approx(0.5));
  CHECK(rows[1].seconds == doctest::Approx(1e-6));
  CHECK(rows[1].of_ceiling == doctest::Approx(0.5));
}

TEST_CASE("rows add up the kernels of equal steps, longest first") {
  std::vector<ProfiledStep> steps = two_steps();
  steps.push_back(steps[1]);  // the same product in another layer
  steps[2].values = {"l1.qkv"};
  steps.push_back({"decode", "copy_ffff", {"l0.empty"}, {1, 1, 0}});  // launches nothing
  DeviceRecords records = tagged_records(2);
  for (size_t i = 0; i < records.kernels.size(); ++i) records.kernels[i].tag = i / 3 * 4 + i % 3;
  const auto tokens = tokens_by_tag(records, 4, 2);
  REQUIRE(tokens);
  const std::vector<ProfileRow> rows = profile_rows(steps, *tokens, ceilings());

  REQUIRE(rows.size() == 2);
  const ProfileRow& gemm = rows[0];
  CHECK(gemm.title == "gemm 1x64x64 bf16");
  CHECK(gemm.functions == std::vector<std::string>{"gemv", "reduce"});
  CHECK(gemm.values == std::vector<std::string>{"l*.qkv"});
  CHECK(gemm.steps == 2);
  CHECK(gemm.launches == 2);
  CHECK(gemm.seconds == doctest::Approx(5e-6));
  CHECK(gemm.share == doctest::Approx(5.0 / 6));
  CHECK(gemm.cost.bytes() == 18200);
  CHECK(gemm.bytes_per_s() == doctest::Approx(18200 / 5e-6));
  CHECK(!gemm.against_copy);
  CHECK(gemm.of_ceiling == doctest::Approx(18200 / 5e-6 / 4e9));
  CHECK(gemm.first.name == "gemv");
  const ProfileRow& norm = rows[1];
  CHECK(norm.title == "add_rms_norm_1a2b");
  CHECK(norm.against_copy);  // half of its bytes are written
  CHECK(norm.of_ceiling == doctest::Approx(2000 / 1e-6 / 2e9));
}

TEST_CASE(
    "a kernel is bound by what it cannot be faster than; by latency where that is below half of "
    "its time") {
  const auto bound = [](StepCost cost, uint64_t nanoseconds) {
    DeviceRecords records;
    records.kernels = {kernel("k", 1000, 1000 + nanoseconds, 1, 0)};
    const auto tokens = tokens_by_tag(records, 1, 1);
    REQUIRE(tokens);
    return profile_rows({{"e", "k", {"y"}, cost}}, *tokens, ceilings()).at(0).bound;
  };
  // 4 GB/s read, 1 TFLOP/s.
  CHECK(bound({4000, 0, 0}, 1100) == Bound::memory);
  CHECK(bound({4000, 0, 0}, 1900) == Bound::memory);
  CHECK(bound({4000, 0, 0}, 2100) == Bound::latency);
  CHECK(bound({400, 0, 1e6}, 1100) == Bound::compute);
  CHECK(bound({4000, 0, 0.6e6}, 1100) == Bound::memory);
  CHECK(bound({0, 0, 0}, 1000) == Bound::latency);
}

TEST_CASE("kernels outside the plan have a row of their own") {
  auto tokens = tokens_in_order(records_of(1), 1);
  REQUIRE(tokens);
  const std::vector<ProfileRow> rows = profile_rows(two_steps(), *tokens, ceilings());
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].title == "(outside the plan)");
  CHECK(rows[0].launches == 3);
}

TEST_CASE("layers' numbers become stars") {
  CHECK(shortened({"l0.res1", "l12.res1", "embed", "l0", "logits.x", "l.x", "lx1.y"}) ==
        std::vector<std::string>{"l*.res1", "embed", "l0", "logits.x", "l.x", "lx1.y"});
}

}  // namespace
}  // namespace sinter::profile_records_test
