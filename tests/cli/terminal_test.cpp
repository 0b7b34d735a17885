// Names and texts from files: what a terminal would obey or hide is escaped; a pipe gets exact
// bytes.
#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "runtime/temporary_directory.h"

namespace sinter::terminal_test {
namespace {

// ESC, a C1 control (U+009B), two controls of direction (U+202E, U+2066).
constexpr const char* kNames[] = {"\x1b[31m",
                                  "\xc2\x9b"
                                  "31m",
                                  "\xe2\x80\xae"
                                  "abc",
                                  "\xe2\x81\xa6"
                                  "abc"};
constexpr const char* kEscaped[] = {"\\x1b[31m", "\\xc2\\x9b31m", "\\xe2\\x80\\xaeabc",
                                    "\\xe2\\x81\\xa6abc"};

/// Does the text hold one of the characters, or another control than newline, tab and the return
/// that a terminal adds?
bool harms_terminal(const std::string& text) {
  for (const char* raw : {"\xc2\x9b", "\xe2\x80\xae", "\xe2\x81\xa6"})
    if (text.find(raw) != std::string::npos) return true;
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' && c != '\r') return true;
  return false;
}

std::string module_with(const std::string& name) {
  return fmt::format(R"(module @m {{
  entry @"{0}"(%x: f32[4, 8]) -> (%"{0}.z") {{
    %"{0}" = neg %x : f32[4, 8]
    %"{0}.z" = softmax %"{0}" : f32[4, 8]
  }}
}}
)",
                     name);
}

TEST_CASE("names from a file harm no terminal") {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    const TemporaryDirectory folder;
    const std::string module = folder.path() + "/m.sir", name = kNames[i];
    write_whole(module, module_with(name));
    size_t shown = 0;
    for (const std::vector<std::string>& command :
         std::vector<std::vector<std::string>>{{"inspect", module},
                                               {"opt", module},
                                               {"explain", module},
                                               {"explain", module, "--why", name, name + ".z"},
                                               {"explain", module, "--why", name, "x"},
                                               {"explain", module, "--json"},
                                               {"compile", module, "-o", folder.path() + "/plan"},
                                               {"verify", module, "--device", "cpu"}}) {
      const ProgramRun run = run_on_terminal(command);
      CAPTURE(command[0]);
      CAPTURE(run.err);
      CHECK(run.code == 0);
      CHECK_FALSE(run.out.empty());
      CHECK_FALSE(harms_terminal(run.out));
      CHECK_FALSE(harms_terminal(run.err));
      shown += run.out.find(kEscaped[i]) != std::string::npos;
    }
    CHECK(shown >= 5);
  }
}

TEST_CASE("an argument in an error message harms no terminal") {
  const std::string gpt2 = SINTER_TESTS_DIR "/golden/gpt2";
  for (size_t i = 0; i < std::size(kNames); ++i) {
    const std::string name = kNames[i];
    for (const std::vector<std::string>& command :
         std::vector<std::vector<std::string>>{{"explain", gpt2, "--phase", name},
                                               {"explain", gpt2, "--require", name + "," + name},
                                               {"compile", gpt2, name},
                                               {"opt", gpt2, "--pass", name},
                                               {"inspect", name},
                                               {"inspect", gpt2, "--" + name}}) {
      const ProgramRun run = run_program(command);
      CAPTURE(run.err);
      CHECK(run.code != 0);
      CHECK_FALSE(harms_terminal(run.err));
      CHECK(run.err.find(kEscaped[i]) != std::string::npos);
    }
  }
}

TEST_CASE("a pipe gets the exact bytes of a result") {
  const TemporaryDirectory folder;
  std::string text = "a";
  for (const char* name : kNames) text += name;
  write_whole(folder.path() + "/text", text);
  const std::string model = SINTER_SAMPLES_DIR "/tiny-llama";
  const ProgramRun encoded = run_program(
      {"tokenize", model, "--file", folder.path() + "/text", "--no-special-tokens", "--json"});
  REQUIRE_MESSAGE(encoded.code == 0, encoded.err);
  const auto ids = nlohmann::json::parse(encoded.out)["ids"].get<std::vector<int>>();
  const std::vector<std::string> decode = {"tokenize", model, "--no-special-tokens", "--decode",
                                           fmt::format("{}", fmt::join(ids, ","))};
  CHECK(run_program(decode).out == text + "\n");
  const std::string shown = run_on_terminal(decode).out;
  CHECK_FALSE(harms_terminal(shown));
  for (const char* escaped : kEscaped) CHECK(shown.find(escaped) != std::string::npos);
}

}  // namespace
}  // namespace sinter::terminal_test
