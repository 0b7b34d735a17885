// `sinter quantize`: the folder that it writes, what it says of the cost, and what it refuses.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/golden.h"
#include "cli/program.h"
#include "cli/tensors.h"
#include "runtime/temporary_directory.h"

namespace sinter::quantize_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::string kMistral = SINTER_TESTS_DIR "/golden/mistral_window";
const std::string kStories = SINTER_SAMPLES_DIR "/tiny-llama";

ProgramRun quantize(const std::string& model, const std::string& to, const std::string& folder,
                    const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"quantize", model,  "--to",     to,
                                        "-o",       folder, "--device", "cpu"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_program(arguments);
}

void check_refusal(const ProgramRun& run, int code, const std::string& part) {
  CAPTURE(run.err);
  CHECK(run.code == code);
  CHECK(run.out == "");
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  CHECK(run.err.find(part) != std::string::npos);
}

bool has_tensor(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

TEST_CASE("quantize: a folder of every format, the same bytes each time, and it runs") {
  const TemporaryDirectory place;
  for (const char* to : {"fp8", "int8", "int4-g64"}) {
    CAPTURE(to);
    const std::string folder = place.path() + "/" + to, again = folder + "-again";
    const ProgramRun run = quantize(kMistral, to, folder);
    CHECK_MESSAGE(run.code == 0, run.err);
    CHECK(run.out.find("21 matrices in") == 0);
    CHECK(run.out.find("perplexity: not measured, the model has no tokenizer") !=
          std::string::npos);
    CHECK(quantize(kMistral, to, again).code == 0);
    CHECK(folder_contents(folder) == folder_contents(again));
    const std::string file = read_whole(folder + "/model.safetensors");
    const std::vector<std::string> names = tensor_names(file);
    const std::string up = "model.layers.1.mlp.up_proj.weight";
    const bool packed = std::strcmp(to, "fp8") != 0;
    CHECK(has_tensor(names, up + "_scale"));
    CHECK(has_tensor(names, up + "_packed") == packed);
    CHECK(has_tensor(names, up + "_shape") == packed);
    CHECK(has_tensor(names, up) == !packed);
    CHECK(has_tensor(names, "lm_head.weight"));
    CHECK(file.find(R"("__metadata__":{"format":"pt"})") != std::string::npos);
    // The model's own config, and nothing lost.
    json before = json::parse(read_whole(kMistral + "/config.json"));
    json after = json::parse(read_whole(folder + "/config.json"));
    CHECK(after["quantization_config"]["ignore"] == json({"lm_head", "model.embed_tokens"}));
    after.erase("quantization_config");
    CHECK(after == before);
    CHECK(fs::exists(folder + "/generation_config.json"));
    CHECK(run_program({"run", folder, "--device", "cpu", "--tokens", "1,2,3"}).code == 0);
  }
  CHECK(fs::exists(place.path() + "/fp8/config.json"));
  // Nothing but the six folders is left.
  CHECK(std::distance(fs::directory_iterator(place.path()), {}) == 6);
}

TEST_CASE("quantize: --head, and what it costs as JSON") {
  const TemporaryDirectory place;
  const std::string folder = place.path() + "/model", kept = place.path() + "/kept";
  const ProgramRun run = quantize(kMistral, "int8", folder, {"--head", "--json"});
  CHECK_MESSAGE(run.code == 0, run.err);
  const json report = json::parse(run.out);
  CHECK(report["folder"] == folder);
  CHECK(report["format"] == "int8");
  CHECK(report["matrices"] == 22);
  CHECK(report["not_measured"] == "the model has no tokenizer");
  CHECK(
      has_tensor(tensor_names(read_whole(folder + "/model.safetensors")), "lm_head.weight_packed"));
  const json without = json::parse(quantize(kMistral, "int8", kept, {"--json"}).out);
  CHECK(without["bytes_before"] == report["bytes_before"]);
  CHECK(without["bytes_after"] > report["bytes_after"]);
  CHECK(run_program({"run", folder, "--device", "cpu", "--tokens", "1,2,3"}).code == 0);
  check_refusal(
      quantize(kStories, "int8", place.path() + "/other", {"--head"}), 2,
      "the output projection is the embedding table; leave out --head, and give --embeddings");
  check_refusal(quantize(kStories, "int8", place.path() + "/other", {"--head", "--embeddings"}), 2,
                "the embedding table, which --embeddings rounds; leave out --head");
}

TEST_CASE("quantize: matrices of experts, and no router") {
  const TemporaryDirectory place;
  for (const auto& [name, to, matrices, expert] :
       {std::tuple("qwen2_moe", "int8", 62, "mlp.experts.7.up_proj.weight_packed"),
        std::tuple("granitemoe", "fp8", 12, "block_sparse_moe.input_linear.weight_scale")}) {
    CAPTURE(name);
    const std::string folder = place.path() + "/" + name;
    const ProgramRun run =
        quantize(std::string(SINTER_TESTS_DIR "/golden/") + name, to, folder, {"--json"});
    CHECK_MESSAGE(run.code == 0, run.err);
    CHECK(json::parse(run.out)["matrices"] == matrices);
    CHECK(has_tensor(tensor_names(read_whole(folder + "/model.safetensors")),
                     std::string("model.layers.1.") + expert));
    const json config = json::parse(read_whole(folder + "/config.json"))["quantization_config"];
    const bool granite = name == std::string("granitemoe");
    CHECK(config["ignore"] ==
          (granite ? json({"lm_head", "model.embed_tokens",
                           "model.layers.0.block_sparse_moe.router.layer",
                           "model.layers.1.block_sparse_moe.router.layer"})
                   : json({"lm_head", "model.embed_tokens", "model.layers.0.mlp.gate",
                           "model.layers.0.mlp.shared_expert_gate", "model.layers.1.mlp.gate",
                           "model.layers.1.mlp.shared_expert_gate"})));
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"verify", folder, "--self"},
          {"verify", folder, "--self", "--invariant"},
          {"run", folder, "--tokens", "1,2,3"}}) {
      std::vector<std::string> arguments = command;
      arguments.insert(arguments.end(), {"--device", "cpu"});
      const ProgramRun read = run_program(arguments);
      CHECK_MESSAGE(read.code == 0, read.err);
    }
  }
}

TEST_CASE("quantize: --embeddings, of a tied model also the output projection") {
  const TemporaryDirectory place;
  for (const auto& [model, matrices] : {std::pair(kMistral, 22), std::pair(kStories, 29)}) {
    CAPTURE(model);
    const std::string folder = place.path() + "/" + fs::path(model).filename().string();
    const ProgramRun run = quantize(model, "int8", folder, {"--embeddings", "--json", "--no-text"});
    CHECK_MESSAGE(run.code == 0, run.err);
    CHECK(json::parse(run.out)["matrices"] == matrices);
    CHECK(has_tensor(tensor_names(read_whole(folder + "/model.safetensors")),
                     "model.embed_tokens.weight_scale"));
    const json config = json::parse(read_whole(folder + "/config.json"))["quantization_config"];
    CHECK(config["config_groups"]["group_1"]["targets"] == json({"Embedding"}));
    CHECK(config["format"] == "mixed-precision");
    CHECK(config["ignore"] == json({"lm_head"}));
    const ProgramRun verified =
        run_program({"verify", folder, "--device", "cpu", "--self", "--json"});
    CHECK_MESSAGE(verified.code == 0, verified.err);
  }
}

TEST_CASE("quantize: the perplexity of a text before and after") {
  const TemporaryDirectory place;
  const std::string folder = place.path() + "/model";
  const ProgramRun run = quantize(kStories, "int8", folder, {"--json"});
  CHECK_MESSAGE(run.code == 0, run.err);
  const json cost = json::parse(run.out)["perplexity"];
  CHECK(cost["predicted"] > 1000);
  CHECK(cost["before"] > 1);
  CHECK(cost["after"] != cost["before"]);
  CHECK(read_whole(folder + "/tokenizer.json") == read_whole(kStories + "/tokenizer.json"));
  // On the text that the model was trained for, 8 bits lose little.
  const auto loss = [](const std::string& model) {
    const ProgramRun ppl = run_program({"ppl", model, "--text", kStories + "/heldout.txt",
                                        "--device", "cpu", "--window", "64", "--json"});
    REQUIRE_MESSAGE(ppl.code == 0, ppl.err);
    return json::parse(ppl.out)["nll_mean"].get<double>();
  };
  CHECK(loss(folder) == doctest::Approx(loss(kStories)).epsilon(0.01));
}

TEST_CASE("quantize: what is refused leaves nothing behind") {
  const TemporaryDirectory place;
  const std::string folder = place.path() + "/folder";
  check_refusal(quantize(kMistral, "int4-g128", folder), 4,
                "which groups of 128 do not divide; possible are fp8, int8, int4-g32, int4-g64");
  check_refusal(quantize(kGpt2, "int8", folder), 4, "is a matrix [in, out]");
  check_refusal(quantize(SINTER_SAMPLES_DIR "/gpt2-124m.json", "int8", folder), 4,
                "only folders of Hugging Face models");
  check_refusal(quantize(SINTER_TESTS_DIR "/golden/olmoe", "int8", folder), 4,
                "tensor model.layers.0.mlp.experts.down_proj is no \".weight\"");
  check_refusal(quantize(SINTER_TESTS_DIR "/golden/mixtral", "int4-g32", folder), 4,
                "experts.0.w1.weight have 16 elements, which groups of 32 do not divide");
  check_refusal(quantize(kMistral, "int3", folder), 2, "int3");
  check_refusal(quantize(kMistral, "int8", place.path() + "/none/folder"), 4, "there is no folder");
  CHECK_FALSE(fs::exists(folder));
  CHECK(quantize(kMistral, "int8", folder).code == 0);
  const auto whole = folder_contents(folder);
  check_refusal(quantize(kMistral, "fp8", folder), 4, "there is something of this name");
  check_refusal(quantize(folder, "fp8", place.path() + "/other"), 4, "quantized already");
  CHECK(folder_contents(folder) == whole);
  // An empty folder is taken.
  fs::create_directory(place.path() + "/empty");
  CHECK(quantize(kMistral, "fp8", place.path() + "/empty").code == 0);
}

TEST_CASE("quantize: weights that are no numbers") {
  const TemporaryDirectory place;
  const std::string model = place.path() + "/model", folder = place.path() + "/folder";
  fs::copy(kMistral, model);
  std::string file = read_whole(model + "/model.safetensors");
  uint64_t header;
  std::memcpy(&header, file.data(), sizeof header);
  const json tensors = json::parse(file.substr(8, header));
  const uint64_t begin = tensors["model.layers.1.self_attn.o_proj.weight"]["data_offsets"][0];
  std::memcpy(file.data() + 8 + header + begin + 64 * 4, "\0\0\xc0\x7f", 4);
  write_whole(model + "/model.safetensors", file);
  check_refusal(quantize(model, "int8", folder), 4,
                "row 1 of tensor model.layers.1.self_attn.o_proj.weight has a value that is not "
                "finite");
  CHECK(std::distance(fs::directory_iterator(place.path()), {}) == 1);
}

}  // namespace sinter::quantize_test
