#include "runtime/cuda/cublaslt.h"

#include "runtime/dynamic_library.h"

namespace sinter {
namespace {

constexpr const char* kCublasLtTitle = "cuBLASLt";

constexpr LibraryFunction<CublasLtApi> kCublasLtFunctions[] = {
    {"cublasLtGetVersion", set_function<&CublasLtApi::version>},
    {"cublasLtGetStatusName", set_function<&CublasLtApi::status_name>},
    {"cublasLtCreate", set_function<&CublasLtApi::create>},
    {"cublasLtDestroy", set_function<&CublasLtApi::destroy>},
    {"cublasLtMatmulDescCreate", set_function<&CublasLtApi::matmul_create>},
    {"cublasLtMatmulDescDestroy", set_function<&CublasLtApi::matmul_destroy>},
    {"cublasLtMatmulDescSetAttribute", set_function<&CublasLtApi::matmul_set>},
    {"cublasLtMatrixLayoutCreate", set_function<&CublasLtApi::layout_create>},
    {"cublasLtMatrixLayoutDestroy", set_function<&CublasLtApi::layout_destroy>},
    {"cublasLtMatrixLayoutSetAttribute", set_function<&CublasLtApi::layout_set>},
    {"cublasLtMatmulPreferenceCreate", set_function<&CublasLtApi::preference_create>},
    {"cublasLtMatmulPreferenceDestroy", set_function<&CublasLtApi::preference_destroy>},
    {"cublasLtMatmulPreferenceSetAttribute", set_function<&CublasLtApi::preference_set>},
    {"cublasLtMatmulAlgoGetHeuristic", set_function<&CublasLtApi::heuristics>},
    {"cublasLtMatmulAlgoConfigGetAttribute", set_function<&CublasLtApi::config_get>},
    {"cublasLtMatmul", set_function<&CublasLtApi::multiply>},
};

Result<CublasLtApi> open_cublaslt() {
  SINTER_LET(
      library,
      open_library(kCublasLtTitle,
                   toolkit_paths({"libcublasLt.so.13", "libcublasLt.so.12"}, {"lib64"}),
                   "install the CUDA toolkit, 12 or newer, or set CUDA_HOME to where it is"));
  return library.functions(kCublasLtFunctions, kCublasLtTitle,
                           "install the CUDA toolkit, 12 or newer");
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
