// A profile as text, JSON and timeline.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "driver/profile/report.h"
#include "driver/profile_case.h"

namespace sinter::profile_report_test {
namespace {

using namespace test;

Profile made_up() {
  Profile profile;
  profile.model = "tiny";
  profile.phase = "decode";
  profile.device = "cuda:0 (NVIDIA H200)";
  profile.driver = "13.0";
  profile.dtype = "bf16";
  profile.sizes = {{"context", 1024}};
  profile.count = 3;
  profile.ceilings = ceilings();
  profile.untraced_s = 9e-6;
  profile.steps = two_steps();
  const auto stepped = tokens_by_tag(tagged_records(3), 2, 3);
  auto recorded = tokens_in_order(records_of(3), 3);
  REQUIRE(stepped);
  REQUIRE(recorded);
  for (ProfiledToken& token : *recorded) REQUIRE(take_steps((*stepped)[0], token));
  profile.stepped = {*stepped, token_times(*stepped), token_copies(*stepped)};
  profile.recorded = {*recorded, token_times(*recorded), token_copies(*recorded)};
  profile.matched = true;
  profile.rows = profile_rows(profile.steps, *recorded, profile.ceilings);
  return profile;
}

TEST_CASE("the text says where a token's time goes and what crosses the bus") {
  CHECK(profile_text(made_up()) ==
        R"(tiny: decode, context 1024 on cuda:0 (NVIDIA H200), bf16, fused, 3 tokens

per token                   time   kernels  overlapped      gaps     pause  launches
recorded graph          0.009 ms
recorded graph, traced  0.010 ms  0.006 ms    0.000 ms  0.001 ms  0.003 ms         3
step by step, traced    0.010 ms  0.006 ms    0.000 ms  0.001 ms  0.003 ms         3

over the bus per token: 1 × 4 B device to host
copies and fills inside the device: none
ceilings of this run: read 4.00 GB/s, copy 2.00 GB/s (by driver), products 1.00 TFLOP/s (by cuBLASLt 130000)
a token moves 11.1 KB: 1.23 GB/s over its time, 30.8 % of the read's ceiling

kernel             launches    µs   share    bytes       rate  of ceiling  bound by  computes
gemm 1x64x64 bf16         2  5.00  83.3 %  9.10 KB  1.82 GB/s    45.5 % r  latency   l*.qkv
add_rms_norm_1a2b         1  1.00  16.7 %  2.00 KB  2.00 GB/s   100.0 % c  memory    l*.res1 l*.norm2

class     launches    µs   share
products         2  5.00  83.3 %
norms            1  1.00  16.7 %

Per token, from the recorded graph. Of ceiling: r of the read's, c of the copy's. Bound by what would
take at least 50 % of the time at its own ceiling, else by latency. A kernel's time counts
from the end of those that began before it.
A token takes 0.009 ms: kernels run for 0.006 ms (0.000 ms of their time overlapped), idle for 0.003 ms, 33.3 %.
)");
}

TEST_CASE("a graph that ran other kernels is said, and nothing over the bus too") {
  Profile profile = made_up();
  profile.matched = false;
  profile.recorded.copies.clear();
  const std::string text = profile_text(profile);
  CHECK(text.find("over the bus per token: nothing\n") != std::string::npos);
  CHECK(text.find("from the steps launched one by one") != std::string::npos);
  CHECK(text.find("second-level cache") == std::string::npos);
  profile.rows[1].of_ceiling = 1.5;
  CHECK(profile_text(profile).find("Shares above 100 % are of bytes that the second-level cache "
                                   "holds, or that were read early.\n") != std::string::npos);
}

TEST_CASE("what kernels of a chain overlap is neither run twice nor idle") {
  Profile profile = made_up();
  DeviceRecords records;  // 4 µs, 1 µs more of the second, and after 2 µs of nothing 3 µs
  records.kernels = {kernel("a", 1000, 5000, 1), kernel("b", 2000, 6000, 1),
                     kernel("c", 8000, 11000, 1)};
  const auto tokens = tokens_in_order(records, 1);
  REQUIRE(tokens);
  profile.recorded = {*tokens, token_times(*tokens), {}};
  profile.untraced_s = 12e-6;
  CHECK(
      profile_text(profile).ends_with("A token takes 0.012 ms: kernels run for 0.008 ms (0.003 ms "
                                      "of their time overlapped), idle for "
                                      "0.004 ms, 33.3 %.\n"));
  const auto json = nlohmann::json::parse(profile_json(profile));
  CHECK(json["busy_s"].get<double>() == doctest::Approx(8e-6));
  CHECK(json["idle_s"].get<double>() == doctest::Approx(4e-6));
  CHECK(json["recorded"]["overlapped_s"].get<double>() == doctest::Approx(3e-6));
  profile.untraced_s = 7e-6;  // traced kernels may take longer
  CHECK(profile.idle_s() == 0);
}

TEST_CASE("the routing of a model with experts follows the title, and is in the JSON") {
  Profile profile = made_up();
  profile.experts = {ExpertRouting::skewed, 1, 128, 8};
  CHECK(profile_text(profile).find(
            "3 tokens\nrouting skewed; 1 token reads 8.0 of a layer's 128 experts\n\n") !=
        std::string::npos);
  CHECK(nlohmann::json::parse(profile_json(profile))["experts"]["routing"] == "skewed");
}

TEST_CASE("the JSON holds all numbers") {
  const auto json = nlohmann::json::parse(profile_json(made_up()));
  CHECK(json["phase"] == "decode");
  CHECK(json["sizes"]["context"] == 1024);
  CHECK(json["recorded"]["copies"][0]["kind"] == "device to host");
  CHECK(json["recorded"]["copies"][0]["crosses_bus"] == true);
  CHECK(json["recorded"]["launches"] == 3);
  CHECK(json["rows_from"] == "recorded");
  REQUIRE(json["rows"].size() == 2);
  CHECK(json["rows"][0]["functions"] == std::vector<std::string>{"gemv", "reduce"});
  CHECK(json["rows"][0]["first_launch"]["grid"] == std::vector<int>{132, 0, 0});
  CHECK(json["rows"][1]["ceiling"] == "copy");
  CHECK(json["rows"][1]["class"] == "norms");
  REQUIRE(json["classes"].size() == 2);
  CHECK(json["classes"][0]["class"] == "products");
  CHECK(json["classes"][0]["seconds"].get<double>() == doctest::Approx(5e-6));
  CHECK(json["steps"][0]["class"] == "norms");
  CHECK(json["steps"].size() == 2);
}

TEST_CASE("the page has the rows with their class, and the launches of the last token") {
  const Profile profile = made_up();
  const auto json = nlohmann::json::parse(profile_page_json(profile));
  CHECK(json["rows"].size() == profile.rows.size());
  CHECK(json["launches"].size() == profile.recorded.tokens.back().kernels.size());
  for (const auto& launch : json["launches"]) CHECK(launch[2] < profile.rows.size());
  CHECK_FALSE(json.contains("steps"));
  for (const auto& row : json["rows"]) CHECK(row["class"].is_string());
  const std::string page = profile_html(profile);
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK(page.find("roofline") != std::string::npos);
  // For the test in a browser, tests/page.
  if (const char* path = std::getenv("SINTER_PROFILE_PAGE")) std::ofstream(path) << page;
}

TEST_CASE("the timeline has every kernel and copy of both runs, in microseconds from its first") {
  Profile profile = made_up();
  profile.steps[0].values = {"l0.res1\xff\n"};  // names are a file's
  const auto json = nlohmann::json::parse(profile_trace(profile));
  const auto& events = json["traceEvents"];
  CHECK(events.size() == 2 * (1 + 3 * (3 + 1)));
  size_t names = 0;
  for (const auto& event : events) {
    REQUIRE(event.contains("ph"));
    if (event["ph"] == "M") {
      ++names;
      continue;
    }
    REQUIRE(event["ph"] == "X");
    CHECK(event["ts"].get<double>() >= 0);
    CHECK(event["dur"].get<double>() > 0);
    CHECK(event["tid"] == 7);
  }
  CHECK(names == 2);
  CHECK(events[1]["ts"] == 0.0);
  CHECK(events[1]["dur"] == 1.0);
  CHECK(events[2]["name"] == "l0.qkv");
  CHECK(events[2]["args"]["function"] == "gemv");
  CHECK(events[5]["ts"] == 10.0);
}

}  // namespace
}  // namespace sinter::profile_report_test
