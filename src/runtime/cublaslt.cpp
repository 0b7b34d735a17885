#include "runtime/cublaslt.h"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>
#include <optional>
#include <vector>

namespace sinter {
namespace {

constexpr const char* kNames[] = {"libcublasLt.so.13", "libcublasLt.so.12"};

/// What to ask the dynamic loader for, in order. A bare name is sought where the loader looks.
std::vector<std::string> candidates() {
  std::vector<std::string> paths(std::begin(kNames), std::end(kNames));
  std::vector<std::string> roots;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* root = std::getenv(variable); root != nullptr && *root != 0)
      roots.emplace_back(root);
  roots.emplace_back("/usr/local/cuda");
  for (const std::string& root : roots)
    for (const char* name : kNames) paths.push_back(fmt::format("{}/lib64/{}", root, name));
  return paths;
}

Result<void*> open_library() {
  const std::vector<std::string> paths = candidates();
  for (const std::string& path : paths)
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  return fail(fmt::format("cuBLASLt cannot be loaded as any of {}", fmt::join(paths, ", ")), {},
              "install the CUDA toolkit, 12 or newer, or set CUDA_HOME to where it is",
              ExitCode::device);
}

Result<CublasLtApi> load() {
  SINTER_LET(library, open_library());
  CublasLtApi api;
  const char* missing = nullptr;
  const auto bind = [&]<typename F>(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(library, name));
    if (function == nullptr && missing == nullptr) missing = name;
  };
  bind(api.version, "cublasLtGetVersion");
  bind(api.status_name, "cublasLtGetStatusName");
  bind(api.create, "cublasLtCreate");
  bind(api.destroy, "cublasLtDestroy");
  bind(api.matmul_create, "cublasLtMatmulDescCreate");
  bind(api.matmul_destroy, "cublasLtMatmulDescDestroy");
  bind(api.matmul_set, "cublasLtMatmulDescSetAttribute");
  bind(api.layout_create, "cublasLtMatrixLayoutCreate");
  bind(api.layout_destroy, "cublasLtMatrixLayoutDestroy");
  bind(api.layout_set, "cublasLtMatrixLayoutSetAttribute");
  bind(api.preference_create, "cublasLtMatmulPreferenceCreate");
  bind(api.preference_destroy, "cublasLtMatmulPreferenceDestroy");
  bind(api.preference_set, "cublasLtMatmulPreferenceSetAttribute");
  bind(api.heuristics, "cublasLtMatmulAlgoGetHeuristic");
  bind(api.config_get, "cublasLtMatmulAlgoConfigGetAttribute");
  bind(api.multiply, "cublasLtMatmul");
  if (missing != nullptr)
    return fail(fmt::format("cuBLASLt has no {}", missing), {},
                "install the CUDA toolkit, 12 or newer", ExitCode::device);
  return api;
}

}  // namespace

Result<const CublasLtApi*> load_cublaslt() {
  static std::mutex mutex;
  static std::optional<Result<CublasLtApi>> loaded;
  const std::lock_guard lock(mutex);
  if (!loaded) loaded = load();
  if (!*loaded) return tl::make_unexpected(loaded->error());
  return &**loaded;
}

Error cublaslt_error(const CublasLtApi& api, std::string_view call, int status, std::string where) {
  const char* name = api.status_name(status);
  return Error{fmt::format("{}: {} ({})", call, name != nullptr ? name : "unknown status", status),
               std::move(where),
               {},
               ExitCode::device};
}

Result<std::shared_ptr<CublasLt>> CublasLt::create() {
  SINTER_LET(api, load_cublaslt());
  std::shared_ptr<CublasLt> library(new CublasLt(*api));
  if (const int status = api->create(&library->handle_); status != CublasLtApi::kSuccess)
    return tl::make_unexpected(cublaslt_error(*api, "cublasLtCreate", status, library->name()));
  return library;
}

CublasLt::~CublasLt() {
  if (handle_ != nullptr) api_.destroy(handle_);
}

std::string CublasLt::name() const { return fmt::format("cuBLASLt {}", api_.version()); }

}  // namespace sinter
