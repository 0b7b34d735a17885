// A plan's folder in place of the model that it was compiled from: every command gives the same
// bytes, without the model's config and without NVRTC.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "golden/models.h"
#include "runtime/temporary_directory.h"

namespace sinter::plans_run_test {
namespace {

namespace fs = std::filesystem;

const std::string kGolden = SINTER_TESTS_DIR "/golden";

/// The NVRTC that is found first cannot be loaded: whoever compiles ends with an error.
ProgramRun sinter(const std::vector<std::string>& arguments) {
  static const TemporaryDirectory libraries;
  write_whole(libraries.path() + "/libnvrtc.so.13", "no library");
  return run_program(arguments, {"LD_LIBRARY_PATH=" + libraries.path(),
                                 "SINTER_CACHE_DIR=" + libraries.path() + "/cache"});
}

/// A run that must succeed: what it prints.
std::string printed(const std::vector<std::string>& arguments) {
  const ProgramRun run = sinter(arguments);
  REQUIRE_MESSAGE(run.code == 0, run.err);
  return run.out;
}

void compile_to(const std::string& model, const std::string& folder,
                std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"compile", model, "-o", folder, "-q", "--no-machine-code"});
  printed(more);
}

/// Logits and tokens of a decoder, the hidden state of an encoder.
std::string results_of(const std::string& model, const std::string& scratch, bool encoder) {
  if (encoder)
    return printed({"embed", model, "--tokens", "1,2,3", "--tokens", "4,5", "--device", "cpu"});
  const std::string text = printed({"run", model, "--tokens", "1,17,4,5", "-n", "5", "--out",
                                    scratch, "--json", "--device", "cpu"});
  return text + read_whole(scratch);
}

TEST_CASE("the plan of every golden model gives the model's bytes, without its config") {
  const TemporaryDirectory place;
  for (const std::string& name : golden_models()) {
    CAPTURE(name);
    const std::string model = place.path() + "/" + name, plan = model + ".plan",
                      whole = model + ".embedded", scratch = place.path() + "/out";
    const bool encoder = is_golden_encoder(name);
    fs::copy(kGolden + "/" + name, model, fs::copy_options::recursive);
    const std::string expected = results_of(model, scratch, encoder);
    compile_to(model, plan);
    compile_to(model, whole, {"--weights", "embed"});
    fs::rename(model + "/config.json", model + "/hidden");
    CHECK(results_of(plan, scratch, encoder) == expected);
    fs::remove_all(model);
    CHECK(results_of(whole, scratch, encoder) == expected);
    CHECK(results_of(whole, scratch, encoder) == expected);
  }
}

TEST_CASE("plans of the samples generate what the samples do, one in each type") {
  const TemporaryDirectory place;
  for (const char* name : {"small-llama", "tiny-llama"})
    for (const char* type : {"fp32", "fp16", "bf16"}) {
      if (name == std::string_view("small-llama") && type != std::string_view("bf16")) continue;
      CAPTURE(name);
      CAPTURE(type);
      const std::string model = fmt::format("{}/{}", SINTER_SAMPLES_DIR, name),
                        plan = place.path() + "/plan";
      compile_to(model, plan, {"--dtype", type});
      const auto generated = [&](std::vector<std::string> command) {
        command.insert(command.end(), {"--tokens", "1,2,3", "-n", "12", "--device", "cpu"});
        return printed(command);
      };
      CHECK(generated({"generate", plan}) == generated({"generate", model, "--dtype", type}));
      CHECK(generated({"generate", plan, "--recompile"}) == generated({"generate", plan}));
    }
}

struct TinyPlan {
  TemporaryDirectory place;
  std::string model = SINTER_SAMPLES_DIR "/tiny-llama";
  std::string plan = place.path() + "/plan";
  TinyPlan() { compile_to(model, plan); }

  /// The output of the command for the model, and for its plan.
  std::array<std::string, 2> both(const std::string& command, std::vector<std::string> rest) {
    rest.insert(rest.begin(), {command, model});
    const std::string of_model = printed(rest);
    rest[1] = plan;
    return {of_model, printed(rest)};
  }

  /// The command gives the same on both. The plan's name is the model's, but for its place.
  void check_same(const std::string& command, const std::vector<std::string>& rest) {
    CAPTURE(command);
    const auto [of_model, of_plan] = both(command, rest);
    CHECK(of_plan == of_model);
    CHECK(!of_model.empty());
  }

  /// The same JSON, but for the field `command`, which names what was asked about.
  void check_same_json(const std::string& command) {
    CAPTURE(command);
    const auto texts = both(command, {"--json"});
    nlohmann::json of_model = nlohmann::json::parse(texts[0]),
                   of_plan = nlohmann::json::parse(texts[1]);
    CHECK(of_model.at("command") == "sinter " + command + " " + model + " --json");
    CHECK(of_plan.at("command") == "sinter " + command + " " + plan + " --json");
    of_model.erase("command");
    of_plan.erase("command");
    CHECK(of_plan == of_model);
    CHECK(of_model.size() > 1);
  }
};

TEST_CASE_FIXTURE(TinyPlan, "every command takes a plan in place of its model") {
  check_same("generate", {"--prompt", "Long ago, Mira the baker", "-n", "20", "--device", "cpu"});
  check_same("generate", {"--prompt", "Once", "-n", "9", "--temperature", "1", "--seed", "3",
                          "--device", "cpu"});
  check_same("ppl", {"--text", model + "/heldout.txt", "--window", "64", "--device", "cpu"});
  check_same("tokenize", {"--text", "Long ago, Mira the baker"});
  check_same("inspect", {});
  check_same("inspect", {"--json", "--arch", "sm_80"});
  check_same("explain", {});
  check_same_json("explain");
  check_same("explain", {"--phase", "decode"});
  check_same("explain", {"--phase", "decode", "--why", "l0.norm1", "l0.res1"});
  check_same("explain", {"--why", "l0.norm1", "l0.res1"});
  check_same("run", {"--tokens", "1,2,3", "--json", "--device", "cpu"});
  // A model is verified in three types, a plan in its own.
  const std::string verified = printed({"verify", plan, "--device", "cpu", "--steps", "4"});
  CHECK(verified ==
        printed({"verify", model, "--dtype", "fp16", "--device", "cpu", "--steps", "4"}));
  const std::string self = printed({"verify", plan, "--self", "--device", "cpu"});
  CHECK(self.find("f16") != std::string::npos);
}

TEST_CASE_FIXTURE(TinyPlan, "what a plan was compiled with cannot be asked for again") {
  const std::vector<std::vector<std::string>> refused = {
      {"--dtype", "fp32"},  {"--arch", "sm_80"}, {"--numerics", "fast"}, {"--no-fuse"},
      {"--require", "a,b"}, {"--forbid", "a,b"}, {"--stop-after", "3"}};
  for (const std::vector<std::string>& options : refused) {
    CAPTURE(options[0]);
    std::vector<std::string> command = {"run", plan, "--tokens", "1,2", "--device", "cpu"};
    command.insert(command.end(), options.begin(), options.end());
    const ProgramRun run = sinter(command);
    CHECK(run.code == 2);
    CHECK(run.err.find("compile the model with it") != std::string::npos);
  }
  const ProgramRun cache =
      sinter({"generate", plan, "--tokens", "1", "--kv", "sink=1,window=8", "--device", "cpu"});
  CHECK(cache.code == 2);
  CHECK(sinter({"compile", plan, "-o", place.path() + "/again"}).code == 2);
  CHECK(sinter({"run", model, "--tokens", "1", "--recompile", "--device", "cpu"}).code == 2);
}

TEST_CASE("a plan has the cache and the numerics that it was compiled with") {
  const TemporaryDirectory place;
  const std::string model = SINTER_SAMPLES_DIR "/tiny-llama", plan = place.path() + "/plan";
  compile_to(model, plan, {"--kv", "sink=4,window=60", "--numerics", "fast", "--dtype", "fp32"});
  const std::vector<std::string> text = {
      "--prompt", "Long ago, Mira the baker", "-n", "100", "--ignore-eos", "--device", "cpu"};
  std::vector<std::string> of_plan = {"generate", plan},
                           of_model = {"generate",   model,  "--kv",    "sink=4,window=60",
                                       "--numerics", "fast", "--dtype", "fp32"};
  of_plan.insert(of_plan.end(), text.begin(), text.end());
  of_model.insert(of_model.end(), text.begin(), text.end());
  CHECK(printed(of_plan) == printed(of_model));
}

TEST_CASE("NVRTC is hidden in these tests") {
  const TemporaryDirectory place;
  const ProgramRun run = sinter({"compile", kGolden + "/llama", "-o", place.path() + "/plan"});
  CHECK(run.code == 5);
  CHECK(run.err.find("NVRTC cannot be loaded") != std::string::npos);
}

TEST_CASE("a plan of some entries explains them, and says what running takes") {
  const TemporaryDirectory place;
  const std::string plan = place.path() + "/plan";
  compile_to(kGolden + "/llama", plan, {"--phase", "decode"});
  CHECK(printed({"explain", plan}).find("decode") != std::string::npos);
  const ProgramRun run = sinter({"run", plan, "--tokens", "1", "--device", "cpu"});
  CHECK(run.code == 4);
  CHECK(run.err.find("compile the model without --phase") != std::string::npos);
}

TEST_CASE("what is not there cannot be embedded") {
  const TemporaryDirectory place;
  const std::string plan = place.path() + "/plan";
  for (const char* model : {"gpt2-124m.json", "glu_mlp.sir"}) {
    CAPTURE(model);
    const std::string path = fmt::format("{}/{}", SINTER_SAMPLES_DIR, model);
    const ProgramRun run = sinter({"compile", path, "-o", plan, "--weights", "embed"});
    CHECK(run.code == 4);
    CHECK(run.err.find(path + ": the model has no weights to embed") != std::string::npos);
    CHECK(run.err.find("embed=PATH") != std::string::npos);
  }
  CHECK(sinter({"compile", kGolden + "/llama", "-o", plan, "--weights", "embed="}).code == 2);
  CHECK(!fs::exists(plan));
}

TEST_CASE("a plan without weights takes them when it runs") {
  const TemporaryDirectory place;
  const std::string plan = place.path() + "/plan", spec = place.path() + "/spec.json";
  write_whole(spec,
              R"({"sinter_spec": 1, "name": "s", "dtype": "f32", "vocabulary": 64, "hidden": 32,
"layers": 2, "heads": 2, "ffn": 64, "max_positions": 64, "norm": "rms_norm", "norm_eps": 1e-5, "rope": {"theta": 10000},
"activation": "silu", "gated": true})");
  compile_to(spec, plan);
  const std::vector<std::string> tokens = {"--tokens", "1,2,3", "-n", "4", "--device", "cpu"};
  const auto run = [&](std::vector<std::string> command) {
    command.insert(command.end(), tokens.begin(), tokens.end());
    return sinter(command);
  };
  const ProgramRun none = run({"run", plan});
  CHECK(none.code == 4);
  CHECK(none.err.find("--random-weights") != std::string::npos);
  CHECK(run({"run", plan, "--random-weights", "3"}).out ==
        run({"run", spec, "--random-weights", "3"}).out);
  // A seed given to the compiler is the plan's.
  compile_to(spec, plan, {"--random-weights", "5"});
  CHECK(run({"run", plan}).out == run({"run", spec, "--random-weights", "5"}).out);
  CHECK(run({"run", plan}).out != run({"run", spec, "--random-weights", "3"}).out);
}

TEST_CASE("the plans of the sample modules run their entries") {
  const TemporaryDirectory place;
  const std::string plan = place.path() + "/plan";
  size_t modules = 0;
  for (const auto& file : fs::directory_iterator(SINTER_SAMPLES_DIR)) {
    if (file.path().extension() != ".sir") continue;
    const std::string module = file.path().string();
    CAPTURE(module);
    fs::remove_all(plan);
    compile_to(module, plan, {"--random-weights", "2"});
    const auto run = [&](const std::string& model, std::vector<std::string> more) {
      const std::string out = place.path() + "/out";
      std::vector<std::string> command = {"run",   model, "--random-inputs", "3",  "--calls", "2",
                                          "--out", out,   "--device",        "cpu"};
      command.insert(command.end(), more.begin(), more.end());
      const std::string table = printed(command);
      return table + read_whole(out);
    };
    CHECK(run(plan, {}) == run(module, {"--random-weights", "2"}));
    CHECK(run(plan, {"--recompile"}) == run(plan, {}));
    ++modules;
  }
  CHECK(modules >= 7);
  CHECK(printed({"verify", plan, "--random-inputs", "3", "--calls", "2", "--device", "cpu"})
            .find("verified") != std::string::npos);
}

TEST_CASE("a plan has the frequencies of the context that it was compiled for") {
  const TemporaryDirectory place;
  const std::string model = kGolden + "/phi3_longrope_long", plan = place.path() + "/plan";
  std::string tokens = "1";
  for (int i = 2; i <= 40; ++i) tokens += fmt::format(",{}", i);
  const auto run = [&](const std::string& path) {
    return sinter({"run", path, "--tokens", tokens, "-n", "4", "--json", "--device", "cpu"});
  };
  compile_to(model, plan, {"--context", "50"});
  CHECK(run(plan).out == run(model).out);
  CHECK(!run(plan).out.empty());
  compile_to(model, plan);
  const ProgramRun longer = run(plan);
  CHECK(longer.code == 4);
  CHECK(longer.err.find("positions") != std::string::npos);
}

TEST_CASE_FIXTURE(TinyPlan,
                  "a plan of another version, and one without a manifest, say what to do") {
  const std::string path = plan + "/plan.json", text = read_whole(path);
  const auto refusal = [&] {
    const ProgramRun run = sinter({"run", plan, "--tokens", "1", "--device", "cpu"});
    CHECK(run.code == 4);
    CHECK(run.err.find("compile the model again") != std::string::npos);
    CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
    return run.err;
  };
  write_whole(path, text + " ");
  CHECK(refusal().find("plan.json: the file's hash is") != std::string::npos);
  fs::remove(plan + "/manifest.json");
  CHECK(refusal().find("no manifest.json") != std::string::npos);
}

TEST_CASE("a decision record travels with its plan") {
  const TemporaryDirectory place;
  const std::string record = place.path() + "/record.json", plan = place.path() + "/plan";
  write_whole(record, R"({"format": 2, "device": "NVIDIA H200", "library": "cuBLASLt 130000",
"choices": {}})");
  const std::string model = kGolden + "/llama";
  const ProgramRun compiled =
      sinter({"compile", model, "-o", plan, "-q", "--record", record, "--no-machine-code"});
  REQUIRE_MESSAGE(compiled.code == 0, compiled.err);
  CHECK(read_whole(plan + "/record.json") == read_whole(record));
  CHECK(sinter({"run", plan, "--tokens", "1", "--device", "cpu"}).code == 0);
  const ProgramRun twice = sinter({"run", plan, "--tokens", "1", "--record", record});
  CHECK(twice.code == 2);
  CHECK(twice.err.find("a decision record of its own") != std::string::npos);
  write_whole(plan + "/record.json", "{}");
  CHECK(sinter({"run", plan, "--tokens", "1", "--device", "cpu"}).code == 4);
  write_whole(record, "{}");
  CHECK(
      sinter({"compile", model, "-o", plan, "-q", "--record", record, "--no-machine-code"}).code ==
      4);
}

}  // namespace
}  // namespace sinter::plans_run_test
