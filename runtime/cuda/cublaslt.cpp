#include "runtime/cuda/cublaslt.h"

#include "runtime/dynamic_library.h"

namespace sinter {
namespace {

constexpr const char* kCublasLtTitle = "cuBLASLt";

Result<CublasLtApi> open_cublaslt() {
  SINTER_LET(
      library,
      open_library(kCublasLtTitle,
                   toolkit_paths({"libcublasLt.so.13", "libcublasLt.so.12"}, {"lib64"}),
                   "install the CUDA toolkit, 12 or newer, or set CUDA_HOME to where it is"));
  CublasLtApi api;
  library.bind(api.version, "cublasLtGetVersion");
  library.bind(api.status_name, "cublasLtGetStatusName");
  library.bind(api.create, "cublasLtCreate");
  library.bind(api.destroy, "cublasLtDestroy");
  library.bind(api.matmul_create, "cublasLtMatmulDescCreate");
  library.bind(api.matmul_destroy, "cublasLtMatmulDescDestroy");
  library.bind(api.matmul_set, "cublasLtMatmulDescSetAttribute");
  library.bind(api.layout_create, "cublasLtMatrixLayoutCreate");
  library.bind(api.layout_destroy, "cublasLtMatrixLayoutDestroy");
  library.bind(api.layout_set, "cublasLtMatrixLayoutSetAttribute");
  library.bind(api.preference_create, "cublasLtMatmulPreferenceCreate");
  library.bind(api.preference_destroy, "cublasLtMatmulPreferenceDestroy");
  library.bind(api.preference_set, "cublasLtMatmulPreferenceSetAttribute");
  library.bind(api.heuristics, "cublasLtMatmulAlgoGetHeuristic");
  library.bind(api.config_get, "cublasLtMatmulAlgoConfigGetAttribute");
  library.bind(api.multiply, "cublasLtMatmul");
  SINTER_TRY(library.require_all(kCublasLtTitle, "install the CUDA toolkit, 12 or newer"));
  return api;
}

}  // namespace

Result<const CublasLtApi*> load_cublaslt() { return load_once<open_cublaslt>(); }

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
