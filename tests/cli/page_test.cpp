// The page of `explain --html`, without a browser: its data, its size, and that it loads nothing.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/program.h"
#include "runtime/temporary_directory.h"

namespace sinter::page_test {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxPageBytes = 2'000'000;
const std::string kLlama = SINTER_TESTS_DIR "/golden/llama";
const std::string kSpec = SINTER_SAMPLES_DIR "/llama-2-7b.json";

std::string page_of(std::vector<std::string> arguments) {
  const TemporaryDirectory place;
  const std::string file = place.path() + "/page.html";
  arguments.insert(arguments.begin(), "explain");
  arguments.insert(arguments.end(), {"--html", file});
  const ProgramRun run = run_program(arguments);
  REQUIRE_MESSAGE(run.code == 0, run.err);
  CHECK(run.err.find(fmt::format("sinter: page → {}\n", file)) != std::string::npos);
  return read_whole(file);
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

Json data_of(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"sinter-data\">";
  const size_t from = page.find(begin) + begin.size();
  return Json::parse(page.substr(from, page.find("</script>", from) - from));
}

/// Numbers of values, steps and texts lead to one.
void check_numbers(const Json& data) {
  const size_t texts = data["texts"].size();
  for (const Json& entry : data["entries"]) {
    const size_t values = entry["values"].size(), steps = entry["fused"]["steps"].size();
    for (const char* plan : {"fused", "unfused"}) {
      const Json& own = entry[plan];
      for (const Json& step : own["steps"])
        for (const Json& value : step["values"]) CHECK(value < values);
      for (const Json& edge : own["edges"]) {
        CHECK(edge[0] < static_cast<int64_t>(own["steps"].size()));  // -1: given
        CHECK(edge[1] < own["steps"].size());
        CHECK(edge[2] < values);
      }
    }
    std::set<size_t> sectioned;
    for (const Json& section : entry["sections"])
      for (const Json& step : section["steps"]) sectioned.insert(step.get<size_t>());
    CHECK(sectioned.size() == steps);
    size_t computed = 0;
    for (const Json& value : entry["values"]) {
      if (value.size() == 3) continue;
      ++computed;
      CHECK(value[3] < steps);
      for (const Json& operand : value[4]) CHECK(operand < values);
    }
    CHECK(entry["answers"].size() == computed * (computed - 1) / 2);
    for (const Json& answer : entry["answers"]) {
      CHECK(answer[0] < answer[1]);
      CHECK(answer[1] < computed);
      for (const size_t text : {2, 3, 4, 6})
        if (text < answer.size()) CHECK(answer[text] < texts);
      if (answer.size() > 5 && answer[5].is_array())
        for (const Json& value : answer[5]) CHECK(value < values);
    }
    for (const Json& decision : entry["decisions"]) CHECK(decision[2] < values);
    for (const Json& step : entry["fused"]["steps"])
      if (step.contains("cuda"))
        for (const Json& line : data["cuda"]["texts"].at(step["cuda"].get<size_t>()))
          CHECK(line < data["cuda"]["lines"].size());
  }
}

TEST_CASE("the page has a picture of each entry, and its numbers lead somewhere") {
  const std::string page = page_of({kLlama});
  const Json data = data_of(page);
  CHECK(data["entries"].size() == 3);
  check_numbers(data);
  CHECK(page.size() < kMaxPageBytes);
  CHECK(data["command"].get<std::string>().starts_with("sinter explain "));
  // The unfused plan has an op a kernel, and moves more.
  const Json& prefill = data["entries"][0];
  CHECK(prefill["unfused"]["total"]["launches"] > prefill["fused"]["total"]["launches"]);
  CHECK(prefill["unfused"]["total"]["bytes"] > prefill["fused"]["total"]["bytes"]);
  // The page with the CUDA text of each kernel that is shown.
  std::string text;
  for (const Json& line : data["cuda"]["lines"]) text += line.get<std::string>() + "\n";
  CHECK(text.find("__global__") != std::string::npos);
}

TEST_CASE("the page's answers are those of --why") {
  const Json data = data_of(page_of({kLlama, "--phase", "prefill"}));
  const Json& entry = data["entries"][0];
  std::map<std::string, size_t> number;
  for (size_t i = 0; i < entry["values"].size(); ++i)
    number[entry["values"][i][0].get<std::string>()] = i;
  const auto text = [&](const Json& at) {
    return data["texts"][at.get<size_t>()].get<std::string>();
  };
  for (const auto& [a, b] : {std::pair("l0.norm1", "l0.res1"),
                             {"l0.res1", "l0.norm2"},
                             {"embed", "l0.attn"},
                             {"l0.mlp.gate_up", "l0.mlp.silu"}}) {
    CAPTURE(a);
    const ProgramRun run =
        run_program({"explain", kLlama, "--phase", "prefill", "--json", "--why", a, b});
    const Json why = Json::parse(run.out)["answers"][0];
    const auto [low, high] = std::minmax(number.at(a), number.at(b));
    const auto at = std::find_if(
        entry["answers"].begin(), entry["answers"].end(),
        [low = low, high = high](const Json& one) { return one[0] == low && one[1] == high; });
    REQUIRE(at != entry["answers"].end());
    const Json& answer = *at;
    CHECK(text(answer[2]) ==
          why["text"].get<std::string>() + "\n" + why["reason"].get<std::string>());
    if (!why["same_kernel"]) CHECK(text(answer[4]) == why["change"].get<std::string>());
    CHECK((entry["values"][low][3] == entry["values"][high][3]) == why["same_kernel"]);
    if (why.contains("first_refusal"))
      CHECK(text(answer[7][0]) == why["first_refusal"]["a"].get<std::string>());
  }
}

TEST_CASE("a page of many values stores answers of its ops and edges alone") {
  constexpr size_t kReaders = 200;
  const TemporaryDirectory place;
  const std::string module = place.path() + "/m.sir";
  std::string outputs = "%u",
              ops = "    %t = exp %x : f32[8, 64]\n    %u = softmax %x : f32[8, 64]\n";
  for (size_t i = 0; i < kReaders; ++i) {
    outputs += fmt::format(", %y{}", i);
    ops += fmt::format("    %c{0} = constant {{value = {0}}} : f32[]\n", i);
    ops += fmt::format("    %y{0} = mul %t, %c{0} : f32[8, 64]\n", i);
  }
  std::ofstream(module) << fmt::format(
      "module @m {{\n  entry @main(%x: f32[8, 64]) -> ({}) {{\n{}  }}\n}}\n", outputs, ops);
  const Json data = data_of(page_of({module}));
  const Json& entry = data["entries"][0];
  std::map<std::string, size_t> number;
  for (size_t i = 0; i < entry["values"].size(); ++i)
    number[entry["values"][i][0].get<std::string>()] = i;
  CHECK(entry["answers"].size() <= 3 * kReaders);
  const auto stored = [&](const char* a, const char* b) {
    return std::any_of(entry["answers"].begin(), entry["answers"].end(), [&](const Json& one) {
      return one[0] == number.at(a) && one[1] == number.at(b);
    });
  };
  CHECK(stored("t", "y0"));  // one reads the other
  CHECK(stored("t", "y199"));
  CHECK(stored("y62", "y63"));  // neighbours that read one value
  CHECK_FALSE(stored("y0", "y100"));
}

TEST_CASE("the page loads nothing and has one script") {
  for (const std::string& page : {page_of({kLlama}), page_of({kSpec})}) {
    for (const char* part : {"src=", "url(", "@import", "fetch(", "XMLHttpRequest",
                             "https:", "<link", "<img", "<iframe", "import(", "eval(", "innerHTML"})
      CHECK_MESSAGE(count_of(page, part) == 0, part);
    CHECK(count_of(page, "http:") == count_of(page, "http://www.w3.org/2000/svg"));
    CHECK(count_of(page, "<script") == 3);
    CHECK(count_of(page, "</script>") == 3);
    CHECK(page.ends_with("</script></body></html>\n"));
  }
}

TEST_CASE("names and paths of any text stay text") {
  const TemporaryDirectory place;
  const std::string folder = place.path() + "/<img src=x onerror=alert(1)>";
  std::filesystem::create_directory(folder);
  const std::string module = folder + "/m.sir";
  std::ofstream(module) << "module @m {\n  entry @main(%x: f32[8]) -> (%\"</script><b>&\") {\n"
                           "    %\"</script><b>&\" = neg %x : f32[8]\n  }\n}\n";
  const std::string page = page_of({module, "--with-text"});
  CHECK(count_of(page, "</script>") == 3);
  CHECK(count_of(page, "<img") == 0);
  CHECK(count_of(page, "<b>") == 0);
  const Json data = data_of(page);
  CHECK(data["entries"][0]["values"][0][0] == "</script><b>&");
  check_numbers(data);
}

TEST_CASE("the module's text is in the page where it was asked for") {
  const Json without = data_of(page_of({kSpec})), with = data_of(page_of({kSpec, "--with-text"}));
  CHECK(!without["entries"][0].contains("module"));
  const std::string text = with["entries"][0]["module"];
  CHECK(text.find("%l0.attn_out = linear") != std::string::npos);
  CHECK(text.find("  // layers 1–30: as layer 0\n") != std::string::npos);
  CHECK(text.find("%l5.attn_out = linear") == std::string::npos);
}

TEST_CASE("a page of many equal layers is below 2 MB") {
  const TemporaryDirectory place;
  Json spec = Json::parse(read_whole(kSpec));
  spec["layers"] = 300;
  const std::string file = place.path() + "/deep.json";
  std::ofstream(file) << spec;
  const std::string page = page_of({file, "--phase", "prefill"});
  CHECK(page.size() < kMaxPageBytes);
  CHECK(page.find("layers 1–298: as layer 0") != std::string::npos);
}

TEST_CASE("two plans stand side by side on the page") {
  const Json data =
      data_of(page_of({kLlama, "--phase", "prefill", "--against-options", "--numerics fast"}));
  const Json& entry = data["against"]["entries"][0];
  CHECK(entry["here"]["predicted_s"] > entry["there"]["predicted_s"]);
  CHECK(entry["decisions"].size() > 0);
}

}  // namespace
}  // namespace sinter::page_test
