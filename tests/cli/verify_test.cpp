// `sinter verify` of modules: every entry, in the module's own types.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/golden.h"
#include "cli/program.h"
#include "cli/tensors.h"
#include "runtime/temporary_directory.h"

namespace sinter::verify_test {
namespace {

// Two entries over several types, a state and symbols of which one is bounded by another.
constexpr const char* kVerified = R"(module @mixed {
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
  write_whole(path, kVerified);
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

TEST_CASE("matrices that --dequantize 16 rounds are named") {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/codes.sir";
  write_whole(path, R"(module @codes {
  symbol N in [9, 64]
  weight %w : i32[64, 36] = file {tensor = "w"}
  entry @main(%x: bf16[N, 32]) -> (%y) {
    %m = dequantize %w {size = 32, codes = "int4 g128 f16"} : f32[64, 32]
    %y = linear %x, %m : bf16[N, 64]
  }
}
)");
  for (const char* type : {"16", "32"}) {
    const bool rounded = std::string_view(type) == "16";
    const auto says = [&](std::vector<std::string> command, std::string_view words) {
      command.insert(command.begin() + 1, path);
      command.insert(command.end(), {"--dequantize", type});
      const ProgramRun run = run_program(command);
      CHECK_MESSAGE(run.code == 0, run.err);
      CHECK_MESSAGE((run.out.find(words) != std::string::npos) == rounded, run.out);
    };
    says({"verify", "--random-weights", "3", "--device", "cpu"},
         "elements of quantized matrices, in 1 place");
    says({"explain"}, "quantized matrix: 1 by cast (its elements are rounded to bf16)");
  }
}

TEST_CASE("fast numerics are bounded against float64") {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/mixed.sir";
  write_whole(path, kVerified);
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

/// verify of a module in a folder that also gets the files of `run`.
class Verified {
 public:
  explicit Verified(const char* module) { write_whole(path("m.sir"), module); }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  void write(const std::string& name, const std::vector<TestTensor>& tensors) const {
    write_whole(path(name), tensors_file(tensors));
  }
  ProgramRun run(const std::string& command, std::vector<std::string> options) const {
    options.insert(options.begin(), {command, path("m.sir"), "--device", "cpu"});
    return run_program(options);
  }
  nlohmann::json report(std::vector<std::string> options, int code = 0) const {
    options.push_back("--json");
    const ProgramRun done = run("verify", options);
    CAPTURE(done.err);
    REQUIRE(done.code == code);
    return nlohmann::json::parse(done.out)["dtypes"][0];
  }
  void refused(const std::vector<std::string>& options, int code, const std::string& part) const {
    const ProgramRun done = run("verify", options);
    CAPTURE(done.err);
    CHECK(done.code == code);
    CHECK(done.out == "");
    CHECK(std::count(done.err.begin(), done.err.end(), '\n') == 1);
    CHECK(done.err.find(part) != std::string::npos);
  }

 private:
  TemporaryDirectory folder_;
};

TEST_CASE("a type cannot be chosen for a module") {
  const Verified place(kVerified);
  place.refused({"--random-weights", "3", "--dtype", "fp32"}, 2,
                "a module has its own element types");
}

TEST_CASE("calls of a module: several in one session, of sizes that options tell") {
  const Verified place(kVerified);
  const std::vector<std::string> base = {"--random-weights", "3",  "--symbol", "N=2",
                                         "--symbol",         "R=8"};
  const auto report = [&](const std::vector<std::string>& more) {
    std::vector<std::string> options = base;
    options.insert(options.end(), more.begin(), more.end());
    return place.report(options);
  };
  const auto one = report({}), three = report({"--calls", "3"});
  CHECK(one["calls"] == 2);
  CHECK(three["calls"] == 6);
  CHECK(three["elements"] == 3 * one["elements"].get<int64_t>());
  // The state of 8 rows, after each call and as an output, is a part of what is compared.
  CHECK(one["elements"] >= 3 * 8 * 32);
  CHECK(report({"--random-inputs", "5"})["float64"] == report({"--seed", "5"})["float64"]);
  CHECK(report({"--random-inputs", "5"})["float64"] != one["float64"]);
  // Rounding of %sum to bf16 is the largest error of all outputs, though it is in the second entry.
  CHECK(one["float64"]["value"] == "norm %sum");
  CHECK(one["float64"]["max"] > 0);
}

// The second call adds to what the first one left.
constexpr const char* kSum = R"(module @m {
  symbol N in [1, 4]
  weight %w : f32[2] = file {tensor = "w"}
  state %s : f32[4, 2]
  entry @f(%x: f32[N, 2], %slot: i32[N], %b: bf16[2]) -> (%s.next, %ids, %wide) {
    %y = slice %s {axis = 0, begin = 0, size = 1} : f32[1, 2]
    %row = add %x, %w : f32[N, 2]
    %sum = add %row, %y : f32[N, 2]
    %s.next = kv_append %s, %sum, %slot : f32[4, 2]
    %ids = add %slot, %slot : i32[N]
    %wide = add %b, %b : bf16[2]
  }
}
)";

TEST_CASE("a module is compared with reference outputs, by the names that run gives them") {
  const Verified place(kSum);
  place.write("w", {f32_tensor("w", {2}, {1, 2})});
  const TestTensor b = {"b", "BF16", {2}, std::string("\x80\x3f\x80\x3f", 4)};  // 1, 1
  const std::vector<TestTensor> inputs = {f32_tensor("x", {1, 2}, {10, 20}),
                                          i32_tensor("slot", {1}, {0}), b};
  place.write("in", inputs);
  std::vector<std::string> options = {"--weights",      place.path("w"), "--inputs",
                                      place.path("in"), "--calls",       "2"};
  std::vector<std::string> run = options;
  run.insert(run.end(), {"--out", place.path("out")});
  const ProgramRun done = place.run("run", run);
  REQUIRE_MESSAGE(done.code == 0, done.err);
  // 10 + 1, twice: the state of the first call is there in the second.
  CHECK(floats_of(read_whole(place.path("out")), "s.next")[0] == 22);

  options.insert(options.end(), {"--reference", place.path("out")});
  const auto report = place.report(options);
  REQUIRE(report["reference"].size() == 3);
  for (const auto& value : report["reference"]) CHECK(value["passed"] == true);

  const auto with = [&](const TestTensor& tensor, bool holds) {
    CAPTURE(tensor.name);
    place.write("out", {tensor});
    const auto compared = place.report(options, holds ? 0 : 3)["reference"];
    REQUIRE(compared.size() == 1);
    CHECK(compared[0]["passed"] == holds);
  };
  const auto states = [](float first) {
    return f32_tensor("f.s.next", {4, 2}, {first, 44, 0, 0, 0, 0, 0, 0});
  };
  with(states(22), true);
  with(states(22.004F), true);  // 1e-4 of 44
  with(states(22.005F), false);
  with(states(11), false);  // after one call
  with(states(NAN), false);
  with(i32_tensor("ids", {1}, {0}), true);
  with(i32_tensor("ids", {1}, {1}), false);
  const auto wide = [](const char* bytes) {
    return TestTensor{"wide", "BF16", {2}, std::string(bytes, 4)};
  };
  with(wide("\x00\x40\x00\x40"), true);   // 2, 2
  with(wide("\x04\x40\x00\x40"), true);   // 2.0625: 8 roundings of 2^-8 in 2.0625 allow 0.0645
  with(wide("\x05\x40\x00\x40"), false);  // 2.078

  const auto refused = [&](const std::vector<TestTensor>& tensors, const std::string& part) {
    place.write("out", tensors);
    place.refused(options, 4, part);
  };
  refused({}, "out: the file has no tensor of an output; name them as `sinter run --out` does");
  refused(inputs, "out: the file has no tensor of an output");
  refused({f32_tensor("zzz", {1}, {0})}, "tensor \"zzz\" is called like no input and no output");
  refused({f32_tensor("ids", {1}, {0})},
          "out: tensor ids is F32 [1], output %ids of entry f is i32 [1]");
  refused({i32_tensor("f.ids", {2}, {0, 0})},
          "out: tensor f.ids is I32 [2], output %ids of entry f is i32 [1]");
  // Inputs and outputs in one file.
  std::vector<TestTensor> both = inputs;
  both.push_back(states(22));
  place.write("in", both);
  place.write("out", both);
  CHECK(place.report(options)["reference"].size() == 1);
}

TEST_CASE("options of a module's calls that cannot be obeyed are refused") {
  const Verified place(kVerified);
  const auto refused = [&](std::vector<std::string> options, int code, const std::string& part) {
    options.insert(options.end(), {"--random-weights", "3"});
    place.refused(options, code, part);
  };
  refused({"--calls", "0"}, 2, "--calls: \"0\" is below 1");
  refused({"--symbol", "N=1", "--symbol", "N=1"}, 2, "N is given twice");
  refused({"--symbol", "Z=1"}, 2, "no symbol is called \"Z\"; it has N, S, R");
  refused({"--symbol", "S=17"}, 4, "entry append: S is 17, the plan is for 0 to 16");
  refused({"--inputs", "a", "--random-inputs", "1"}, 2, "--random-inputs 1 stands beside it");
  refused({"--numerics", "fast", "--calls", "2"}, 2, "fast numerics are checked on random inputs");
  refused({"--numerics", "fast", "--inputs", "a"}, 2, "fast numerics are checked on random inputs");
  const ProgramRun model = run_program(
      {"verify", SINTER_TESTS_DIR "/golden/gpt2", "--device", "cpu", "--random-inputs", "1"});
  CHECK(model.code == 2);
  CHECK(model.err.find("a language model is verified on tokens") != std::string::npos);
}

TEST_CASE("fewer steps than a reference has tokens are compared with its first tokens") {
  const std::string model = SINTER_TESTS_DIR "/golden/llama";
  for (const char* steps : {"6", "16", "18"}) {
    CAPTURE(steps);
    const ProgramRun run =
        run_program({"verify", model, "--reference", model + "/reference.safetensors", "--dtype",
                     "fp32", "--device", "cpu", "--steps", steps, "--json"});
    CHECK_MESSAGE(run.code == 0, run.err);
    CHECK(nlohmann::json::parse(run.out)["dtypes"][0]["tokens_match"] == true);
  }
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

TEST_CASE("--self checks an encoder, which generates nothing") {
  const ProgramRun text = run_program({"verify", kBert, "--self", "--device", "cpu"});
  CHECK_MESSAGE(text.code == 0, text.err);
  CHECK(text.out.ends_with("verified: every promise holds\n"));
  const ProgramRun json = run_program({"verify", kBert, "--self", "--device", "cpu", "--json"});
  const auto report = nlohmann::json::parse(json.out);
  CHECK(report["passed"] == true);
  CHECK(report["float64"]["holds"] == true);
  CHECK(run_program({"verify", kBert, "--self", "--device", "cpu", "--steps", "3"}).code == 2);
}

TEST_CASE("--invariant proves its promise on a model, an encoder and a plan") {
  const std::string model = SINTER_SAMPLES_DIR "/small-llama";
  const TemporaryDirectory folder;
  const std::string plan = folder.path() + "/plan", usual = folder.path() + "/usual";
  CHECK(run_program({"compile", model, "--dtype", "fp32", "--invariant", "-o", plan}).code == 0);
  CHECK(run_program({"compile", model, "--dtype", "fp32", "-o", usual}).code == 0);
  for (const std::string& path : {model, std::string(kBert), plan}) {
    const ProgramRun text = run_program({"verify", path, "--invariant", "--device", "cpu"});
    CHECK_MESSAGE(text.code == 0, text.err);
    CHECK(text.out.ends_with("verified: a token's bits depend on its own sequence alone\n"));
  }
  const ProgramRun json =
      run_program({"verify", kBert, "--invariant", "--device", "cpu", "--seed", "3", "--json"});
  const auto report = nlohmann::json::parse(json.out);
  CHECK(report["passed"] == true);
  CHECK(report["ways"].size() == 3);
  CHECK(report["ways"][2]["way"] == "packed last");
  CHECK(report["ways"][2]["tokens"] > 0);
  const auto refused = [&](std::vector<std::string> more, std::string_view part) {
    more.insert(more.begin(), "verify");
    more.insert(more.end(), {"--invariant", "--device", "cpu"});
    const ProgramRun run = run_program(more);
    CHECK(run.code == 2);
    CHECK_MESSAGE(run.err.find(part) != std::string::npos, run.err);
  };
  refused({usual}, "the plan was compiled without --invariant");
  refused({model, "--steps", "3"}, "--steps: --invariant reads seeded texts");
  refused({model, "--numerics", "fast"}, "leave out --numerics fast");
  refused({model, "--attention", "composed"}, "leave out --attention composed");
  refused({SINTER_SAMPLES_DIR "/layer_norm_residual.sir", "--random-weights", "1"},
          "--invariant is checked on sequences of tokens, got a module");
  // Beside another check it is an option of the plan.
  const ProgramRun self =
      run_program({"verify", kBert, "--self", "--invariant", "--device", "cpu"});
  CHECK_MESSAGE(self.code == 0, self.err);
}

}  // namespace
}  // namespace sinter::verify_test
