// docs/plan.md is made here, from a table of a plan's files and from docs/schemas; what the program
// writes must fit both.
#include <doctest/doctest.h>

#include <filesystem>
#include <regex>

#include "cli/program.h"
#include "docs/json_schema.h"
#include "docs/schema_tables.h"
#include "driver/stored_plan/manifest.h"
#include "frontends/model/spec_json.h"
#include "plan/plan_file.h"
#include "runtime/cuda/gemm_record.h"
#include "runtime/cuda/nvrtc.h"
#include "support/check_text.h"
#include "support/result.h"

namespace sinter::plan_page_test {
namespace {

namespace fs = std::filesystem;
using test::Json;

struct FolderFile {
  const char* path;  // NAME: letters without '/'; ARCH: a device; NN: a number; PATH: any path
  const char* meaning;
};

constexpr FolderFile kFiles[] = {
    {"plan.json", "the plan: kernels, buffers, steps"},
    {"manifest.json", "what the plan needs beside, and hashes of all files"},
    {"fusion.json", "the ledger: what shares a kernel, what does not, and why"},
    {"ir/00-input.sir", "the module that was compiled"},
    {"ir/NN-NAME.sir", "the module after the pass NAME"},
    {"kernels/NAME.cu", "CUDA text of a kernel"},
    {"kernels/NAME.ARCH.cubin", "its machine code; without NVRTC none"},
    {"include/target.h", "what the target can do, as macros"},
    {"include/PATH", "headers that kernels include"},
    {"model/NAME", "the model's tokenizer, chat template and pooling"},
    {"record.json", "the decision record of `--record`"},
    {"weights/NAME.safetensors", "weights, with `--weights embed`"},
};

std::regex pattern_of(std::string path) {
  for (const auto& [word, pattern] : {std::pair{"\\.", "\\."},
                                      {"NAME", "[^/]+"},
                                      {"ARCH", "sm_[0-9]+a?"},
                                      {"NN", "[0-9]{2,}"},
                                      {"PATH", ".+"}})
    path = std::regex_replace(path, std::regex(word), pattern);
  return std::regex(path);
}

void check_fits(const std::string& schema, const std::string& text) {
  for (const std::string& violation : test::schema_violations(schema, Json::parse(text)))
    FAIL_CHECK(schema, ": ", violation);
}

/// A plan's folder with everything that the command line adds.
struct Plan {
  std::string name, model;
  std::vector<std::string> options;
};

std::vector<Plan> plans(const std::string& folder) {
  const std::string samples = SINTER_SAMPLES_DIR, golden = SINTER_TESTS_DIR "/golden";
  GemmRecord record;
  record.device = "NVIDIA H200";
  record.library = "cuBLASLt 130000";
  write_whole(folder + "/record.json", record.to_json());
  return {
      {"llama", golden + "/llama", {"--weights", "embed"}},
      {"streaming", golden + "/llama", {"--no-machine-code", "--kv", "sink=2,window=6"}},
      {"tiny", samples + "/tiny-llama", {"--no-machine-code", "--record", folder + "/record.json"}},
      {"fast", samples + "/small-llama", {"--no-machine-code", "--numerics", "fast"}},
      {"post_ln", golden + "/bert_post_ln", {"--no-machine-code"}},
      {"attention",
       samples + "/attention_cache.sir",
       {"--no-machine-code", "--random-weights", "7"}},
      {"experts",
       samples + "/two_experts.sir",
       {"--no-machine-code", "--no-fuse", "--arch", "sm_80"}},
      {"rows",
       std::string(SINTER_TESTS_DIR) + "/gpu/modules/computed_rows.sir",
       {"--no-machine-code"}},
  };
}

void replace(std::string& text, const std::string& word, const std::string& by) {
  const size_t at = text.find(word);
  REQUIRE_MESSAGE(at != std::string::npos, word);
  text.replace(at, word.size(), by);
}

std::string formats() {
  std::string rows;
  for (const auto& [file, name] : {std::pair{"`plan.json`", "plan"},
                                   {"`manifest.json`", "manifest"},
                                   {"`fusion.json`, `explain --json`", "ledger"},
                                   {"`record.json`", "record"},
                                   {"[specification](spec.md)", "spec"}}) {
    const Json& schema = test::schema_named(name);
    const Json& members = schema["properties"];
    const bool nested = members.contains("format") && members["format"].contains("properties");
    const Json& header = nested ? members["format"]["properties"] : members;
    const auto shown = [&](const char* key, const char* otherwise) {
      return header.contains(key) && header[key].contains("const") ? header[key]["const"].dump()
                                                                   : std::string(otherwise);
    };
    const bool spec = std::string_view(name) == "spec";
    rows += fmt::format("| {} | `{}` | {} | [{}.schema.json](schemas/{}.schema.json) |\n", file,
                        spec ? "sinter_spec" : shown(nested ? "name" : "format", "-"),
                        spec ? shown("sinter_spec", "-") : shown(nested ? "major" : "version", "-"),
                        name, name);
  }
  return rows;
}

}  // namespace

TEST_CASE("files of plans are those of the page and fit their schemas") {
  const TemporaryDirectory folder;
  std::set<std::string> met;
  for (const Plan& plan : plans(folder.path())) {
    CAPTURE(plan.name);
    const std::string place = folder.path() + "/" + plan.name;
    std::vector<std::string> command = {"compile", plan.model, "-o", place};
    command.insert(command.end(), plan.options.begin(), plan.options.end());
    const ProgramRun run = run_program(command, {"SINTER_CACHE_DIR=" + folder.path() + "/cache"});
    REQUIRE_MESSAGE(run.code == 0, run.err);
    for (const auto& [path, content] : folder_contents(place)) {
      const auto file = std::find_if(std::begin(kFiles), std::end(kFiles), [&](const auto& known) {
        return std::regex_match(path, pattern_of(known.path));
      });
      CHECK_MESSAGE(file != std::end(kFiles), "the page has no file ", path);
      if (file != std::end(kFiles)) met.insert(file->path);
    }
    check_fits("plan", read_whole(place + "/plan.json"));
    check_fits("manifest", read_whole(place + "/manifest.json"));
    check_fits("ledger", read_whole(place + "/fusion.json"));
    const ProgramRun explained = run_program({"explain", plan.model, "--json"});
    REQUIRE_MESSAGE(explained.code == 0, explained.err);
    check_fits("ledger", explained.out);
  }
  // Every file stands in some folder; machine code where there is a compiler of it.
  for (const FolderFile& file : kFiles)
    if (std::string_view(file.path).find("cubin") == std::string_view::npos)
      CHECK_MESSAGE(met.contains(file.path), file.path);
}

TEST_CASE("decision records fit their schema") {
  GemmRecord record;
  check_fits("record", record.to_json());
  record.device = "NVIDIA H200";
  record.choices["own"] = {};
  GemmChoice& choice = record.choices["library"];
  choice.kind = GemmChoice::Kind::cublaslt;
  choice.seconds = 1e-5;
  record.forms["gemv"]["f16[2, 8]"] = {{{"stages", 4}, {"warps", 16}}, 0.5};
  check_fits("record", record.to_json());
}

TEST_CASE("what does not fit a schema is found") {
  const auto refused = [](const char* schema, const Json& value) {
    CHECK(!test::schema_violations(schema, value).empty());
  };
  const TemporaryDirectory folder;
  const std::string place = folder.path() + "/plan";
  REQUIRE(
      run_program({"compile", SINTER_SAMPLES_DIR "/glu_mlp.sir", "-o", place, "--no-machine-code"})
          .code == 0);
  const Json plan = Json::parse(read_whole(place + "/plan.json"));
  REQUIRE(test::schema_violations("plan", plan).empty());
  const auto changed = [&](const char* pointer, const Json& value) {
    Json other = plan;
    other[Json::json_pointer(pointer)] = value;
    return other;
  };
  refused("plan", changed("/format/major", 6));
  refused("plan", changed("/format/name", "sinter.manifest"));
  refused("plan", changed("/numerics", "loose"));
  refused("plan", changed("/kernels/0/hash", "00"));
  refused("plan", changed("/kernels/0/launch/threads", 0));
  refused("plan", changed("/kernels/0/appends", 1));
  refused("plan", changed("/entries/0/buffers/0/place", "nowhere"));
  refused("plan", changed("/entries/0/steps/0/more", 1));
  Json lacking = plan;
  lacking["kernels"][0].erase("group");
  refused("plan", lacking);
  lacking = plan;
  lacking["entries"][0]["steps"][0].erase("values");
  refused("plan", lacking);
}

TEST_CASE("docs/plan.md is made from the schemas") {
  std::string page = test::read_text(SINTER_TESTS_DIR "/docs/plan_head.md");
  std::string files = "| file | |\n| --- | --- |\n", options;
  for (const FolderFile& file : kFiles)
    files += fmt::format("| `{}` | {} |\n", file.path, file.meaning);
  files.pop_back();
  replace(page, "@FILES@", files);
  replace(page, "@ARCH@", "sm_90a");
  for (const std::string& option : nvrtc_options("sm_90a"))
    if (!option.starts_with("-D") && !option.starts_with("--define"))
      options += (options.empty() ? "" : " ") + option;
  replace(page, "@OPTIONS@", options);
  replace(page, "@FORMATS@", formats());
  for (const char* name : {"plan", "manifest", "ledger", "record"})
    page += test::schema_section(name);
  test::check_text_file(page, "../docs/plan.md", "plan_page");
}

}  // namespace sinter::plan_page_test
