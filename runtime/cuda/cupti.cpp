#include "runtime/cuda/cupti.h"

#include "runtime/dynamic_library.h"

namespace sinter {
namespace {

constexpr const char* kCuptiTitle = "CUPTI";

constexpr LibraryFunction<CuptiApi> kCuptiFunctions[] = {
    {"cuptiGetVersion", set_function<&CuptiApi::version>},
    {"cuptiGetResultString", set_function<&CuptiApi::result_string>},
    {"cuptiActivityRegisterCallbacks", set_function<&CuptiApi::register_callbacks>},
    {"cuptiActivityEnable", set_function<&CuptiApi::enable>},
    {"cuptiActivityDisable", set_function<&CuptiApi::disable>},
    {"cuptiActivityFlushAll", set_function<&CuptiApi::flush_all>},
    {"cuptiActivityGetNextRecord", set_function<&CuptiApi::next_record>},
    {"cuptiActivityGetNumDroppedRecords", set_function<&CuptiApi::dropped_records>},
    {"cuptiActivityPushExternalCorrelationId", set_function<&CuptiApi::push_external>},
    {"cuptiActivityPopExternalCorrelationId", set_function<&CuptiApi::pop_external>},
};

Result<CuptiApi> open_cupti() {
  SINTER_LET(
      library,
      open_library(
          kCuptiTitle,
          toolkit_paths({"libcupti.so.13", "libcupti.so.12"}, {"extras/CUPTI/lib64", "lib64"}),
          "install the CUDA toolkit with CUPTI, 12 or newer, or set CUDA_HOME to where it is"));
  return library.functions(kCuptiFunctions, kCuptiTitle, "install the CUDA toolkit, 12 or newer");
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
