#include "runtime/cupti.h"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace sinter {
namespace {

constexpr const char* kNames[] = {"libcupti.so.13", "libcupti.so.12"};

/// What to ask the dynamic loader for, in order. A bare name is sought where the loader looks.
std::vector<std::string> candidates() {
  std::vector<std::string> paths(std::begin(kNames), std::end(kNames));
  std::vector<std::string> roots;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* root = std::getenv(variable); root != nullptr && *root != 0) roots.emplace_back(root);
  roots.emplace_back("/usr/local/cuda");
  for (const std::string& root : roots)
    for (const char* folder : {"extras/CUPTI/lib64", "lib64"})
      for (const char* name : kNames) paths.push_back(fmt::format("{}/{}/{}", root, folder, name));
  return paths;
}

Result<void*> open_library() {
  const std::vector<std::string> paths = candidates();
  for (const std::string& path : paths)
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  return fail(fmt::format("CUPTI cannot be loaded as any of {}", fmt::join(paths, ", ")), {},
              "install the CUDA toolkit with CUPTI, 12 or newer, or set CUDA_HOME to where it is", ExitCode::device);
}

Result<CuptiApi> load() {
  SINTER_LET(library, open_library());
  CuptiApi api;
  const char* missing = nullptr;
  const auto bind = [&]<typename F>(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(library, name));
    if (function == nullptr && missing == nullptr) missing = name;
  };
  bind(api.version, "cuptiGetVersion");
  bind(api.result_string, "cuptiGetResultString");
  bind(api.register_callbacks, "cuptiActivityRegisterCallbacks");
  bind(api.enable, "cuptiActivityEnable");
  bind(api.disable, "cuptiActivityDisable");
  bind(api.flush_all, "cuptiActivityFlushAll");
  bind(api.next_record, "cuptiActivityGetNextRecord");
  bind(api.dropped_records, "cuptiActivityGetNumDroppedRecords");
  bind(api.push_external, "cuptiActivityPushExternalCorrelationId");
  bind(api.pop_external, "cuptiActivityPopExternalCorrelationId");
  if (missing != nullptr)
    return fail(fmt::format("CUPTI has no {}", missing), {}, "install the CUDA toolkit, 12 or newer", ExitCode::device);
  return api;
}

}  // namespace

Result<const CuptiApi*> load_cupti() {
  static std::mutex mutex;
  static std::optional<Result<CuptiApi>> loaded;
  const std::lock_guard lock(mutex);
  if (!loaded) loaded = load();
  if (!*loaded) return tl::make_unexpected(loaded->error());
  return &**loaded;
}

Error cupti_error(const CuptiApi& api, std::string_view call, int result) {
  const char* name = nullptr;
  if (api.result_string(result, &name) != CuptiApi::kSuccess || name == nullptr) name = "unknown result";
  return Error{fmt::format("{}: {} ({})", call, name, result), {}, {}, ExitCode::device};
}

}  // namespace sinter
