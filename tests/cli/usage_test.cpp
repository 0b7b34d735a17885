// Exit codes, and errors of one line that say what to do.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "cli/golden.h"
#include "cli/program.h"
#include "runtime/temporary_directory.h"

namespace sinter::usage_test {
namespace {

void check_error(const std::vector<std::string>& arguments, int code, const std::string& part) {
  const ProgramRun run = run_program(arguments);
  CAPTURE(fmt::format("{}", fmt::join(arguments, " ")));
  CAPTURE(run.err);
  CHECK(run.code == code);
  CHECK(run.out == "");
  CHECK(run.err.starts_with("sinter: "));
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  CHECK(run.err.find(part) != std::string::npos);
}

TEST_CASE("the program alone prints its help") {
  const ProgramRun run = run_program({});
  CHECK(run.code == 0);
  CHECK(run.err == "");
  CHECK(run.out == run_program({"--help"}).out);
}

TEST_CASE("an option that is not known gets the nearest one, a text its option") {
  check_error({"generate", kGpt2, "--promt", "Hello"}, 2,
              "sinter: no option is called \"--promt\"; the nearest is --prompt; see `sinter "
              "generate --help`");
  check_error({"generate", kGpt2, "--temprature=0.5"}, 2, "the nearest is --temperature; see");
  check_error({"generate", kGpt2, "-p", "Hello"}, 2, "\"-p\"; the nearest is --prompt; see");
  check_error({"generate", kGpt2, "-prompt", "Hello"}, 2, "the nearest is --prompt; see");
  check_error({"inspect", kGpt2, "--zzzzz"}, 2,
              "no option is called \"--zzzzz\"; see `sinter inspect --help`");
  check_error({"generate", kGpt2, "Hello"}, 2,
              "\"Hello\" stands alone; a text is given as --prompt TEXT|-; see");
  check_error({"embed", kGpt2, "Hello"}, 2, "a text is given as --text TEXT; see");
  check_error({"inspect", kGpt2, "Hello"}, 2, "\"Hello\" is one argument too many; see");
  check_error({"generate", kGpt2, "--own-products"}, 2,
              "no option is called \"--own-products\"; its name is --slow-products now; see");
  check_error({"devices", "--jsn"}, 2, "the nearest is --json; see `sinter devices --help`");
}

TEST_CASE("usage errors are one line and exit 2") {
  check_error({"cache"}, 2, "no command is given; see `sinter cache --help`");
  check_error({"explian", kGpt2}, 2,
              "no command is called \"explian\"; the nearest is explain; see `sinter --help`");
  check_error({"foo"}, 2, "no command is called \"foo\"; see `sinter --help`");
  check_error({"cache", "statsu"}, 2,
              "no command is called \"cache statsu\"; the nearest is cache status; see `sinter "
              "cache --help`");
  check_error({"compile"}, 2, "MODEL is required; see `sinter compile --help`");
  check_error({"inspect", kGpt2, "--no-such-option"}, 2, "--no-such-option");
  check_error({"inspect", kGpt2, "--dtype", "f64"}, 2, "give fp32, fp16 or bf16");
  check_error({"inspect", kGpt2, "--arch", "sm_1"}, 2, "choose one of sm_80");
  check_error({"explain", kGpt2, "--numerics", "quick"}, 2, "give strict or fast");
  check_error({"explain", kGpt2, "--phase", "nothing"}, 2, "the module has prefill, decode");
  check_error({"explain", kGpt2, "--require", "l0.res1"}, 2, "two names with a comma between");
  check_error({"explain", kGpt2, "--stop-after", "-3"}, 2, "--stop-after");
  check_error({"explain", kGpt2, "--why", "l0.norm", "l0.res1"}, 2, "near it: l0.norm1");
  check_error({"explain", kGpt2, "--forbid", "l0.res1,nothing"}, 2,
              "no value or module is called \"nothing\"");
  for (const char* option : {"--require", "--forbid"})
    check_error({"explain", kGpt2, option, "%l0.res1,l0.nrm2"}, 2,
                "no value or module is called \"l0.nrm2\"; near it: l0.norm2");
}

TEST_CASE("keys of a config: unknown ones with an underscore are noted, others must be ignored") {
  const TemporaryDirectory folder;
  const std::string config = folder.path() + "/config.json";
  const auto write = [&](const std::string& key) {
    write_whole(config, R"({"model_type": "llama", "vocab_size": 8, "hidden_size": 8, "_mine": 1,
                            "num_attention_heads": 1, "num_hidden_layers": 1,
                            "intermediate_size": 8, "max_position_embeddings": 8, ")" +
                            key + "\": 3}");
  };
  write("_from_auto");
  ProgramRun run = run_program({"inspect", folder.path()});
  CHECK(run.code == 0);
  CHECK(run.err == "sinter: " + config + ": /_mine: the key is not known and is ignored\n");
  write("color");
  check_error({"inspect", folder.path(), "-q"}, 4, "remove the key or give --ignore-key color");
  run = run_program({"inspect", folder.path(), "--ignore-key", "color", "--ignore-key", "_mine"});
  CHECK(run.code == 0);
  CHECK(run.err == "");
  check_error({"inspect", folder.path(), "-q", "--ignore-key", "vocab_size"}, 2,
              "cannot be ignored");
  check_error(
      {"inspect", SINTER_TESTS_DIR "/../samples/layer_norm_residual.sir", "--ignore-key", "color"},
      2, "no config.json, whose key color is to be ignored");
}

TEST_CASE("a required fusion that is impossible exits 3 with its path") {
  check_error({"explain", kGpt2, "--require", "l0.norm1,l0.res1"}, 3,
              "l0.attn → l0.attn_out → l0.res1");
  check_error({"explain", kGpt2, "--require", "l0.norm1,l0.res1"}, 3,
              fmt::format("`sinter explain {} --why l0.norm1 l0.res1` says what", kGpt2));
}

TEST_CASE("a GPU that is not there exits 5; auto takes the CPU and says why") {
  const TemporaryDirectory folder;
  write_whole(folder.path() + "/tokens", "1, 5, 7 9\n3\n");
  const std::vector<std::string> hidden = {"CUDA_VISIBLE_DEVICES=-1"};
  const std::vector<std::vector<std::string>> commands = {
      {"run", kGpt2, "--tokens", "1,2"},
      {"generate", kGpt2, "--tokens", "1,2", "-n", "2"},
      {"verify", kGpt2, "--dtype", "fp32", "--steps", "2"},
      {"embed", SINTER_TESTS_DIR "/golden/bert_post_ln", "--tokens", "1,2"},
      {"ppl", kGpt2, "--tokens", folder.path() + "/tokens"}};
  for (std::vector<std::string> command : commands) {
    CAPTURE(command[0]);
    for (const char* device : {"cuda", "cuda:1"}) {
      std::vector<std::string> asked = command;
      asked.insert(asked.end(), {"--device", device});
      const ProgramRun run = run_program(asked, hidden);
      CAPTURE(run.err);
      CHECK(run.code == 5);
      CHECK(run.out == "");
      CHECK(run.err.starts_with("sinter: "));
      CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
    }
    command.insert(command.end(), {"--device", "auto", "-v"});
    const ProgramRun run = run_program(command, hidden);
    CAPTURE(run.err);
    CHECK(run.code == 0);
    CHECK(run.err.find("device cpu: ") != std::string::npos);
  }
  check_error({"run", kGpt2, "--tokens", "1", "--device", "gpu"}, 2,
              "give auto, cpu, cuda or cuda:N");
}

TEST_CASE("what stands in place of a model is told what is missing") {
  const TemporaryDirectory folder;
  const std::string empty = folder.path() + "/empty.sir", pickled = folder.path() + "/pickled",
                    alone = folder.path() + "/alone";
  write_whole(empty, "");
  check_error({"explain", empty}, 4, "empty.sir: the file is empty; write a module into it");
  for (const std::string& path : {pickled, alone}) {
    std::filesystem::create_directory(path);
    write_whole(path + "/pytorch_model.bin", "");
  }
  write_whole(pickled + "/config.json", read_whole(kGpt2 + "/config.json"));
  check_error({"run", pickled, "--tokens", "1"}, 4,
              "the model's weights are not safetensors but pytorch_model.bin; this makes "
              "safetensors of it");
  check_error({"explain", alone}, 4,
              "the folder has no config.json, and its weights, "
              "pytorch_model.bin, are not read; download config.json");
  CHECK(run_program({"explain", pickled}).code == 0);
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"explain"}, {"generate", "--prompt", "a"}}) {
    std::vector<std::string> of_hub = command;
    of_hub.insert(of_hub.begin() + 1, "meta-llama/Llama-2-7b-hf");
    check_error(of_hub, 4,
                "meta-llama/Llama-2-7b-hf: no such file or folder; check the path, or download the "
                "model from the Hugging Face hub: `hf download meta-llama/Llama-2-7b-hf "
                "--local-dir Llama-2-7b-hf`");
  }
  const std::string other = folder.path() + "/other";
  std::filesystem::create_directory(other);
  const std::string neither = "the folder has neither config.json nor model.sir; ";
  for (const std::string command : {"generate", "explain"}) {
    std::vector<std::string> arguments = {command, other};
    if (command == "generate") arguments.insert(arguments.end(), {"--prompt", "a"});
    std::filesystem::remove(other + "/a b.pt");
    check_error(arguments, 4,
                neither + "the folder is empty; a Hugging Face folder has config.json");
    write_whole(other + "/a b.pt", "PK");
    check_error(arguments, 4,
                neither +
                    "it holds a b.pt; PyTorch files are not read: give the model's Hugging Face "
                    "folder");
  }
  std::filesystem::remove(other + "/a b.pt");
  for (const char* name : {"a.onnx", "b.bin", "c.bin", "d", "e"})
    write_whole(other + "/" + name, "");
  check_error({"explain", other}, 4,
              fmt::format("it holds a.onnx; ONNX files are converted before they are read: "
                          "python -m sinter convert '{0}/a.onnx' -o '{0}/a'",
                          other));
  std::filesystem::remove(other + "/a.onnx");
  check_error({"explain", other}, 4, "it holds b.bin, c.bin, d and 1 more; a Hugging Face folder");
  for (const char* path : {"models/none.json", "./a/b", "a/b/c", "none"}) {
    const ProgramRun run = run_program({"explain", path});
    CHECK(run.code == 4);
    CHECK(run.err == fmt::format("sinter: {}: no such file or folder; check the path\n", path));
  }
}

TEST_CASE("element types have the names that PyTorch and others give them, everywhere") {
  const TemporaryDirectory folder;
  const std::string module = folder.path() + "/m.sir", spec = folder.path() + "/s.json";
  const auto inspected = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "inspect");
    const ProgramRun run = run_program(arguments);
    CHECK_MESSAGE(run.code == 0, run.err);
    return run.out;
  };
  constexpr std::array<std::array<const char*, 3>, 3> kNames = {
      {{"f32", "fp32", "float32"}, {"f16", "fp16", "float16"}, {"bf16", "bf16", "bfloat16"}}};
  for (const auto& names : kNames) {
    std::set<std::string> of_option, of_module, of_spec;
    for (const char* name : names) {
      of_option.insert(inspected({kGpt2, "--dtype", name}));
      write_whole(module, fmt::format("module @m {{\n  entry @f(%x: {0}[4]) -> (%y) {{\n    %y = "
                                      "exp %x : {0}[4]\n  }}\n}}\n",
                                      name));
      of_module.insert(inspected({module}));
      std::string text = read_whole(SINTER_SAMPLES_DIR "/llama-2-7b.json");
      const size_t at = text.find("\"f16\"");
      REQUIRE(at != std::string::npos);
      write_whole(spec, text.replace(at + 1, 3, name));
      of_spec.insert(inspected({spec}));
    }
    CHECK(of_option.size() == 1);
    CHECK(of_module.size() == 1);
    CHECK(of_spec.size() == 1);
    CHECK(of_spec.begin()->find(fmt::format("computes in      {}\n", names[0])) !=
          std::string::npos);
  }
}

TEST_CASE("bad input exits 4") {
  const TemporaryDirectory folder;
  check_error({"inspect", folder.path() + "/absent.json"}, 4, "absent.json");
  check_error({"inspect", folder.path()}, 4, "config.json");
  write_whole(folder.path() + "/broken.sir", "module @m {\n  entry @e( -> {\n");
  check_error({"compile", folder.path() + "/broken.sir"}, 4, "broken.sir:2:");
}

TEST_CASE("help and version are results") {
  const ProgramRun version = run_program({"--version"});
  CHECK(version.code == 0);
  CHECK(version.out.starts_with("sinter "));
  CHECK(version.err == "");
  for (const char* command :
       {"inspect", "compile", "explain", "opt", "tokenize", "devices", "cache"}) {
    CAPTURE(command);
    CHECK(run_program({"--help"}).out.find(fmt::format("\n  {} ", command)) != std::string::npos);
    const ProgramRun help = run_program({command, "--help"});
    CHECK(help.code == 0);
    CHECK(help.out.find(fmt::format("Usage: sinter {}", command)) != std::string::npos);
  }
}

TEST_CASE("a reader that goes away is no error, a full disk is one") {
  const ProgramRun gone = run_shell(
      fmt::format("\"$SINTER\" explain --json {} | true; echo ${{PIPESTATUS[0]}}", kGpt2));
  CHECK(gone.out == "0\n");
  CHECK(gone.err == "");
  const ProgramRun full = run_shell(fmt::format("\"$SINTER\" inspect {} > /dev/full", kGpt2));
  CHECK(full.code == 4);
  CHECK(full.err.find("cannot write") != std::string::npos);
}

TEST_CASE("an interrupt exits 130") {
  // The ledger is longer than a pipe holds, and nobody reads it: the program waits.
  const TemporaryDirectory folder;
  const ProgramRun run = run_shell(
      fmt::format("set -m; mkfifo {0}/pipe; sleep 60 < {0}/pipe & "
                  "\"$SINTER\" explain --json " SINTER_SAMPLES_DIR "/llama-2-7b.json > {0}/pipe & "
                  "sleep 1; kill -INT %2; wait %2; echo $?; kill %1",
                  folder.path()));
  CHECK(run.out == "130\n");
}

TEST_CASE("the cache is shown and cleared") {
  const TemporaryDirectory folder;
  const std::vector<std::string> environment = {"SINTER_CACHE_DIR=" + folder.path()};
  const ProgramRun status = run_program({"cache", "status"}, environment);
  CHECK(status.code == 0);
  CHECK(status.out == folder.path() +
                          ": 0 kernels, 0 B\nlimit: 1.07 GB, of SINTER_CACHE_MEGABYTES or the "
                          "usual one\n");
  CHECK(run_program({"cache", "clear"}, environment).code == 0);
  CHECK(run_program({"devices"}).out.find("sm_90a") != std::string::npos);
}

}  // namespace
}  // namespace sinter::usage_test
