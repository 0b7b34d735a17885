#include "driver/compile/machine_code.h"

#include "driver/text_table.h"
#include "kernels/library.h"
#include "plan/plan_file.h"
#include "runtime/cuda/kernel_compiler.h"
#include "runtime/cuda/kernel_resources.h"
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

std::string resource_table(const Program& program, const MachineCode& code) {
  TextTable table("lrrrr");
  table.add({code.arch, "registers", "shared memory", "dynamic", "spills"});
  for (size_t i = 0; i < code.kernels.size(); ++i) {
    const MachineCode::Kernel& kernel = code.kernels[i];
    const auto used = kernel_resources(kernel.bytes, kernel.name);
    const auto bytes = [](int64_t count) { return fmt::format("{} B", count); };
    // The kernels after the program's own are matrix products, without dynamic memory.
    const int64_t dynamic = i < program.kernels.size() ? program.kernels[i].launch.shared_bytes : 0;
    if (used)
      table.add({kernel.name, std::to_string(used->registers), bytes(used->shared_bytes),
                 bytes(dynamic), bytes(used->spill_bytes)});
    else
      table.add({kernel.name, "–", "–", bytes(dynamic), "–"});
  }
  return table.str();
}

}  // namespace sinter
