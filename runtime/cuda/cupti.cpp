#include "runtime/cuda/cupti.h"

#include "runtime/dynamic_library.h"

namespace sinter {
namespace {

constexpr const char* kCuptiTitle = "CUPTI";

Result<CuptiApi> open_cupti() {
  SINTER_LET(
      library,
      open_library(
          kCuptiTitle,
          toolkit_paths({"libcupti.so.13", "libcupti.so.12"}, {"extras/CUPTI/lib64", "lib64"}),
          "install the CUDA toolkit with CUPTI, 12 or newer, or set CUDA_HOME to where it is"));
  CuptiApi api;
  library.bind(api.version, "cuptiGetVersion");
  library.bind(api.result_string, "cuptiGetResultString");
  library.bind(api.register_callbacks, "cuptiActivityRegisterCallbacks");
  library.bind(api.enable, "cuptiActivityEnable");
  library.bind(api.disable, "cuptiActivityDisable");
  library.bind(api.flush_all, "cuptiActivityFlushAll");
  library.bind(api.next_record, "cuptiActivityGetNextRecord");
  library.bind(api.dropped_records, "cuptiActivityGetNumDroppedRecords");
  library.bind(api.push_external, "cuptiActivityPushExternalCorrelationId");
  library.bind(api.pop_external, "cuptiActivityPopExternalCorrelationId");
  SINTER_TRY(library.require_all(kCuptiTitle, "install the CUDA toolkit, 12 or newer"));
  return api;
}

}  // namespace

Result<const CuptiApi*> load_cupti() { return load_once<open_cupti>(); }

Error cupti_error(const CuptiApi& api, std::string_view call, int result) {
  const char* name = nullptr;
  if (api.result_string(result, &name) != CuptiApi::kSuccess || name == nullptr)
    name = "unknown result";
  return Error{fmt::format("{}: {} ({})", call, name, result), {}, {}, ExitCode::device};
}

}  // namespace sinter
