// A tool as NVTX knows it: a library that the headers load. It writes the names of ranges as they
// open, and "-" as they close, to the file that NVTX_TOOL_LOG names.
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>

namespace {

void write(const char* line) {
  if (FILE* log = std::fopen(std::getenv("NVTX_TOOL_LOG"), "a")) {
    std::fprintf(log, "%s\n", line);
    std::fclose(log);
  }
}
int push(const char* name) { return write(name), 0; }
int pop() { return write("-"), 0; }

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t tables) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(tables(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable functions = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr ||
      !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &functions, &size))
    return 0;
  *functions[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(push);
  *functions[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(pop);
  return 1;
}
