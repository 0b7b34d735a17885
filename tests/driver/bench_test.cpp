// The report of `bench` on samples, and the least work that it counts for a model.
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "driver/bench/costs.h"
#include "driver/bench/report.h"
#include "driver/compile/compile.h"
#include "driver/profile/report.h"
#include "runtime/temporary_directory.h"
#include "support/result.h"

namespace sinter::bench_test {
namespace {

Model sample(const std::string& name) {
  LoadOptions options;
  options.dtype = DType::f16;
  return value(load_model(SINTER_SAMPLES_DIR "/" + name, options));
}

Module frozen(const Model& model) { return value(freeze(model.module, {})); }

TEST_CASE(
    "a decode step reads the weights it multiplies by, looked-up rows and visible cache rows") {
  const Model llama = sample("llama-2-7b.json");
  const double multiplied = 32.0 * (4 * 4096 * 4096 + 3 * 4096 * 11008) + 32000 * 4096 + 65 * 4096;
  const double frequencies = 64 * 4, cache_row = 32 * 2 * 4096 * 2;
  for (double sequences : {1, 4}) {
    const double expected =
        2 * multiplied + frequencies + sequences * (2 * 4096 + 1024 * cache_row);
    CHECK(decode_bytes(frozen(llama), *llama.spec, static_cast<int64_t>(sequences), 1024) ==
          expected);
  }
  // The output projection is the table of tokens: all of it is read. Of the positions' one row is.
  const Model gpt2 = sample("gpt2-124m.json");
  const double parameters = 124439808, positions = 1024 * 768;
  CHECK(decode_bytes(frozen(gpt2), *gpt2.spec, 1, 100) ==
        2 * (parameters - positions + 768) + 100 * 12 * 2 * 768 * 2);
}

TEST_CASE("a decode step reads the matrices of the experts that its tokens choose") {
  const Model qwen = sample("qwen3-30b-a3b.json");
  const Module module = frozen(qwen);
  const double expert = 2.0 * 3 * 2048 * 768;
  CHECK(decode_bytes(module, *qwen.spec, 1, 0, 8) - decode_bytes(module, *qwen.spec, 1, 0, 0) ==
        48 * 8 * expert);
}

TEST_CASE("a window bounds the cache rows and the keys of a query") {
  Model model = sample("gpt2-124m.json");
  const Module module = frozen(model);
  const double without = decode_bytes(module, *model.spec, 1, 0),
               full = prefill_operations(module, *model.spec, 1, 8);
  model.spec->window = 3;
  CHECK(decode_bytes(module, *model.spec, 1, 100) == without + 3 * 12 * 2 * 768 * 2);
  // 1 + 2 + 3 * 6 keys instead of 1 + 2 + ... + 8.
  CHECK(full - prefill_operations(module, *model.spec, 1, 8) == 4.0 * 12 * 768 * (36 - 21));
}

TEST_CASE(
    "a prefill multiplies every token by the layers and the last ones by the output projection") {
  const Model llama = sample("llama-2-7b.json");
  const double layers = 32.0 * (4 * 4096 * 4096 + 3 * 4096 * 11008), output = 32000 * 4096;
  const double attention = 4.0 * 32 * 4096 * (512 * 513 / 2);
  for (double sequences : {1, 3})
    CHECK(prefill_operations(frozen(llama), *llama.spec, static_cast<int64_t>(sequences), 512) ==
          sequences * (2 * layers * 512 + 2 * output + attention));
}

/// A case with made-up samples: medians of 2 ms fused, 5 ms unfused.
BenchReport made_up() {
  BenchReport report;
  report.model = "toy";
  report.dtype = "bf16";
  report.machine.device = "Some GPU";
  report.machine.driver = "CUDA 13.0";
  report.machine.libraries = {"cuBLASLt 130000"};
  report.repeat = 5;
  report.weight_bytes = 6e9;
  report.seconds = {{"reading", 0.25}, {"tuning", 1.5}, {"first calls", 12.0}};
  BenchCase& one = report.cases.emplace_back();
  one.name = "decode";
  one.sizes = {{"context", 1024}, {"batch", 1}};
  one.amount = 6e9;
  one.ceiling_name = "read";
  one.ceiling = {4e12, 1e9, {0.25e-3}, "kernel"};
  one.fused = {100, 1.9e-3, {2e-3, 1e-3, 3e-3, 2e-3, 2e-3}, {4e-3, 4e-3, 4e-3, 4e-3, 4e-3}};
  one.unfused = {300, {}, {5e-3, 5e-3, 5e-3, 5e-3, 15e-3}, {7e-3, 7e-3, 7e-3, 7e-3, 7e-3}};
  return report;
}

TEST_CASE("the table shows medians, tails, rates and shares") {
  CHECK(bench_text(made_up()) == R"(model     toy, bf16, weights of 6.00 GB
device    Some GPU, CUDA 13.0, cuBLASLt 130000
before    reading 250 ms, tuning 1.50 s, first calls 12.0 s
samples   5 of each plan, in turns; products by the library's first proposal or the record
ceilings  read 4.00 TB/s (kernel, 1.00 GB a call)

                      plan      median  predicted      p95     host       rate  of ceiling  launches  speedup
decode, context 1024  fused    2.00 ms    1.90 ms  2.80 ms  4.00 ms  3.00 TB/s      75.0 %       100     2.50
                      unfused  5.00 ms          –  13.0 ms  7.00 ms  1.20 TB/s      30.0 %       300
)");
}

TEST_CASE("Markdown and CSV have a line for each plan of a case") {
  BenchReport report = made_up();
  report.model = "a|b,c";
  CHECK(bench_markdown(report) == R"(**a\|b,c**, bf16 on Some GPU, 5 samples

| case | plan | median | predicted | p95 | of ceiling | launches | speedup |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |
| decode, context 1024 | fused | 2.00 ms | 1.90 ms | 2.80 ms | 75.0 % | 100 | 2.50 |
|  | unfused | 5.00 ms | – | 13.0 ms | 30.0 % | 300 |  |
)");
  CHECK(
      bench_csv(report) ==
      "model,device,case,sizes,plan,median_s,p95_s,host_median_s,predicted_s,of_ceiling,launches\n"
      "\"a|b,c\",Some GPU,decode,context=1024 batch=1,fused,0.002,0.0028,0.004,0.0019,0.75,100\n"
      "\"a|b,c\",Some GPU,decode,context=1024 batch=1,unfused,0.005,0.013,0.007,,0.3,300\n");
}

TEST_CASE("a saved benchmark stands beside another one") {
  const TemporaryDirectory place;
  const std::string file = place.path() + "/result.json";
  BenchReport report = made_up();
  std::ofstream(file) << bench_json(report);
  const auto saved = read_bench(file);
  REQUIRE(saved);
  REQUIRE(saved->cases.size() == 1);
  CHECK(saved->cases[0].fused_s == 2e-3);
  report.cases[0].fused.device_s = {1e-3};
  CHECK(bench_against_text(report, *saved) == R"(beside toy on Some GPU
                        plan        here    there
  decode, context 1024  fused    1.00 ms  2.00 ms  -50.0 %
                        unfused  5.00 ms  5.00 ms   +0.0 %
)");
  CHECK(bench_markdown(report, &*saved).find("| 2.00 ms | -50.0 % |\n") != std::string::npos);
  CHECK(bench_csv(report, &*saved).find(",0.002\n") != std::string::npos);
  CHECK(bench_html(report, &*saved).find("\"cases\":[[0.002,0.005]]") != std::string::npos);
  // Other sizes are another case.
  report.cases[0].sizes[0].second = 2048;
  CHECK(bench_against_text(report, *saved).find("–") != std::string::npos);
  for (const char* wrong : {"{}", "[]", R"({"machine":{},"cases":[{}]})"}) {
    std::ofstream(file) << wrong;
    CHECK_FALSE(read_bench(file));
  }
}

TEST_CASE("the profile of a token follows the table and is in the JSON") {
  BenchReport report = made_up();
  const std::string alone = bench_text(report);
  CHECK_FALSE(nlohmann::json::parse(bench_json(report)).contains("decode_kernels"));
  Profile& profile = report.decode.emplace();
  profile.model = "toy";
  profile.phase = "decode";
  profile.untraced_s = 2e-3;
  CHECK(bench_text(report) == alone + "\n" + profile_text(profile));
  CHECK(nlohmann::json::parse(bench_json(report))["decode_kernels"] ==
        nlohmann::json::parse(profile_json(profile)));
}

TunedForm form(int64_t stages) { return {{{"stages", stages}, {"warps", 16}}, 0}; }

TEST_CASE("tuned forms stand before the table and in the JSON") {
  BenchReport report = made_up();
  CHECK_FALSE(nlohmann::json::parse(bench_json(report)).contains("forms"));
  const std::string alone = bench_text(report);
  report.forms = {
      .decisions = {{"gemv", "bf16[64, 4096] splits=1 tokens=8", form(4), form(3), 2e-3, 1.98e-3},
                    {"gemv", "bf16[64, 64] splits=1 tokens=8", form(4), form(4), 1.98e-3, 1.98e-3}},
      .usual_s = 2.01e-3,
      .chosen_s = 1.99e-3};
  const std::string text = bench_text(report);
  const size_t at = alone.find("\n\n") + 2;
  CHECK(text.substr(0, at) == alone.substr(0, at));
  CHECK(
      text.substr(at) ==
      R"(form of                                usual form          chosen                a token    with it
gemv bf16[64, 4096] splits=1 tokens=8  stages 4, warps 16  stages 3, warps 16  2000.0 µs  1980.0 µs
gemv bf16[64, 64] splits=1 tokens=8    stages 4, warps 16  the same            1980.0 µs
all                                                                            2010.0 µs  1990.0 µs

)" + alone.substr(at));
  const nlohmann::json json = nlohmann::json::parse(bench_json(report))["forms"];
  CHECK(json["chosen_s"] == 1.99e-3);
  CHECK(json["decisions"][0]["family"] == "gemv");
  CHECK(json["decisions"][0]["chosen"]["stages"] == 3);
  CHECK(json["decisions"][0]["usual"]["warps"] == 16);
  CHECK(json["decisions"][1]["usual_s"] == 1.98e-3);
}

TEST_CASE("the routing of a model with experts is a line and a member of the JSON") {
  BenchReport report = made_up();
  CHECK_FALSE(nlohmann::json::parse(bench_json(report)).contains("experts"));
  report.experts = {ExpertRouting::uniform, 8, 128, 64};
  CHECK(bench_text(report).find(
            "\nrouting   uniform; 8 tokens read 64.0 of a layer's 128 experts\n") !=
        std::string::npos);
  CHECK(
      nlohmann::json::parse(bench_json(report))["experts"] ==
      nlohmann::json::parse(R"({"routing": "uniform", "tokens": 8, "count": 128, "read": 64.0})"));
}

TEST_CASE("JSON holds every sample") {
  const BenchReport report = made_up();
  const nlohmann::json json = nlohmann::json::parse(bench_json(report));
  CHECK(json["machine"]["libraries"][0] == "cuBLASLt 130000");
  CHECK(json["seconds"]["tuning"] == 1.5);
  CHECK(json["seconds"]["first calls"] == 12.0);
  const nlohmann::json& one = json["cases"][0];
  CHECK(one["fused"]["device_s"].get<std::vector<double>>() == report.cases[0].fused.device_s);
  CHECK(one["unfused"]["host_s"].get<std::vector<double>>() == report.cases[0].unfused.host_s);
  CHECK(one["fused"]["predicted_s"] == 1.9e-3);
  CHECK(one["unfused"]["predicted_s"].is_null());
  CHECK(one["fused"]["median_s"] == 2e-3);
  CHECK(one["fused"]["of_ceiling"].get<double>() == doctest::Approx(0.75));
  CHECK(one["speedup"].get<double>() == doctest::Approx(2.5));
  CHECK(one["sizes"]["context"] == 1024);
  CHECK(one["unit"] == "B");
}

TEST_CASE("without samples nothing is divided by zero") {
  const BenchCase empty;
  CHECK(empty.speedup() == 0);
  CHECK(empty.per_s(empty.fused) == 0);
  CHECK(empty.of_ceiling(empty.fused) == 0);
}

}  // namespace
}  // namespace sinter::bench_test
