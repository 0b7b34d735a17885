#include "driver/compile/machine_code.h"

#include "kernels/library.h"
#include "runtime/cuda/kernel_compiler.h"

namespace sinter {

Result<MachineCode> machine_code(const Program& program, const std::string& arch) {
  MachineCode code{arch, {}, 0, {}};
  const Result<NvrtcFile> nvrtc = find_nvrtc();
  if (!nvrtc) {
    code.absent = nvrtc.error().message();
    return code;
  }
  std::vector<KernelSource> sources;
  for (const Kernel& kernel : program.kernels) sources.push_back({kernel.name, kernel.source});
  SINTER_LET(compiled,
             compile_cached(*nvrtc, KernelCache::of_user(), sources, kernel_library(), arch));
  for (Cubin& cubin : compiled.cubins) code.cubins.push_back(std::move(cubin.bytes));
  code.from_cache = compiled.from_cache;
  return code;
}

}  // namespace sinter
