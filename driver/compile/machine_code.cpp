#include "driver/compile/machine_code.h"

#include "kernels/library.h"
#include "plan/plan_file.h"
#include "runtime/cuda/kernel_compiler.h"
#include "runtime/cuda/strided_gemm.h"

namespace sinter {

Result<MachineCode> machine_code(const Program& program, const std::string& arch) {
  MachineCode code;
  code.arch = arch;
  const Result<NvrtcFile> nvrtc = find_nvrtc();
  if (!nvrtc) {
    code.absent = nvrtc.error().message();
    return code;
  }
  std::vector<KernelSource> sources;
  for (const Kernel& kernel : program.kernels) sources.push_back({kernel.name, kernel.source});
  const std::vector<StridedGemmKernel> products = strided_gemm_kernels(program);
  for (const StridedGemmKernel& kernel : products) sources.push_back({kernel.name, kernel.text});
  SINTER_LET(compiled,
             compile_cached(*nvrtc, KernelCache::of_user(), sources, kernel_library(), arch));
  for (size_t i = 0; i < sources.size(); ++i)
    code.kernels.push_back({std::string(sources[i].name), content_hash(sources[i].text),
                            std::move(compiled.cubins[i].bytes)});
  code.from_cache = compiled.from_cache;
  return code;
}

}  // namespace sinter
