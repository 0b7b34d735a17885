// The effect of each option of each command. An option that changes nothing has no place in a
// command: this test takes the options from the program's own help and finds a row for each.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <regex>

#include "cli/golden.h"
#include "cli/program.h"
#include "runtime/temporary_directory.h"

namespace sinter::options_test {
namespace {

enum class Change {
  result,   // what is printed, the messages or a file
  refused,  // the text given is refused by what reads it: the option reaches it
  // Not tried here:
  same_bits,  // which kernels run; by the promise of strict numerics no result shows it
  elsewhere,  // tried by the command's own test, or of effect with other models alone
  uniform,    // every command takes -v and -q; this one has no messages
  gpu,        // a GPU has to be there before the option is of effect
};

struct Row {
  const char* commands;  // separated by blanks
  const char* option;
  const char* arguments;  // the option with a value
  Change change;
  const char* base = "";   // what stands beside it, in both runs
  const char* model = "";  // takes the place of gpt2
};

// FOLDER stands for a folder of each run's own; FOLDER/broken is a model whose weights are no
// safetensors. Options of building a plan are tried with values
// that no model has where results cannot show them.
constexpr Row kRows[] = {
    // Every model.
    {"inspect compile explain run verify ppl embed", "--dtype", "--dtype fp16", Change::result},
    {"generate bisect", "--dtype", "--dtype zzz", Change::refused},
    {"run verify generate ppl embed", "--random-weights", "--random-weights 3", Change::result},
    {"bisect", "--random-weights", "--random-weights zzz", Change::refused},
    {"inspect compile explain run verify bisect generate ppl embed", "--weights", "--weights zzz",
     Change::refused},
    {"inspect compile explain", "--random-weights", "--random-weights 3", Change::result, "",
     "FOLDER/broken"},
    {"inspect compile explain run verify bisect generate ppl embed", "--ignore-key",
     "--ignore-key vocab_size", Change::refused},
    {"quantize", "--ignore-key", "--ignore-key vocab_size", Change::refused},
    {"bench profile", "--ignore-key", "", Change::gpu},
    {"tokenize inspect explain run verify bisect generate ppl embed quantize devices", "--json",
     "--json", Change::result},
    // Building a plan.
    {"inspect compile explain", "--arch", "--arch sm_80", Change::result},
    {"run verify bisect generate ppl embed", "--arch", "--arch sm_1", Change::refused},
    {"compile explain verify", "--numerics", "--numerics fast", Change::result},
    {"run generate ppl embed bisect", "--numerics", "--numerics quick", Change::refused},
    {"compile explain", "--attention", "--attention composed", Change::result, "--dtype fp16"},
    {"bench profile", "--attention", "", Change::gpu},
    {"run verify bisect generate ppl embed", "--attention", "--attention zzz", Change::refused},
    {"compile explain", "--products", "--products own", Change::result, "--dtype fp16"},
    {"bench profile", "--products", "", Change::gpu},
    {"run verify bisect generate ppl embed", "--products", "--products zzz", Change::refused},
    {"compile explain", "--invariant", "--invariant", Change::result, "--dtype fp16"},
    {"run verify bisect generate ppl embed", "--invariant", "--invariant", Change::refused,
     "--products library"},
    {"bench profile", "--invariant", "", Change::gpu},
    {"compile explain run verify bisect generate ppl embed", "--dequantize", "--dequantize zzz",
     Change::refused},
    {"bench profile", "--dequantize", "", Change::gpu},
    {"compile explain", "--no-fuse", "--no-fuse", Change::result},
    {"verify bisect", "--no-fuse", "--no-fuse", Change::refused},
    {"run generate ppl embed", "--no-fuse", "--no-fuse", Change::same_bits},
    {"compile explain run verify bisect generate ppl embed", "--require", "--require zzz1,zzz2",
     Change::refused},
    {"compile explain run verify bisect generate ppl embed", "--forbid", "--forbid zzz1,zzz2",
     Change::refused},
    {"compile explain verify bisect", "--stop-after", "--stop-after 0", Change::result},
    {"run generate ppl embed", "--stop-after", "--stop-after 0", Change::same_bits},
    {"compile explain", "--phase", "--phase decode", Change::result},
    {"run", "--phase", "--phase zzz", Change::refused},
    // Running it.
    {"run verify bisect generate ppl embed quantize", "--device", "--device zzz", Change::refused},
    {"run verify bisect generate ppl embed quantize", "--slow-products", "--slow-products",
     Change::refused},
    {"run verify bisect generate ppl embed quantize", "--record", "--record zzz", Change::refused},
    // A plan's folder.
    {"inspect explain run verify generate ppl embed", "--recompile", "--recompile",
     Change::refused},
    {"bench profile", "--recompile", "", Change::gpu},
    {"compile", "--record", "--record zzz", Change::refused},
    {"compile", "--kv", "--kv sink=0,window=0", Change::refused},
    {"compile", "--sequences", "--sequences 20", Change::result},
    {"compile", "--no-machine-code", "--no-machine-code", Change::elsewhere},
    {"compile", "--context", "--context 99", Change::elsewhere},
    {"inspect explain compile", "--symbol", "--symbol N=7", Change::result},
    // How prompts are fed.
    {"generate ppl embed", "--activation-memory", "--activation-memory 1MB", Change::result, "-v"},
    {"generate ppl", "--prefill-chunk", "--prefill-chunk 1", Change::result, "-v"},
    {"inspect", "--activation-memory", "--activation-memory 1MB", Change::result, "--prompts 2x16"},
    {"inspect", "--prefill-chunk", "--prefill-chunk 1", Change::result, "--prompts 2x16"},
    {"verify", "--activation-memory", "--activation-memory 1MB", Change::refused},
    {"verify", "--prefill-chunk", "--prefill-chunk 1", Change::refused},
    // Options of one or two commands.
    {"inspect", "--prompts", "--prompts 2x16", Change::result},
    {"compile opt", "--output", "--output FOLDER/other", Change::result},
    {"reduce", "--output", "--output FOLDER/other", Change::elsewhere},
    {"quantize", "--output", "--output FOLDER/other", Change::result},
    {"quantize", "--to", "--to int8", Change::result},
    {"quantize", "--head", "--head", Change::result},
    {"embed", "--prompt", "--prompt zzz", Change::refused},
    {"embed", "--prompt-name", "--prompt-name zzz", Change::refused},
    {"quantize", "--embeddings", "--embeddings", Change::result},
    {"quantize", "--no-text", "--no-text", Change::result},
    {"reduce", "--check", "--check false", Change::refused},
    {"reduce", "--timeout", "--timeout 1", Change::elsewhere},
    {"reduce", "--tries", "--tries 1", Change::result},
    {"bisect", "--reference", "--reference zzz", Change::refused},
    {"bisect", "--max-error", "--max-error 1", Change::refused},
    {"bisect", "--check", "--check false --reference zzz", Change::refused},
    {"bisect", "--slower-than", "--slower-than 1.02", Change::refused},
    {"bisect", "--timeout", "--timeout 1", Change::elsewhere},
    {"bisect", "--repeats", "--repeats 5", Change::result},
    {"bisect", "--jobs", "--jobs 1", Change::elsewhere},
    {"bisect", "--state", "--state FOLDER/broken/model.safetensors", Change::refused},
    {"bisect", "--output", "--output FOLDER/other", Change::elsewhere},
    {"bisect", "--seed", "--seed 2", Change::elsewhere},
    {"bisect", "--steps", "--steps 3", Change::elsewhere},
    {"bisect", "--inputs", "--inputs zzz", Change::refused},
    {"bisect", "--random-inputs", "--random-inputs 1", Change::refused},
    {"bisect", "--calls", "--calls 2", Change::refused},
    {"bisect", "--symbol", "--symbol zzz=1", Change::refused},
    {"explain", "--why", "--why l0.norm1 l0.res1", Change::result},
    {"explain", "--against", "--against zzz", Change::refused},
    {"explain", "--against-options", "--against-options \"--numerics fast\"", Change::result},
    {"explain", "--board", "--board zzz", Change::refused},
    {"explain", "--with-text", "--with-text", Change::result, "--html FOLDER/html"},
    {"explain", "--measured", "--measured zzz", Change::refused},
    {"explain", "--html", "--html FOLDER/html", Change::result},
    {"explain", "--dot", "--dot FOLDER/dot", Change::result},
    {"opt", "--pass", "--pass fold", Change::refused},
    {"opt", "--device-inputs", "--device-inputs", Change::result},
    {"run", "--tokens", "--tokens 1,2", Change::result},
    {"run", "-n", "-n 2", Change::result},
    {"run", "--inputs", "--inputs zzz", Change::refused},
    {"run", "--out", "--out FOLDER/out", Change::result},
    {"run", "--keep", "--keep l0.res1", Change::result},
    {"run", "--random-inputs", "--random-inputs 1", Change::refused},
    {"run", "--calls", "--calls 2", Change::refused},
    {"run", "--symbol", "--symbol zzz=1", Change::refused},
    {"run", "--ranks", "--ranks 2", Change::refused},
    {"verify", "--inputs", "--inputs zzz", Change::refused},
    {"verify", "--random-inputs", "--random-inputs 1", Change::refused},
    {"verify", "--calls", "--calls 2", Change::refused},
    {"verify", "--symbol", "--symbol zzz=1", Change::refused},
    {"verify", "--ranks", "--ranks 2", Change::refused},
    {"verify", "--reference", "--reference zzz", Change::refused},
    {"verify", "--seed", "--seed 2", Change::result},
    {"verify", "--steps", "--steps 3", Change::result},
    {"verify", "--self", "--self", Change::result},
    {"verify", "--teacher-forced", "--teacher-forced", Change::result},
    {"generate", "--tokens", "--tokens 5", Change::result},
    {"generate", "--prompt", "--prompt b", Change::refused},
    {"generate", "--prompt-file", "--prompt-file b", Change::refused},
    {"generate", "--prompts", "--prompts b", Change::refused},
    {"generate", "--prompt-ids", "--prompt-ids b", Change::refused},
    {"generate", "--places", "--places 0", Change::refused},
    {"generate", "--chat", "--chat", Change::refused},
    {"generate", "--chat-template", "--chat-template chatml", Change::refused},
    {"generate", "--system", "--system a", Change::refused},
    {"generate", "--rendered-chat", "--rendered-chat", Change::refused},
    {"generate", "--end-token", "--end-token zzz", Change::refused},
    {"generate", "-n", "-n 3", Change::result},
    {"generate", "--greedy", "--greedy --temperature 1", Change::refused},
    {"generate", "--temperature", "--temperature 50", Change::result},
    {"generate", "--top-k", "--top-k 1", Change::result, "--temperature 50"},
    {"generate", "--top-p", "--top-p 0.001", Change::result, "--temperature 50"},
    {"generate", "--seed", "--seed 2", Change::result, "--temperature 50"},
    {"generate", "--ignore-eos", "--ignore-eos", Change::elsewhere},
    {"generate ppl", "--kv", "--kv sink=0,window=0", Change::refused},
    {"ppl", "--tokens", "--tokens zzz", Change::refused},
    {"ppl", "--text", "--text zzz", Change::refused},
    {"ppl", "--window", "--window 2", Change::result},
    {"ppl", "--recompute", "--recompute", Change::elsewhere},
    {"embed", "--text", "--text b", Change::refused},
    {"embed", "--text-file", "--text-file zzz", Change::refused},
    {"embed", "--truncate", "--truncate", Change::elsewhere},
    {"tokenize", "--text", "--text b", Change::result},
    {"embed", "--tokens", "--tokens 5", Change::result},
    {"embed", "--pooling", "--pooling cls", Change::result},
    {"embed", "--output", "--output FOLDER/vectors.npy", Change::result},
    {"embed", "--normalize", "--normalize", Change::result},
    {"tokenize", "--file", "--file zzz", Change::refused},
    {"tokenize", "--decode", "--decode 5", Change::refused},
    {"tokenize", "--no-special-tokens", "--no-special-tokens", Change::result},
    // Messages.
    {"reduce", "--verbose", "--verbose", Change::elsewhere},
    {"reduce", "--quiet", "--quiet", Change::result},
    {"explain verify bisect run ppl embed generate compile quantize", "--verbose", "--verbose",
     Change::result},
    {"compile generate", "--quiet", "--quiet", Change::result},
    {"explain verify bisect run ppl embed quantize", "--quiet", "--quiet", Change::elsewhere},
    {"inspect tokenize devices cache_status cache_clear", "--verbose", "--verbose",
     Change::uniform},
    {"inspect tokenize devices cache_status cache_clear", "--quiet", "--quiet", Change::uniform},
    // Commands that measure need a GPU before they do anything.
    {"bench profile", "--dtype", "", Change::gpu},
    {"bench profile", "--weights", "--weights zzz --random-weights 1", Change::refused},
    {"bench profile", "--random-weights", "", Change::gpu},
    {"bench profile", "--arch", "--arch sm_80,sm_90a", Change::refused},
    {"bench profile", "--numerics", "--numerics quick", Change::refused},
    {"bench", "--no-fuse", "--no-fuse", Change::refused},
    {"profile", "--no-fuse", "", Change::gpu},
    {"bench profile", "--require", "--require zzz1", Change::refused},
    {"bench profile", "--forbid", "--forbid zzz1", Change::refused},
    {"bench profile", "--stop-after", "", Change::gpu},
    {"bench profile", "--device", "--device zzz", Change::refused},
    {"bench profile", "--slow-products", "--slow-products", Change::refused},
    {"bench profile", "--record", "--record zzz", Change::refused},
    {"bench profile", "--json", "", Change::gpu},
    {"bench profile", "--verbose", "", Change::gpu},
    {"bench profile", "--quiet", "", Change::gpu},
    {"bench profile", "--batch", "", Change::gpu},
    {"bench profile", "--seed", "", Change::gpu},
    {"bench profile", "--routing", "--routing zzz", Change::refused},
    {"bench profile", "--symbol", "--symbol Z", Change::refused},
    {"bench profile", "--tune", "", Change::gpu},
    {"bench profile", "-p", "", Change::gpu},
    {"bench profile", "-n", "", Change::gpu},
    {"bench profile", "-d", "", Change::gpu},
    {"bench", "--repeat", "", Change::gpu},
    {"bench", "--kernels", "", Change::gpu},
    {"bench", "--save-record", "", Change::gpu},
    {"bench", "--against", "--against zzz", Change::refused},
    {"bench", "--markdown", "", Change::gpu},
    {"bench", "--csv", "", Change::gpu},
    {"bench profile", "--html", "", Change::gpu},
    {"profile", "--phase", "", Change::gpu},
    {"profile", "--trace", "", Change::gpu},
    {"devices", "--measure", "", Change::gpu},
};

/// The command before the options; FOLDER as in rows.
const std::map<std::string, std::string> kCommands = {
    {"inspect", "inspect " + kGpt2},
    {"compile", "compile " + kGpt2 + " -o FOLDER/plan"},
    {"explain", "explain " + kGpt2},
    {"opt", "opt " + kGpt2},
    {"bisect", "bisect " + kGpt2 + " --device cpu --dtype fp32 --steps 1 --repeats 3"},
    {"quantize",
     "quantize " SINTER_TESTS_DIR "/golden/mistral_window --device cpu --to fp8 -o FOLDER/model"},
    {"reduce",
     "reduce " SINTER_SAMPLES_DIR "/layer_norm_residual.sir -o FOLDER/small.sir --check true"},
    {"run", "run " + kGpt2 + " --device cpu --tokens 1,2,3"},
    {"verify", "verify " + kGpt2 + " --device cpu --dtype fp32 --steps 2"},
    {"generate", "generate " + kGpt2 + " --device cpu --tokens 1,2 -n 8"},
    {"ppl", "ppl " + kGpt2 + " --device cpu --tokens FOLDER/tokens"},
    {"embed", "embed " + kBert + " --device cpu --tokens 1,2"},
    {"tokenize", "tokenize " SINTER_SAMPLES_DIR "/tiny-llama --text a"},
    {"bench", "bench " + kGpt2 + " --device cpu"},
    {"profile", "profile " + kGpt2 + " --device cpu"},
    {"devices", "devices"},
    {"cache_status", "cache status"},
    {"cache_clear", "cache clear"},
    {"completion_bash", "completion bash"},
    {"completion_zsh", "completion zsh"},
    {"completion_fish", "completion fish"}};

const Row* row_of(const std::string& command, const std::string& option) {
  for (const Row& row : kRows)
    if (option == row.option &&
        fmt::format(" {} ", row.commands).find(" " + command + " ") != std::string::npos)
      return &row;
  return nullptr;
}

std::string with_underscore(std::string command) {
  std::replace(command.begin(), command.end(), ' ', '_');
  return command;
}

struct Outcome {
  int code;
  std::string out, err;
  std::vector<std::pair<std::string, std::string>> files;
};

/// An option that may stand once takes the place of the one in the command's own line.
std::string line_of(const std::string& command, const std::string& option,
                    const std::string& arguments) {
  std::string line = kCommands.at(command);
  if (!arguments.empty() && (option != "--tokens" || command == "run"))
    line = std::regex_replace(
        line, std::regex(" " + (option == "--output" ? "-o" : option) + " [^ ]+"), "");
  return line + " " + arguments;
}

Outcome outcome_of(std::string line) {
  const TemporaryDirectory folder;
  write_whole(folder.path() + "/tokens", "1,2,3,4,5,6");
  std::filesystem::create_directory(folder.path() + "/broken");
  write_whole(folder.path() + "/broken/config.json", read_whole(kGpt2 + "/config.json"));
  write_whole(folder.path() + "/broken/model.safetensors", "no safetensors");
  line = std::regex_replace(line, std::regex("FOLDER"), folder.path());
  const ProgramRun run = run_shell("CUDA_VISIBLE_DEVICES=-1 \"$SINTER\" " + line);
  const auto plain = [&](const std::string& text) {  // without paths of this run and times
    const std::string no_path = std::regex_replace(text, std::regex(folder.path()), "FOLDER");
    return std::regex_replace(no_path, std::regex("[0-9.]+ (s|ms|tokens/s)\\b"), "TIME");
  };
  return {run.code, plain(run.out), plain(run.err), folder_contents(folder.path())};
}

TEST_CASE("every option of every command has a row, and every row an option") {
  size_t options = 0, rows = 0;
  for (const std::string& command : all_commands()) {
    REQUIRE_MESSAGE(kCommands.contains(with_underscore(command)), command);
    for (const std::string& option : options_of(command)) {
      CAPTURE(command);
      CAPTURE(option);
      ++options;
      CHECK(row_of(with_underscore(command), option) != nullptr);
    }
  }
  for (const Row& row : kRows)
    rows += 1 + static_cast<size_t>(
                    std::count(row.commands, row.commands + std::strlen(row.commands), ' '));
  CHECK(rows == options);
}

TEST_CASE("an option changes a result, or what it says is refused") {
  // Most options of a command are compared with the same line, which runs once.
  std::map<std::string, Outcome> outcomes;
  const auto without = [&](const std::string& line) -> const Outcome& {
    if (!outcomes.contains(line)) outcomes.emplace(line, outcome_of(line));
    return outcomes.at(line);
  };
  for (const auto& [command, line] : kCommands) {
    for (const Row& row : kRows) {
      if (row_of(command, row.option) != &row) continue;
      if (row.change != Change::result && row.change != Change::refused) continue;
      const auto line_with = [&](const char* arguments) {
        const std::string line = line_of(command, row.option, arguments) + " " + row.base;
        return *row.model ? std::regex_replace(line, std::regex(kGpt2), row.model) : line;
      };
      std::string before = line_with("");
      before.erase(before.find_last_not_of(' ') + 1);
      const std::string after = line_with(row.arguments);
      CAPTURE(after);
      const Outcome with = outcome_of(after);
      CAPTURE(with.err);
      if (row.change == Change::refused) {
        CHECK((with.code == 2 || with.code == 4 || with.code == 5));
        CHECK(with.err.find("needs a GPU") == std::string::npos);
        CHECK(without(before).err != with.err);
        continue;
      }
      CHECK(with.code == 0);
      const Outcome& plain = without(before);
      CHECK((with.out != plain.out || with.err != plain.err || with.files != plain.files));
    }
  }
}

}  // namespace
}  // namespace sinter::options_test
