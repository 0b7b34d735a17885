// Commands that must be refused with bad input: exit 4, one line that names the file and what to
// do, nothing printed, and soon. Memory is bounded, so that a size is checked before it is
// allocated.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <regex>

#include "cli/program.h"
#include "runtime/temporary_directory.h"

namespace sinter {

using Parts = std::initializer_list<std::string>;

inline const std::string kGolden = SINTER_TESTS_DIR "/golden/";
constexpr int kMaxSeconds = 10;
// Address space; most of it is libraries and reserves of threads. Sanitizers take terabytes.
#ifdef __SANITIZE_ADDRESS__
constexpr const char* kLimit = "";
#else
constexpr const char* kLimit = "ulimit -v 6291456; ";
#endif

inline std::string quoted(const std::string& text) { return "'" + text + "'"; }

/// Runs a command that must be refused with bad input.
inline void check_refused(const std::vector<std::string>& arguments, Parts parts) {
  std::string line = std::string(kLimit) + "\"$SINTER\"";
  for (const std::string& argument : arguments) line += " " + quoted(argument);
  const auto begin = std::chrono::steady_clock::now();
  const ProgramRun run = run_shell(line);
  CAPTURE(line);
  CAPTURE(run.err);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(kMaxSeconds));
  CHECK(run.code == 4);
  CHECK(run.out == "");
  CHECK(run.err.starts_with("sinter: "));
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  CHECK(run.err.size() < 2000);
  for (const std::string& part : parts) {
    CAPTURE(part);
    CHECK(run.err.find(part) != std::string::npos);
  }
}

class Folder : public TemporaryDirectory {
 public:
  std::string at(const std::string& name) const { return path() + "/" + name; }
  std::string write(const std::string& name, const std::string& bytes) const {
    write_whole(at(name), bytes);
    return at(name);
  }
  /// The config of a golden model with one value written otherwise.
  void config(const std::string& model, const std::string& key, const std::string& value) const {
    const std::string text = read_whole(kGolden + model + "/config.json");
    const std::regex pattern("\"" + key + "\": [^,\n}]*");
    REQUIRE(std::regex_search(text, pattern));
    write("config.json", std::regex_replace(text, pattern, "\"" + key + "\": " + value,
                                            std::regex_constants::format_first_only));
  }
};

}  // namespace sinter
