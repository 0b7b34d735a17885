// The modules in samples/: each run line of their comments works and prints what is quoted below
// it.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "cli/program.h"

namespace sinter::samples_test {
namespace {

namespace fs = std::filesystem;

struct RunLine {
  std::string command;              // "sinter verify samples/m.sir"
  std::vector<std::string> quoted;  // parts of its output
};

/// The commands, and the output they quote, in comments such as
///   // $ sinter explain samples/m.sir
///   //     part of the output
std::vector<RunLine> run_lines(const std::string& text) {
  constexpr std::string_view kRun = "// $ ", kQuote = "//     ";
  std::vector<RunLine> lines;
  bool quoting = false;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with(kRun)) {
      lines.push_back({line.substr(kRun.size()), {}});
      quoting = true;
    } else if (quoting && line.starts_with(kQuote)) {
      lines.back().quoted.push_back(line.substr(kQuote.size()));
    } else {
      quoting = false;
    }
  }
  return lines;
}

/// The module files of the folder, sorted.
std::vector<fs::path> sample_modules() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(SINTER_SAMPLES_DIR))
    if (entry.path().extension() == ".sir") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// A line that begins with `sinter`, in the repository's root.
ProgramRun run_in_root(const std::string& line) {
  return run_shell("cd '" SINTER_SAMPLES_DIR "/..' && sinter() { \"$SINTER\" \"$@\"; } && " + line);
}

TEST_CASE("run lines of samples print what their comments quote") {
  const std::vector<fs::path> modules = sample_modules();
  CHECK(modules.size() >= 7);
  for (const fs::path& path : modules) {
    CAPTURE(path.filename().string());
    const std::vector<RunLine> lines = run_lines(read_whole(path.string()));
    CHECK_FALSE(lines.empty());
    for (const RunLine& line : lines) {
      CAPTURE(line.command);
      CHECK(line.command.starts_with("sinter "));
      CHECK_FALSE(line.quoted.empty());
      const ProgramRun run = run_in_root(line.command);
      CHECK_MESSAGE(run.code == 0, run.err);
      for (const std::string& part : line.quoted)
        CHECK_MESSAGE(run.out.find(part) != std::string::npos, "no \"", part, "\" in:\n", run.out);
    }
  }
}

TEST_CASE("samples are named in the folder's README") {
  const std::string readme = read_whole(SINTER_SAMPLES_DIR "/README.md");
  for (const fs::path& path : sample_modules()) {
    const std::string name = "`" + path.filename().string() + "`";
    CHECK_MESSAGE(readme.find(name) != std::string::npos, name);
  }
}

}  // namespace
}  // namespace sinter::samples_test
