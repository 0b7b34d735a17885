// Text as `sinter generate` prints it: valid UTF-8, up to an end token, in a chat template.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/program.h"
#include "runtime/temporary_directory.h"

namespace sinter::generate_test {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

const std::string kLlama = SINTER_TESTS_DIR "/golden/llama";  // a vocabulary of 211
const std::string kByteLevel = SINTER_TESTS_DIR "/golden/tokenizers/bytelevel_gpt2/tokenizer.json";

/// A copy of the small Llama with a tokenizer of single bytes: its texts are full of cut
/// characters.
class Model {
 public:
  Model() {
    for (const char* name : {"config.json", "generation_config.json", "model.safetensors"})
      fs::copy_file(kLlama + "/" + name, path() + "/" + name);
    write_tokenizer(211);
  }
  std::string path() const { return folder_.path(); }

  /// The byte-level tokenizer cut to ids below `count`.
  void write_tokenizer(int count) const {
    json file = json::parse(read_whole(kByteLevel));
    json& vocabulary = file["model"]["vocab"];
    for (auto at = vocabulary.begin(); at != vocabulary.end();)
      at = at->get<int>() < count ? std::next(at) : vocabulary.erase(at);
    file["model"]["merges"] = json::array();
    file["added_tokens"] = json::array();
    file["post_processor"] = nullptr;
    write_whole(path() + "/tokenizer.json", file.dump());
  }
  /// Makes the marks of chatml the tokens 200 and 201.
  void add_markers() const {
    json tokenizer = json::parse(read_whole(path() + "/tokenizer.json"));
    int id = 200;
    json& vocabulary = tokenizer["model"]["vocab"];
    for (const char* marker : {"<|im_start|>", "<|im_end|>"}) {
      for (auto at = vocabulary.begin(); at != vocabulary.end(); ++at)
        if (at->get<int>() == id) {
          vocabulary.erase(at);
          break;
        }
      tokenizer["added_tokens"].push_back({{"id", id++}, {"content", marker}, {"special", true}});
    }
    write_whole(path() + "/tokenizer.json", tokenizer.dump());
  }
  void set(const std::string& name, const std::string& key, const json& value) const {
    const std::string file = path() + "/" + name;
    json content = fs::exists(file) ? json::parse(read_whole(file)) : json::object();
    content[key] = value;
    write_whole(file, content.dump());
  }
  std::string text(std::vector<std::string> more) const {
    const ProgramRun run = generate(std::move(more));
    CAPTURE(run.err);
    CHECK(run.code == 0);
    return run.out;
  }
  std::vector<int> tokens(std::vector<std::string> more) const {
    more.push_back("--json");
    return json::parse(text(std::move(more)))["tokens"][0];
  }
  ProgramRun generate(std::vector<std::string> more) const {
    more.insert(more.begin(), {"generate", path(), "--device", "cpu", "-q"});
    return run_program(more);
  }

 private:
  TemporaryDirectory folder_;
};

/// Throws where `text` is not UTF-8.
bool is_valid_utf8(const std::string& text) {
  try {
    (void)json(text).dump();
    return true;
  } catch (const json::exception&) {
    return false;
  }
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_CASE("generated text is UTF-8, whatever the tokens are") {
  const Model model;
  for (int seed = 1; seed <= 4; ++seed) {
    const std::string text = model.text({"--tokens", "150,160,170", "-n", "100", "--temperature",
                                         "50", "--seed", std::to_string(seed), "--ignore-eos"});
    CHECK(is_valid_utf8(text));
    CHECK(text.find("\xef\xbf\xbd") != std::string::npos);
  }
}

TEST_CASE("an id without a piece is U+FFFD in the text") {
  const Model model;
  const std::vector<std::string> run = {"--tokens",      "40,41", "-n",          "60",
                                        "--temperature", "50",    "--ignore-eos"};
  const std::vector<int> tokens = model.tokens(run);
  // Ids 0 to 93 are printable ASCII; from 94 on there is no piece.
  model.write_tokenizer(94);
  const std::string text = model.text(run);
  const auto padding = static_cast<size_t>(
      std::count_if(tokens.begin(), tokens.end(), [](int id) { return id >= 94; }));
  CHECK(padding > 10);
  CHECK(padding < tokens.size());
  CHECK(count_of(text, "\xef\xbf\xbd") == padding);
  CHECK(text.size() == 2 + tokens.size() - padding + 3 * padding + 1);
}

TEST_CASE("a text ends before an end token: a number or a list, the generation config's first") {
  const Model model;
  const std::vector<std::string> run = {"--tokens", "5,6,7", "-n", "20", "--temperature", "5"};
  std::vector<std::string> endless = run;
  endless.push_back("--ignore-eos");
  const std::vector<int> all = model.tokens(endless);
  REQUIRE(all.size() == 20);
  const auto before = [&](int end) {
    return std::vector<int>(all.begin(), std::find(all.begin(), all.end(), end));
  };
  model.set("generation_config.json", "eos_token_id", all[7]);
  CHECK(model.tokens(run) == before(all[7]));
  model.set("generation_config.json", "eos_token_id", {100000, all[4], all[7]});
  CHECK(model.tokens(run) ==
        std::min(before(all[4]), before(all[7]),
                 [](const auto& a, const auto& b) { return a.size() < b.size(); }));
  CHECK(model.tokens(endless) == all);
  fs::remove(model.path() + "/generation_config.json");
  model.set("config.json", "eos_token_id", {all[7]});
  CHECK(model.tokens(run) == before(all[7]));
  model.set("config.json", "eos_token_id", "7");
  const ProgramRun wrong = model.generate(run);
  CHECK(wrong.code == 4);
  CHECK(wrong.err.find("/eos_token_id") != std::string::npos);
}

TEST_CASE("a chat prints the answer alone, and ends with the template's own end token") {
  const Model model;
  model.add_markers();
  model.set("tokenizer_config.json", "chat_template",
            "{{ '<|im_start|>' + role + '\\n' + text + '<|im_end|>' }}");
  const std::string prompt = "<|im_start|>user\nHow?<|im_end|>\n<|im_start|>assistant\n";
  const ProgramRun ids = run_program({"tokenize", model.path(), "--text", prompt, "--json"});
  const std::string spelled =
      fmt::format("{}", fmt::join(json::parse(ids.out)["ids"].get<std::vector<int>>(), ","));
  std::vector<std::string> draws = {"-n", "60", "--temperature", "50", "--seed", "1"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), draws.begin(), draws.end());
    return more;
  };
  // The first seed that draws 201, <|im_end|>, which the config does not name as an end.
  std::vector<int> raw;
  for (int seed = 1; seed < 50 && std::find(raw.begin(), raw.end(), 201) == raw.end(); ++seed) {
    draws.back() = std::to_string(seed);
    raw = model.tokens(with({"--tokens", spelled, "--ignore-eos"}));
  }
  CHECK(model.tokens(with({"--chat", "--prompt", "How?", "--ignore-eos"})) == raw);
  CHECK(model.tokens(with({"--chat-template", "chatml", "--prompt", "How?", "--ignore-eos"})) ==
        raw);
  const std::string answer = model.text(with({"--chat", "--prompt", "How?"}));
  CHECK(answer.find("How?") == std::string::npos);
  CHECK(answer.find("assistant") == std::string::npos);
  REQUIRE(std::find(raw.begin(), raw.end(), 201) != raw.end());
  CHECK(model.tokens(with({"--chat", "--prompt", "How?"})) ==
        std::vector<int>(raw.begin(), std::find(raw.begin(), raw.end(), 201)));
}

TEST_CASE("a chat without a prompt is a conversation with its history") {
  const Model model;
  model.add_markers();
  model.set(
      "tokenizer_config.json", "chat_template",
      "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\nBe kind.<|im_end|>\\n' }}"
      "{% endif %}{{'<|im_start|>' + role + '\\n' + text + '<|im_end|>'}}");
  write_whole(model.path() + "/said", "Hi\n\n  \r\nWhy?\r\nNo");
  const std::string rest = " -q --device cpu -n 4 --ignore-eos " + model.path() + " ";
  const auto answer = [&](const std::string& text) {
    const std::string file = model.path() + "/text";
    write_whole(file, text);
    const ProgramRun run =
        run_shell("\"$SINTER\" generate --rendered-chat --prompt-file " + file + rest);
    REQUIRE(run.code == 0);
    return run.out.substr(0, run.out.size() - 1);
  };
  std::string text = "<|im_start|>system\nBe kind.<|im_end|>\n", answers;
  for (const char* said : {"Hi", "Why?", "No"}) {
    text += fmt::format("<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n", said);
    const std::string answered = answer(text + "\n");
    answers += answered + "\n";
    text += answered + "<|im_end|>\n";
  }
  const std::string converse = "\"$SINTER\" generate --chat" + rest;
  const ProgramRun run = run_shell(converse + "< " + model.path() + "/said");
  CAPTURE(run.err);
  CHECK(run.code == 0);
  CHECK(run.out == answers);
  CHECK(run_shell(converse + "< /dev/null").code == 0);
  // Ctrl-C ends an answer of any length, the end of the input the program.
  const ProgramRun cut = run_shell(
      "set -m; cd " + model.path() +
      "; mkfifo more; \"$SINTER\" generate --chat -q --device cpu -n "
      "1000000 --kv sink=4,window=60 --ignore-eos . < more > out & exec 3> more; echo Hi >&3; "
      "for i in {1..3000}; do [ -s out ] && break; sleep 0.02; done; kill -INT $!; exec 3>&-; wait "
      "$!");
  CAPTURE(cut.err);
  CHECK(cut.code == 0);
  CHECK(read_whole(model.path() + "/out").size() < 900000);
  const ProgramRun full = run_shell("yes why | " + converse);  // 128 positions
  CHECK(full.code == 4);
  CHECK(full.err.find("the conversation is full: it has ") != std::string::npos);
}

TEST_CASE("settings for generating text that are not applied are named once") {
  const Model model;
  model.set("generation_config.json", "repetition_penalty", 1.5);
  const ProgramRun run =
      run_program({"generate", model.path(), "--device", "cpu", "--tokens", "1", "-n", "1"});
  CAPTURE(run.err);
  CHECK(run.code == 0);
  CHECK(count_of(run.err, "are not applied: repetition_penalty 1.5\n") == 1);
}

TEST_CASE("the long factors of longrope count from the first token fed beyond the short ones") {
  const auto said = [](int count) {
    const std::vector<std::string> tokens(40, "1");
    const ProgramRun run = run_program(
        {"generate", SINTER_TESTS_DIR "/golden/phi3_longrope_short", "--device", "cpu", "--tokens",
         fmt::format("{}", fmt::join(tokens, ",")), "-n", std::to_string(count)});
    CAPTURE(run.err);
    CHECK(run.code == 0);
    return count_of(run.err, "a text of 49 tokens exceeds 48: long factors for all of them\n");
  };
  CHECK(said(9) == 0);
  CHECK(said(10) == 1);
}

TEST_CASE("chats that cannot be say what is possible") {
  const Model model;
  const auto check = [&](const std::vector<std::string>& more, int code, const std::string& part) {
    const ProgramRun run = model.generate(more);
    CAPTURE(run.err);
    CHECK(run.code == code);
    CHECK(run.out == "");
    CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
    CHECK(run.err.find(part) != std::string::npos);
  };
  check({"--chat", "--prompt", "a"}, 4,
        "give --chat-template NAME: chatml, llama2, llama3, gemma, phi3, zephyr, mistral");
  check({"--chat-template", "alpaca", "--prompt", "a"}, 4, "\"alpaca\"; give one of chatml, ");
  check({"--chat", "--tokens", "1"}, 2, "give --prompt");
  check({"--chat", "--json"}, 2, "--json: a conversation is printed as text; give a message");
  check({"--chat-template", "mistral"}, 2, "how the chat template mistral writes earlier answers");
  check({"--prompt", "a", "-n", "0"}, 2, "sinter: -n: 0 tokens to add; give 1 or more");
  check({"--system", "b", "--prompt", "a"}, 2, "add --chat");
  check({"--chat", "--rendered-chat", "--prompt", "a"}, 2, "exclude each other");
  check({"--rendered-chat", "--tokens", "1"}, 2, "give --prompt");
  check({"--prompt", "a", "--end-token", "no such"}, 2, "has no token \"no such\"");
  model.set("tokenizer_config.json", "chat_template", "{{ 'Q: ' + text + 'A: ' }}");
  check(
      {"--chat", "--prompt", "a"}, 4,
      "tokenizer_config.json: /chat_template: the program knows a few chat templates by heart, and "
      "this is none of them; `python -m sinter generate --chat --prompt TEXT` renders every "
      "template");
  model.set("tokenizer_config.json", "chat_template",
            "{{ '<|im_start|>system\\nYou are kind.<|im_end|>\\n<|im_start|>' + text }}");
  check({"--chat", "--prompt", "a"}, 2,
        "adds a system message of its own, \"You are kind.\"; give --system TEXT, or "
        "--chat-template chatml for none");
  CHECK(model.generate({"--chat", "--prompt", "a", "--system", "b", "-n", "1"}).code == 0);
  model.set("tokenizer_config.json", "chat_template", 3);
  check({"--chat", "--prompt", "a"}, 4, "/chat_template: expected a string, got 3");
}

TEST_CASE("an option of draws without a temperature is said to draw at temperature 1") {
  const auto run = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"generate", kLlama, "--tokens", "1,2", "--device", "cpu", "-n", "24",
                               "--ignore-eos"});
    const ProgramRun run = run_program(more);
    CAPTURE(run.err);
    CHECK(run.code == 0);
    return run;
  };
  const std::string drawn = run({"--temperature", "1", "--seed", "5"}).out;
  const ProgramRun by_seed = run({"--seed", "5"});
  CHECK(by_seed.out == drawn);
  CHECK(count_of(by_seed.err,
                 "sinter: --seed without --temperature: tokens are drawn at temperature "
                 "1\n") == 1);
  const ProgramRun greedy = run({"--temperature", "0", "--top-p", "0.9"});
  CHECK(greedy.out == run({}).out);
  CHECK(greedy.out != drawn);
  CHECK(count_of(greedy.err, "temperature 0 takes the likeliest token: --top-p changes nothing") ==
        1);
  const ProgramRun both =
      run_program({"generate", kLlama, "--tokens", "1", "--greedy", "--top-k", "3"});
  CHECK(both.code == 2);
  CHECK(both.err.find("--greedy and --top-k exclude each other") != std::string::npos);
}

TEST_CASE("weights with a NaN end with exit code 3 and their name") {
  const Model model;
  std::string file = read_whole(model.path() + "/model.safetensors");
  uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof(length));
  const json header = json::parse(file.substr(sizeof(length), length));
  const size_t begin = header["model.norm.weight"]["data_offsets"][0];
  file.replace(sizeof(length) + length + begin + 2 * sizeof(float), sizeof(float), 4, '\xff');
  write_whole(model.path() + "/model.safetensors", file);
  const std::string lines = model.path() + "/lines";
  write_whole(lines, "1,2\n");
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--tokens", "1,2"}, {"--prompt-ids", lines}}) {
    const ProgramRun run = model.generate(more);
    CHECK(run.code == 3);
    CHECK(run.out == "");
    CHECK(
        run.err.ends_with("the logits after 2 tokens are not finite: element [2] of tensor "
                          "model.norm.weight is nan; the file is damaged: download or export the "
                          "model again\n"));
  }
}

TEST_CASE("fewer than three tokens have no rate, more have") {
  const std::vector<std::string> command = {"generate", kLlama, "--tokens",    "1,2",
                                            "--device", "cpu",  "--ignore-eos"};
  const auto note = [&](const char* count) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"-n", count});
    const ProgramRun run = run_program(arguments);
    CHECK(run.code == 0);
    CHECK(count_of(run.err, "\n") == 1);
    CHECK(run.err.find(" on cpu, which is for checking: 2 prompt tokens, ") != run.err.npos);
    CHECK(run.err.find("2 prompt tokens, first token after ") != std::string::npos);
    return run.err;
  };
  CHECK(note("1").ends_with(" ms\n"));
  CHECK(note("1").find("tokens/s") == std::string::npos);
  CHECK(note("2").ends_with(" ms\n"));
  CHECK(note("2").find("tokens/s") == std::string::npos);
  CHECK(note("4").ends_with(" tokens/s\n"));
}

TEST_CASE("JSON has the text that is printed otherwise") {
  const std::string model = SINTER_SAMPLES_DIR "/tiny-llama";
  const std::vector<std::string> command = {"generate", model, "--prompt", "Once",     "--prompt",
                                            "Long ago", "-n",  "7",        "--device", "cpu"};
  const ProgramRun printed = run_program(command);
  std::vector<std::string> as_json = command;
  as_json.push_back("--json");
  const json result = json::parse(run_program(as_json).out);
  REQUIRE(result["text"].size() == 2);
  CHECK(printed.out == "Once" + result["text"][0].get<std::string>() + "\nLong ago" +
                           result["text"][1].get<std::string>() + "\n");
  const ProgramRun untold =
      run_program({"generate", kLlama, "--tokens", "1,2", "-n", "2", "--json", "--device", "cpu"});
  CHECK_FALSE(json::parse(untold.out).contains("text"));  // no tokenizer
}

TEST_CASE("a prompt can come from a file or from standard input") {
  const TemporaryDirectory folder;
  const std::string file = folder.path() + "/prompt",
                    rest = " -n 6 --device cpu " SINTER_SAMPLES_DIR "/tiny-llama";
  write_whole(file, "Long ago, Mira\n");
  const ProgramRun given = run_shell("\"$SINTER\" generate --prompt 'Long ago, Mira'" + rest);
  REQUIRE(given.code == 0);
  CHECK(run_shell("\"$SINTER\" generate --prompt-file " + file + rest).out == given.out);
  CHECK(run_shell("\"$SINTER\" generate --prompt - < " + file + rest).out == given.out);
  CHECK(run_shell("echo 'Long ago, Mira' | \"$SINTER\" generate --prompt -" + rest).out ==
        given.out);
  const ProgramRun both =
      run_shell("\"$SINTER\" generate --prompt - --prompt-file " + file + " < " + file + rest);
  CHECK(both.out == given.out + given.out);
  const ProgramRun twice = run_shell("\"$SINTER\" generate --prompt - --prompt - < " + file + rest);
  CHECK(twice.code == 2);
  CHECK(twice.err.find("standard input is read once") != std::string::npos);
  write_whole(file, "a\xff");
  CHECK(run_shell("\"$SINTER\" generate --prompt - < " + file + rest).code == 4);
}

TEST_CASE("many prompts go through a few places, a line each in their order") {
  const TemporaryDirectory folder;
  const std::string file = folder.path() + "/prompts", model = SINTER_SAMPLES_DIR "/tiny-llama",
                    rest = " -n 6 --ignore-eos --device cpu " + model;
  write_whole(file, "Long ago, Mira\r\nOnce\nThe\nLong ago, Mira\n");
  const auto lines_of = [&](const std::string& arguments) {
    const ProgramRun run = run_shell("\"$SINTER\" generate " + arguments + rest);
    CAPTURE(run.err);
    CHECK(run.code == 0);
    CHECK(run.err.find("caches of ") != std::string::npos);
    std::vector<json> lines;
    std::istringstream text(run.out);
    for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
    return lines;
  };
  const std::vector<json> lines = lines_of("--places 2 --prompts " + file);
  REQUIRE(lines.size() == 4);
  CHECK(lines_of("--places 4 --prompts - < " + file) == lines);
  for (size_t i = 0; i < lines.size(); ++i) CHECK(lines[i]["prompt"] == i);
  const json alone = json::parse(run_shell("\"$SINTER\" generate --json --prompt Once" + rest).out);
  CHECK(lines[1]["text"] == alone["text"][0]);
  CHECK(lines[1]["tokens"] == alone["tokens"][0]);
  CHECK(lines[3]["text"] == lines[0]["text"]);
  // By ids; a vocabulary without a tokenizer has no text.
  write_whole(file, "1,2\n3\n");
  const std::string llama = " -n 3 --device cpu " + kLlama;
  const ProgramRun ids = run_shell("\"$SINTER\" generate --prompt-ids " + file + llama);
  CHECK(ids.code == 0);
  CHECK(ids.out.starts_with("{\"prompt\":0,\"tokens\":["));
  CHECK(ids.out.find("text") == std::string::npos);
  const auto refused = [&](const std::string& arguments, int code, const std::string& part) {
    const ProgramRun run = run_shell("\"$SINTER\" generate " + arguments);
    CAPTURE(run.err);
    CHECK(run.code == code);
    CHECK(run.err.find(part) != std::string::npos);
  };
  refused("--prompts " + file + llama, 4, "the model has no tokenizer");
  refused("--prompts " + file + " --prompt a" + rest, 2, "stand alone");
  refused("--prompts " + folder.path() + "/none" + rest, 4, "none");
  write_whole(file, "1,2\n3,x\n");
  refused("--prompt-ids " + file + llama, 4, file + ":2");
  write_whole(file, "1,2\n9999\n");
  refused("--prompt-ids " + file + llama, 4, "9999");
  write_whole(file, "");
  refused("--prompts " + file + rest, 4, "no line");
}

}  // namespace
}  // namespace sinter::generate_test
