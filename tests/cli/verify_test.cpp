// `sinter verify` of modules: every entry, on random inputs, in the module's own types.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "runtime/temporary_directory.h"

namespace sinter {
namespace {

// Two entries over several types, a state and symbols of which one is bounded by another.
constexpr const char* kModule = R"(module @mixed {
  symbol N in [1, 64]
  symbol S in [0, 16] at_most N
  symbol R in [8, 128] step 8
  weight %table : f16[40, 32] = file {tensor = "table"}
  weight %w : bf16[32] = constant {value = 0.75}
  state %cache : f16[R, 32]
  entry @append(%ids: i32[N], %slot: i32[N]) -> (%kept, %y) {
    %x = embedding %table, %ids : f16[N, 32]
    %twice = add %x, %x : f16[N, 32]
    %kept = kv_append %cache, %twice, %slot : f16[R, 32]
    %y = softmax %twice : f16[N, 32]
  }
  entry @norm(%x: bf16[S, 32], %r: bf16[S, 32]) -> (%sum, %y) {
    %sum = add %x, %r : bf16[S, 32]
    %y = rms_norm %sum, %w {eps = 0.5} : bf16[S, 32]
  }
}
)";

TEST_CASE("a module is verified in its own types") {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/mixed.sir";
  write_whole(path, kModule);
  const std::vector<std::string> command = {"verify", path,       "--random-weights",
                                            "3",      "--device", "cpu"};
  const ProgramRun text = run_program(command);
  CAPTURE(text.err);
  CHECK(text.code == 0);
  CHECK(text.out.starts_with("its own element types\n  fused = unfused  bit for bit: "));
  CHECK(text.out.ends_with("verified: every promise holds\n"));

  std::vector<std::string> in_json = command;
  in_json.push_back("--json");
  const auto json = nlohmann::json::parse(run_program(in_json).out);
  REQUIRE(json["dtypes"].size() == 1);
  const auto& report = json["dtypes"][0];
  CHECK(report["dtype"].is_null());
  CHECK(report["calls"] == 2);  // one an entry
  CHECK(report["launches"]["fused"] < report["launches"]["unfused"]);
  // 19 rows of `append`, 16 of `norm`, two results each at least, and the state.
  CHECK(report["elements"] >= (19 + 16) * 2 * 32 + 24 * 32);
}

TEST_CASE("fast numerics are bounded against float64") {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/mixed.sir";
  write_whole(path, kModule);
  std::vector<std::string> command = {"verify",   path,  "--random-weights", "3",
                                      "--device", "cpu", "--numerics",       "fast"};
  const ProgramRun text = run_program(command);
  CAPTURE(text.err);
  CHECK(text.code == 0);
  CHECK(text.out.find("against float64  fused and unfused: ") != std::string::npos);
  CHECK(text.out.find("append %kept") != std::string::npos);
  CHECK(text.out.find("bit for bit") == std::string::npos);
  command.push_back("--json");
  const auto json = nlohmann::json::parse(run_program(command).out);
  const auto& report = json["dtypes"][0];
  CHECK(report["calls"] == 2 * 16);
  CHECK(!report.contains("bitwise"));
  CHECK(report["bounds"].size() == 6);  // two results an entry, and the state in each
  for (const auto& bound : report["bounds"]) {
    CHECK(bound["holds"] == true);
    CHECK(bound["rms"]["fused"] <= 1.05 * bound["rms"]["unfused"].get<double>());
  }
}

TEST_CASE("a type cannot be chosen for a module, and it has no reference") {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/mixed.sir";
  write_whole(path, kModule);
  const auto refused = [&](std::vector<std::string> more, int code, const std::string& part) {
    more.insert(more.begin(), {"verify", path, "--random-weights", "3", "--device", "cpu"});
    const ProgramRun run = run_program(more);
    CAPTURE(run.err);
    CHECK(run.code == code);
    CHECK(run.out == "");
    CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
    CHECK(run.err.find(part) != std::string::npos);
  };
  refused({"--dtype", "fp32"}, 2, "a module has its own element types");
  refused({"--reference", SINTER_TESTS_DIR "/golden/gpt2/reference.safetensors"}, 4,
          "drop --reference");
}

TEST_CASE("--self checks a language model, and takes no reference and no forced tokens") {
  const std::string model = SINTER_SAMPLES_DIR "/small-llama";
  const ProgramRun text = run_program({"verify", model, "--self", "--device", "cpu"});
  CHECK_MESSAGE(text.code == 0, text.err);
  CHECK(text.out.ends_with("verified: every promise holds\n"));
  const ProgramRun json =
      run_program({"verify", model, "--self", "--device", "cpu", "--steps", "3", "--json"});
  const auto report = nlohmann::json::parse(json.out);
  CHECK(report["passed"] == true);
  CHECK(report["fused"]["tokens"].size() == 3);
  CHECK(report["fused"]["tokens"] == report["unfused"]["tokens"]);
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--teacher-forced"}, {"--reference", "f"}, {"--no-fuse"}}) {
    std::vector<std::string> command = {"verify", model, "--self"};
    command.insert(command.end(), more.begin(), more.end());
    CHECK(run_program(command).code == 2);
  }
}

}  // namespace
}  // namespace sinter
