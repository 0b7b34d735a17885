// A plan's folder as untrusted input: what is damaged is refused, what was changed on purpose is
// checked, and nothing crashes.
//
// SINTER_TRIES=N tries N variants of each kind; without it a sample, the same in every run.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "cli/program.h"
#include "driver/plan_folder/write.h"
#include "driver/routing.h"
#include "driver/run/run.h"
#include "driver/stored_plan/signature.h"
#include "driver/text.h"
#include "ir/text.h"
#include "ir/variants.h"
#include "plan/kernel_text.h"
#include "plan/plan_file.h"
#include "plan/program_builder.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/temporary_directory.h"
#include "support/nvrtc.h"
#include "support/plan_mutator.h"
#include "support/result.h"
#include "support/run_plan.h"

namespace sinter::plan_folder_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kSampled = 400;
constexpr double kMaxElements = 1e9;  // with products of two operands: generous

size_t tries() {
  const char* wanted = std::getenv("SINTER_TRIES");
  return wanted ? std::strtoull(wanted, nullptr, 10) : kSampled;
}

MachineCode pretended_code(const Program& program, const std::string& arch) {
  MachineCode code;
  code.arch = arch;
  for (const Kernel& kernel : program.kernels)
    code.kernels.push_back({kernel.name, content_hash(kernel.source), arch + " " + kernel.name});
  return code;
}

/// The model's plan with its weights, CUDA text and machine code that is none. Its caches have at
/// most `rows` rows.
void write_plan_of(const std::string& model, const std::string& folder, bool embed = true,
                   const std::vector<std::string>& archs = {"sm_90a"}, int64_t rows = INT64_MAX) {
  BuildRequest request;
  request.path = model;
  request.for_folder = true;
  request.embed = embed;
  OpenedModel opened = value(open_model(model));
  for (Symbol& symbol : opened.module.symbols)
    if (symbol.name == "R" || symbol.name == "K") symbol.high = std::min(symbol.high, rows);
  const Built built = value(build_opened(std::move(opened), request));
  std::vector<MachineCode> code;
  for (const std::string& arch : archs)
    code.push_back(pretended_code(*built.compiled.program, arch));
  const auto files = value(read_model_files(model));
  const Status written = write_plan_folder(folder, {built, code, files, "", {}, embed});
  REQUIRE_MESSAGE(written.has_value(), (written ? "" : written.error().message()));
}

std::string hash_of(const TokenRun& run) {
  std::string text = fmt::format("{}", fmt::join(run.tokens, " "));
  for (const NamedHostTensor& value : run.values)
    text += content_hash(
        {reinterpret_cast<const char*>(value.tensor.bytes.data()), value.tensor.bytes.size()});
  return text;
}

/// The result of a run on the CPU: tokens and logits of a prefill and three decode steps.
Result<std::string> run_folder(const std::string& folder) {
  SINTER_TRY(model_files(folder));
  SINTER_LET(model, open_model(folder));
  RunOptions options;
  BackendOptions on_cpu;
  on_cpu.device = "cpu";
  options.backend = value(Backend::open(on_cpu));
  SINTER_LET(run, run_tokens(model, {1, 2, 3}, 3, options));
  return hash_of(run);
}

void check_refusal(const Error& error) {
  const std::string message = error.message();
  CAPTURE(message);
  CHECK(message.find('\n') == std::string::npos);
  CHECK(!message.empty());
  CHECK((error.code == ExitCode::bad_input || error.code == ExitCode::usage));
}

struct Fixture {
  TemporaryDirectory place;
  std::string folder = place.path() + "/plan";
  std::string whole;

  Fixture() {
    write_plan_of(SINTER_TESTS_DIR "/golden/llama", folder);
    whole = value(run_folder(folder));
  }
};

/// One damage to a file's bytes.
std::string damaged(const std::string& bytes, const std::string& other, std::mt19937_64& random) {
  const auto below = [&](size_t end) { return end == 0 ? 0 : random() % end; };
  std::string result = bytes;
  switch (below(6)) {
    case 0:
      result.resize(below(bytes.size()));
      break;
    case 1:
      result += static_cast<char>(below(256));
      break;
    case 2:
      result = other;
      break;
    case 3: {  // a piece moves
      const size_t from = below(bytes.size()), count = below(64);
      result.insert(below(bytes.size()), bytes.substr(from, count));
      break;
    }
    default:
      if (!result.empty()) result[below(bytes.size())] ^= static_cast<char>(1 << below(8));
  }
  return result;
}

TEST_CASE_FIXTURE(Fixture, "a damaged folder is refused, or runs as it did before") {
  const auto files = folder_contents(folder);
  std::vector<std::pair<std::string, std::string>> read;
  for (const char* name :
       {"manifest.json", "plan.json", "ir/00-input.sir", "weights/model.safetensors"})
    for (const auto& file : files)
      if (file.first == name) read.push_back(file);
  REQUIRE(read.size() == 4);
  std::mt19937_64 random(1);
  size_t refused = 0, same = 0;
  for (size_t i = 0; i < tries(); ++i) {
    // One of those that a run on the CPU reads, as often as any.
    const auto& [path, bytes] =
        random() % 2 == 0 ? files[random() % files.size()] : read[random() % read.size()];
    const auto& other = files[random() % files.size()].second;
    CAPTURE(path);
    CAPTURE(i);
    const bool removed = random() % 16 == 0;
    if (removed)
      fs::remove(folder + "/" + path);
    else
      write_whole(folder + "/" + path, damaged(bytes, other, random));
    const auto outcome = run_folder(folder);
    if (outcome)
      CHECK(*outcome == whole);
    else
      check_refusal(outcome.error());
    ++(outcome ? same : refused);
    write_whole(folder + "/" + path, bytes);
  }
  MESSAGE(refused, " refused, ", same, " ran as before");
  CHECK(refused > 0);
  CHECK(same > 0);  // ledger, dumps and machine code are not read on the CPU
  CHECK(value(run_folder(folder)) == whole);
}

/// Writes a file and makes the manifest's hashes fit.
void replace_with_hash(const std::string& folder, const std::string& path,
                       const std::string& bytes) {
  write_whole(folder + "/" + path, bytes);
  Json manifest = Json::parse(read_whole(folder + "/manifest.json"));
  manifest["files"][path] = content_hash(bytes);
  write_whole(folder + "/manifest.json", with_hash(manifest.dump(2) + "\n"));
}

/// Texts of the kernels that state what the plan says, with their hashes.
void restate_kernels(const std::string& folder, Json& plan) {
  const auto program = read_plan(plan.dump());
  if (!program) return;
  for (size_t k = 0; k < program->kernels.size(); ++k) {
    const Kernel& kernel = program->kernels[k];
    const std::string text = test::stated_text(kernel, narrowed(program->symbols, kernel.range));
    replace_with_hash(folder, kernel_path(kernel), text);
    plan["kernels"][k]["hash"] = content_hash(text);
  }
}

/// Every kernel is launched as a kernel of the same name in `whole`, whose text it has.
void check_launches(const Program& program, const Program& whole) {
  for (const Kernel& kernel : program.kernels) {
    const auto same =
        llvm::find_if(whole.kernels, [&](const Kernel& k) { return k.name == kernel.name; });
    REQUIRE(same != whole.kernels.end());
    CHECK(kernel.source == same->source);
    CHECK(launch_comment(kernel, program.symbols) == launch_comment(*same, whole.symbols));
    CHECK(group_comment(kernel, program.symbols) == group_comment(*same, whole.symbols));
  }
}

TEST_CASE_FIXTURE(Fixture, "a plan that was changed on purpose is checked before it runs") {
  const auto original = value(StoredPlan::open(folder))->program();
  const std::string text = read_whole(folder + "/plan.json"),
                    manifest = read_whole(folder + "/manifest.json");
  size_t refused = 0, ran = 0, large = 0;
  for (size_t i = 0; i < tries(); ++i) {
    CAPTURE(i);
    Json plan = Json::parse(text);
    test::PlanMutator(i).mutate(plan);
    const bool restated = i % 2 == 0;
    if (restated) restate_kernels(folder, plan);
    replace_with_hash(folder, "plan.json",
                      plan.dump(-1, ' ', false, Json::error_handler_t::replace));
    const auto opened = StoredPlan::open(folder);
    if (!opened) {
      check_refusal(opened.error());
      ++refused;
    } else {
      if (!restated) check_launches(*(*opened)->program(), *original);
      const bool small = !test::outcome_on_host((*opened)->program(), kMaxElements).empty();
      ++(small ? ran : large);
      if (small)
        if (const auto outcome = run_folder(folder); !outcome) check_refusal(outcome.error());
    }
    write_whole(folder + "/manifest.json", manifest);
    if (restated)
      for (const Kernel& kernel : original->kernels)
        write_whole(folder + "/" + kernel_path(kernel), kernel.source);
  }
  write_whole(folder + "/plan.json", text);
  MESSAGE(refused, " refused, ", ran, " ran, ", large, " too large to run here");
  CHECK(refused > 0);
  CHECK(ran > 0);
  CHECK(value(run_folder(folder)) == whole);
}

TEST_CASE("a plan takes no routing, compiled again or not") {
  const TemporaryDirectory place;
  const std::string folder = place.path() + "/plan";
  write_plan_of(SINTER_TESTS_DIR "/golden/mixtral", folder);
  for (bool again : {false, true}) {
    OpenOptions options;
    options.recompile = again;
    OpenedModel plan = value(open_model(folder, options));
    const Status routed = set_routing(plan, ExpertRouting::uniform, 1);
    REQUIRE_FALSE(routed.has_value());
    CHECK(routed.error().what == "a plan has the routing that it was compiled with");
    CHECK(routed.error().hint == "leave out --routing, or give the model itself");
  }
}

TEST_CASE("equal models have equal folders, weights and all") {
  const TemporaryDirectory place;
  write_plan_of(SINTER_SAMPLES_DIR "/tiny-llama", place.path() + "/a");
  write_plan_of(SINTER_SAMPLES_DIR "/tiny-llama", place.path() + "/b");
  const auto a = folder_contents(place.path() + "/a");
  CHECK(a == folder_contents(place.path() + "/b"));
  for (const char* name : {"model/tokenizer.json", "weights/model.safetensors", "manifest.json"})
    CHECK(llvm::any_of(a, [&](const auto& file) { return file.first == name; }));
}

struct CodeFixture : Fixture {
  std::shared_ptr<const StoredPlan> open() { return value(StoredPlan::open(folder)); }
  std::string refusal(const std::string& arch) {
    const auto plan = StoredPlan::open(folder);
    const auto code = plan ? (*plan)->machine_code_for(arch) : tl::make_unexpected(plan.error());
    REQUIRE_FALSE(code);
    CHECK(code.error().code == ExitCode::bad_input);
    return code.error().message();
  }
};

TEST_CASE_FIXTURE(CodeFixture, "a GPU takes machine code of its architecture, or compiles") {
  const auto plan = open();
  const MachineCodeByText code = value(plan->machine_code_for("sm_90a"));
  REQUIRE(code.size() == plan->program()->kernels.size());
  for (const Kernel& kernel : plan->program()->kernels) {
    CHECK(!kernel.source.empty());
    CHECK(code.at(text_hash(kernel)) == "sm_90a " + kernel.name);
  }
  CHECK(value(plan->machine_code_for("sm_80")).empty());
}

TEST_CASE_FIXTURE(CodeFixture,
                  "machine code of another interface is refused" * doctest::test_suite("nvrtc")) {
  const NvrtcFile* nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  const std::string kernel = open()->program()->kernels[0].name;
  const std::string text = fmt::format(
      "extern \"C\" __global__ void __launch_bounds__(32) {}(float* p) {{ p[0] = 1; }}", kernel);
  const auto cubin = value(compile_kernel(*nvrtc, {kernel, text}, {}, "sm_90a"));
  replace_with_hash(folder, "kernels/" + kernel + ".sm_90a.cubin", cubin.bytes);
  const std::string message = refusal("sm_90a");
  CHECK(message.find(kernel + " takes 8 bytes of parameters and 32 threads") != std::string::npos);
}

TEST_CASE_FIXTURE(CodeFixture, "code for a compute capability runs on newer ones of its kind") {
  write_plan_of(SINTER_TESTS_DIR "/golden/llama", folder, true, {"sm_80"});
  CHECK(!value(open()->machine_code_for("sm_86")).empty());
  CHECK(value(open()->machine_code_for("sm_90a")).empty());
  write_plan_of(SINTER_TESTS_DIR "/golden/llama", folder, true, {"sm_86"});
  CHECK(value(open()->machine_code_for("sm_80")).empty());
}

TEST_CASE_FIXTURE(CodeFixture, "text for another kernel library is not compiled with this one") {
  Json manifest = Json::parse(read_whole(folder + "/manifest.json"));
  CHECK(manifest["kernel_library"] == kernel_library_hash());
  manifest["kernel_library"] = content_hash("another");
  write_whole(folder + "/manifest.json", with_hash(manifest.dump(2)));
  CHECK(value(open()->machine_code_for("sm_90a")).size() > 0);
  CHECK(refusal("sm_80").find("the kernel library of another sinter") != std::string::npos);
}

TEST_CASE_FIXTURE(CodeFixture, "damaged machine code and text are refused") {
  const std::string kernel = open()->program()->kernels[0].name;
  for (const auto& [path, arch] : {std::pair("kernels/" + kernel + ".sm_90a.cubin", "sm_90a"),
                                   {"kernels/" + kernel + ".cu", "sm_80"}}) {
    const std::string whole_file = read_whole(folder + "/" + path);
    write_whole(folder + "/" + path, whole_file + " ");
    CHECK(refusal(arch).find("the folder is damaged") != std::string::npos);
    write_whole(folder + "/" + path, whole_file);
  }
}

TEST_CASE_FIXTURE(Fixture, "paths of a manifest stay in the folder") {
  for (const char* path : {"../plan.json", "/etc/passwd", "ir/../../x", ""}) {
    CAPTURE(path);
    Json manifest = Json::parse(read_whole(folder + "/manifest.json"));
    manifest["files"][path] = content_hash("");
    const auto read = read_manifest(with_hash(manifest.dump(2)), "manifest.json");
    REQUIRE_FALSE(read);
    CHECK(read.error().message().find("is no path in the folder") != std::string::npos);
  }
}

TEST_CASE_FIXTURE(Fixture, "a spec that is not the plan's is refused") {
  Json manifest = Json::parse(read_whole(folder + "/manifest.json"));
  manifest["spec"]["max_positions"] = manifest["spec"]["max_positions"].get<int64_t>() * 2;
  write_whole(folder + "/manifest.json", with_hash(manifest.dump(2)));
  const auto opened = StoredPlan::open(folder);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().message().find("the spec of manifest.json has") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "a plan with fewer rows of caches than its spec's module is read") {
  const std::string fewer = place.path() + "/fewer";
  write_plan_of(SINTER_TESTS_DIR "/golden/llama", fewer, true, {"sm_90a"}, 960);
  CHECK(value(run_folder(fewer)) == whole);
}

TEST_CASE("a plan has the outputs of its module, name by name") {
  const auto module = [](const char* outputs, const char* ops) {
    return value(parse_module(
        fmt::format("module @m {{ entry @e(%x: f32[4]) -> ({}) {{ {} }} }}", outputs, ops),
        "text"));
  };
  const Module two = module("%a, %b", "%a = neg %x %b = exp %x"),
               one = module("%\"a: f32[4], %b\"", "%\"a: f32[4], %b\" = neg %x");
  const auto program = value(compile(value(freeze(two, {})), {})).program;
  CHECK(check_signature(*program, two, "its module", "plan.json").has_value());
  const Status other = check_signature(*program, one, "its module", "plan.json");
  REQUIRE_FALSE(other);
  CHECK(other.error().message().find("that of its module is (%x: f32[4]) -> (%a: f32[4]") !=
        std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "what a manifest says of the compilation belongs to its plan") {
  const std::string text = read_whole(folder + "/manifest.json");
  const auto refused = [&](const std::function<void(Json&)>& edit, OpenOptions options = {}) {
    Json manifest = Json::parse(text);
    edit(manifest);
    write_whole(folder + "/manifest.json", with_hash(manifest.dump(2)));
    const auto model = open_model(folder, options);
    if (!model) {
      CHECK(model.error().code == ExitCode::bad_input);
      return model.error().message();
    }
    const auto compiled =
        compile_opened(*model, value(frozen_module(*model, {})), *model->compiled_with);
    REQUIRE_FALSE(compiled);
    CHECK(compiled.error().code == ExitCode::bad_input);
    return compiled.error().message();
  };
  const auto contains = [](const std::string& message, const char* part) {
    CAPTURE(message);
    CHECK(message.find(part) != std::string::npos);
  };
  contains(refused([](Json& m) { m["compile"]["entries"] = Json::array({"decode"}); }),
           "says decode");
  contains(refused([](Json& m) { m["compile"]["target"] = "sm_80"; }), "says sm_80 and strict");
  contains(refused(
               [](Json& m) {
                 m["compile"]["require"] = Json::array({Json::array({"a", "zz"})});
               },
               {{}, true}),
           "manifest.json: no value or module is called \"a\"");
  contains(refused([](Json& m) {
             m["weights"] = {{"from", "files"},
                             {"paths", Json::array({"w"})},
                             {"fingerprints", Json::array({"x"})}};
           }),
           "an absolute path");
  contains(refused([](Json& m) { m["machine_code"]["sm_90a"]["x"] = "none"; }), "one of the files");
}

TEST_CASE_FIXTURE(Fixture, "a manifest of another format names both versions") {
  Json manifest = Json::parse(read_whole(folder + "/manifest.json"));
  manifest["sinter"] = "7.8.9";
  const auto check_refused = [&](const char* format) {
    const auto read = read_manifest(with_hash(manifest.dump(2)), "manifest.json");
    REQUIRE_FALSE(read);
    const std::string message = read.error().message();
    for (const char* part : {format, "7.8.9", "reads format 2", "compile the model again"})
      CHECK(message.find(part) != std::string::npos);
  };
  manifest["version"] = 99;
  check_refused("format 99");
  // The older header: the version instead of the name.
  manifest.erase("version");
  manifest["format"] = 1;
  check_refused("format 1 of");
  manifest["format"] = "sinter.plan";
  const auto other = read_manifest(with_hash(manifest.dump(2)), "manifest.json");
  REQUIRE_FALSE(other);
  CHECK(other.error().message().find("expected \"sinter.manifest\"") != std::string::npos);
}

TEST_CASE("weights by reference: the files are found again, and others are refused") {
  const TemporaryDirectory place;
  const std::string model = place.path() + "/model", folder = place.path() + "/plan";
  fs::copy(SINTER_TESTS_DIR "/golden/llama", model, fs::copy_options::recursive);
  write_plan_of(model, folder, false);
  const std::string whole = value(run_folder(folder));
  const auto message = [&] {
    const auto outcome = run_folder(folder);
    REQUIRE_FALSE(outcome);
    check_refusal(outcome.error());
    return outcome.error().message();
  };
  fs::remove(model + "/config.json");
  CHECK(value(run_folder(folder)) == whole);
  // One bit of one weight.
  const std::string weights = model + "/model.safetensors", bytes = read_whole(weights);
  std::string changed = bytes;
  changed[bytes.size() / 2] ^= 1;
  write_whole(weights, changed);
  CHECK(message().find("fingerprint") != std::string::npos);
  fs::rename(model, place.path() + "/moved");
  CHECK(message().find("--weights") != std::string::npos);
  // At another place, by hand.
  write_whole(place.path() + "/moved/model.safetensors", bytes);
  OpenOptions elsewhere;
  elsewhere.weights = place.path() + "/moved";
  CHECK(value(open_model(folder, elsewhere)).tensors != nullptr);
  write_whole(place.path() + "/moved/model.safetensors", changed);
  CHECK_FALSE(open_model(folder, elsewhere));
}

}  // namespace
}  // namespace sinter::plan_folder_test
