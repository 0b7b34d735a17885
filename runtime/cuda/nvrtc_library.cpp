#include "runtime/cuda/nvrtc_library.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <vector>

#include "runtime/dynamic_library.h"

namespace sinter {
namespace {

// The directories that the dynamic loader searches for this program, without the directories of its
// cache.
void append_loader_directories(std::vector<std::string>& out) {
  void* self = dlopen(nullptr, RTLD_NOW);
  if (self == nullptr) return;
  Dl_serinfo size;
  if (dlinfo(self, RTLD_DI_SERINFOSIZE, &size) == 0) {
    std::vector<std::max_align_t> storage(size.dls_size / sizeof(std::max_align_t) + 1);
    auto* info = reinterpret_cast<Dl_serinfo*>(storage.data());
    *info = size;
    if (dlinfo(self, RTLD_DI_SERINFOSIZE, info) == 0 && dlinfo(self, RTLD_DI_SERINFO, info) == 0)
      for (unsigned i = 0; i < info->dls_cnt; ++i) out.emplace_back(info->dls_serpath[i].dls_name);
  }
  dlclose(self);
}

// The directories that the loader's cache is made from.
void append_configured_directories(std::vector<std::string>& out) {
  std::error_code error;
  std::vector<std::string> files;
  for (std::filesystem::directory_iterator it("/etc/ld.so.conf.d", error), end; !error && it != end;
       it.increment(error))
    if (it->path().extension() == ".conf") files.push_back(it->path().string());
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with('/')) out.push_back(line.substr(0, line.find_last_not_of(" \t\r") + 1));
  }
}

std::vector<std::string> search_directories() {
  std::vector<std::string> directories;
  append_loader_directories(directories);
  append_configured_directories(directories);
  for (const std::string& root : toolkit_roots()) directories.push_back(root + "/lib64");
  return directories;
}

// NVRTC installs handlers of SIGINT and SIGTERM while it compiles. They call exit() in whatever
// thread the signal finds, and afterwards the signals, and SIGXFSZ, have their default actions,
// whatever the program had chosen. So its calls come here: they say what it expects of a program
// that handles no signal, and change nothing.
sighandler_t keep_handler(int, sighandler_t) { return SIG_DFL; }

int keep_action(int signal, const struct sigaction*, struct sigaction* current) {
  return current != nullptr ? ::sigaction(signal, nullptr, current) : 0;
}

constexpr const char* kHint = "install a complete CUDA toolkit, 12 or newer";

constexpr LibraryFunction<NvrtcApi> kNvrtcFunctions[] = {
    {"nvrtcCreateProgram", set_function<&NvrtcApi::create_program>},
    {"nvrtcCompileProgram", set_function<&NvrtcApi::compile_program>},
    {"nvrtcDestroyProgram", set_function<&NvrtcApi::destroy_program>},
    {"nvrtcGetCUBINSize", set_function<&NvrtcApi::cubin_size>},
    {"nvrtcGetCUBIN", set_function<&NvrtcApi::cubin>},
    {"nvrtcGetProgramLogSize", set_function<&NvrtcApi::log_size>},
    {"nvrtcGetProgramLog", set_function<&NvrtcApi::log>},
    {"nvrtcGetErrorString", set_function<&NvrtcApi::error_string>},
};

Result<NvrtcApi> load(const std::string& path) {
  auto library = DynamicLibrary::open(path);
  if (!library) {
    const char* reason = dlerror();
    return fail(fmt::format("NVRTC cannot be loaded: {}", reason ? reason : "unknown reason"), path,
                kHint, ExitCode::device);
  }
  SINTER_LET(api, library->functions(kNvrtcFunctions, "NVRTC", kHint, path));
  library->replace("signal", reinterpret_cast<void*>(&keep_handler));
  library->replace("sigaction", reinterpret_cast<void*>(&keep_action));
  return api;
}

}  // namespace

Result<NvrtcFile> find_nvrtc() {
  const std::vector<std::string> directories = search_directories();
  for (const std::string& directory : directories)
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) {
      const std::string path = directory + "/" + name;
      struct stat status;
      if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
      std::error_code error;
      const std::filesystem::path resolved = std::filesystem::canonical(path, error);
      if (error) continue;
      return NvrtcFile{path,
                       fmt::format("{} {} {}.{:09}", resolved.filename().string(), status.st_size,
                                   status.st_mtim.tv_sec, status.st_mtim.tv_nsec)};
    }
  return fail(
      fmt::format("no libnvrtc.so.13, .12 or unversioned in {}", fmt::join(directories, ":")), "",
      "install the CUDA toolkit or set CUDA_HOME to where it is", ExitCode::device);
}

Result<const NvrtcApi*> load_nvrtc(const std::string& path) {
  static std::mutex mutex;
  static auto& loaded = never_destroyed([] { return std::map<std::string, NvrtcApi>(); });
  const std::lock_guard lock(mutex);
  auto it = loaded.find(path);
  if (it == loaded.end()) {
    SINTER_LET(api, load(path));
    it = loaded.emplace(path, api).first;
  }
  return &it->second;
}

}  // namespace sinter
