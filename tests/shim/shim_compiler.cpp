#include "shim/shim_compiler.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

extern char** environ;

namespace sinter {

ScratchFolder::ScratchFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "sinter-shim-XXXXXX").string();
  SINTER_CHECK(mkdtemp(name.data()), "cannot make a folder like {}", name);
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  SINTER_CHECK(file.good(), "cannot write {}", path.string());
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  SINTER_CHECK(file.good(), "cannot read {}", path.string());
  return text.str();
}

namespace {

std::vector<std::string> compiler_words() {
  // -O0, unless the flags below say otherwise: most kernels run for microseconds, so that compiling
  // dominates. Contraction is off as it is on the host and in NVRTC; loads through vector types
  // alias freely, as NVRTC lets them.
  std::vector<std::string> words{SINTER_SHIM_CXX,
                                 "-std=c++17",
                                 "-O0",
                                 "-fPIC",
                                 "-w",
                                 "-ffp-contract=off",
                                 "-fno-strict-aliasing",
                                 "-fno-exceptions",
                                 "-fno-rtti",
                                 "-I" SINTER_SHIM_INCLUDE};
  // The environment's flags replace the build's: a plain build can so run sanitized kernel text.
  const char* given = std::getenv("SINTER_SHIM_FLAGS");
  std::istringstream flags(given ? given : SINTER_SHIM_FLAGS);
  for (std::string flag; flags >> flag;) words.push_back(flag);
  return words;
}

}  // namespace

std::string compiler_identity() {
  std::string text;
  for (const std::string& word : compiler_words()) text += word + '\n';
  std::error_code error;
  const auto bytes = std::filesystem::file_size(SINTER_SHIM_CXX, error);
  const auto written = std::filesystem::last_write_time(SINTER_SHIM_CXX, error);
  text +=
      fmt::format("{} {} {}\n", SINTER_SHIM_CXX_VERSION, bytes, written.time_since_epoch().count());
  for (const char* name : {"shim/cuda_shim.h", "shim/shim_interface.h"})
    text += read_file(std::filesystem::path(SINTER_SHIM_INCLUDE) / name);
  return text;
}

Status run_compiler(llvm::ArrayRef<std::string> arguments, const std::filesystem::path& log) {
  std::vector<std::string> words = compiler_words();
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  // Libraries that LD_PRELOAD loads into this process are not meant for the compiler.
  std::vector<char*> environment;
  for (char** variable = environ; *variable; ++variable)
    if (!std::string_view(*variable).starts_with("LD_PRELOAD=")) environment.push_back(*variable);
  environment.push_back(nullptr);
  const int error =
      posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error) return fail(fmt::format("cannot start the compiler {} (error {})", argv[0], error));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  std::ifstream file(log);
  std::string messages(4000, '\0');
  file.read(messages.data(), static_cast<std::streamsize>(messages.size()));
  messages.resize(static_cast<size_t>(file.gcount()));
  return fail("the C++ compiler rejects the kernel text:\n" + messages, log.string());
}

}  // namespace sinter
