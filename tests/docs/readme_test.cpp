// README.md, docs/invariance.md and docs/bisect.md: each block that begins with "$ " is a command,
// and prints what the block shows. "..." on a line of its own stands for any lines, and "…" in a
// line for any text, spaces behind it included: what depends on the machine.
#include <doctest/doctest.h>

#include <filesystem>
#include <regex>
#include <sstream>

#include "cli/program.h"
#include "support/check_text.h"

namespace sinter::readme_test {
namespace {

struct Block {
  std::string command;
  std::vector<std::string> output;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<Block> blocks_of(const std::string& page) {
  std::vector<Block> blocks;
  bool inside = false, shown = false;
  for (const std::string& line : lines_of(page)) {
    if (line.starts_with("```")) {
      inside = !inside;
      shown = false;
    } else if (inside && line.starts_with("$ ")) {
      blocks.push_back({line.substr(2), {}});
      shown = true;
    } else if (shown) {
      blocks.back().output.push_back(line);
    }
  }
  return blocks;
}

bool matches_line(const std::string& shown, const std::string& line) {
  std::string pattern;
  for (size_t at = 0; at < shown.size();) {
    if (shown.compare(at, 3, "…") == 0) {
      pattern += ".*";
      // A column is as wide as what stands there.
      at = std::min(shown.find_first_not_of(' ', at + 3), shown.size());
      continue;
    }
    if (!std::isalnum(static_cast<unsigned char>(shown[at])) && (shown[at] & 0x80) == 0)
      pattern += '\\';
    pattern += shown[at++];
  }
  return std::regex_match(line, std::regex(pattern));
}

/// The shown lines stand in the output in their order: without "..." between two, one follows the
/// other. Returns the first line that does not, or "".
std::string missing_line(const Block& block, const std::vector<std::string>& output) {
  size_t next = 0;
  bool skips = false;
  for (const std::string& shown : block.output) {
    if (shown.find_first_not_of(' ') != std::string::npos &&
        shown.substr(shown.find_first_not_of(' ')) == "...") {
      skips = true;
      continue;
    }
    size_t at = next;
    while (skips && at < output.size() && !matches_line(shown, output[at])) ++at;
    if (at >= output.size() || !matches_line(shown, output[at])) return shown;
    next = at + 1;
    skips = false;
  }
  return skips || next == output.size() ? "" : "(the output goes on: " + output[next] + ")";
}

TEST_CASE("commands of the README and of docs/invariance.md print what they show") {
  std::vector<Block> blocks = blocks_of(test::read_text(SINTER_SAMPLES_DIR "/../README.md"));
  CHECK(blocks.size() >= 3);
  const auto more = blocks_of(test::read_text(SINTER_SAMPLES_DIR "/../docs/invariance.md"));
  CHECK(more.size() == 1);
  blocks.insert(blocks.end(), more.begin(), more.end());
  for (const Block& block : blocks) {
    if (!block.command.starts_with("sinter")) continue;
    CAPTURE(block.command);
    const TemporaryDirectory place;
    const ProgramRun run = run_shell(
        "cd '" SINTER_SAMPLES_DIR "/..' && sinter() { \"$SINTER\" \"$@\"; } && " +
        std::regex_replace(block.command, std::regex("-o [^ ]+"), "-o " + place.path() + "/plan"));
    CAPTURE(run.err);
    CAPTURE(run.out);
    CHECK(run.code == 0);
    CHECK(missing_line(block, lines_of(run.out)) == "");
  }
}

TEST_CASE("the story of docs/bisect.md happens as it is told") {
  const std::string page = test::read_text(SINTER_SAMPLES_DIR "/../docs/bisect.md");
  const TemporaryDirectory place;
  // A block "```text NAME" is a file.
  std::string file;
  for (const std::string& line : lines_of(page)) {
    constexpr std::string_view kFile = "```text ";
    if (line.starts_with(kFile))
      file = place.path() + "/" + line.substr(kFile.size());
    else if (line.starts_with("```"))
      file.clear();
    else if (!file.empty())
      write_whole(file, (std::filesystem::exists(file) ? read_whole(file) : "") + line + "\n");
  }
  const std::vector<Block> blocks = blocks_of(page);
  CHECK(blocks.size() >= 5);
  for (const Block& block : blocks) {
    CAPTURE(block.command);
    const ProgramRun run =
        run_shell("sinter() { \"$SINTER\" \"$@\"; } && cd '" + place.path() +
                  "' && export PATH=\"$(dirname \"$SINTER\"):$PATH\" && " + block.command);
    CAPTURE(run.err);
    CAPTURE(run.out);
    CHECK(run.code == 0);
    CHECK(missing_line(block, lines_of(run.out)) == "");
  }
}

TEST_CASE("the picture of the README is the graph that the program writes") {
  const TemporaryDirectory place;
  const std::string file = place.path() + "/graph.dot";
  const ProgramRun run =
      run_program({"explain", SINTER_SAMPLES_DIR "/pre_ln_block.sir", "--dot", file});
  REQUIRE_MESSAGE(run.code == 0, run.err);
  // The picture is made of this file: dot -Tsvg docs/images/pre_ln_block.dot
  test::check_text_file(read_whole(file), "../docs/images/pre_ln_block.dot", "readme");
}

TEST_CASE("a block that shows something else is found") {
  const Block block{"", {"a …", "...", "c"}};
  CHECK(missing_line(block, {"a 1", "b", "c"}) == "");
  CHECK(missing_line(block, {"b 1", "b", "c"}) == "a …");
  CHECK(missing_line(block, {"a 1", "b", "d"}) == "c");
  CHECK(missing_line(block, {"a 1", "c", "d"}) == "(the output goes on: d)");
  CHECK(missing_line({"", {"a", "c"}}, {"a", "b", "c"}) == "c");
}

}  // namespace
}  // namespace sinter::readme_test
