#include "driver/machine.h"

#include <dlfcn.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "driver/text_table.h"
#include "runtime/kernel_cache.h"
#include "runtime/nvrtc_library.h"
#include "target/named_devices.h"

namespace sinter {
namespace {

/// The driver's library, which only machines with an NVIDIA GPU have.
bool has_cuda_driver() {
  void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library) ::dlclose(library);
  return library != nullptr;
}

std::string use_text(const KernelCache& cache, const CacheUse& use) {
  return fmt::format("{}: {}, {}\n", cache.directory(), counted(use.entries, "kernel"),
                     with_unit(static_cast<double>(use.bytes), "B"));
}

Result<KernelCache> user_cache() {
  KernelCache cache = KernelCache::of_user();
  if (cache.directory().empty())
    return fail("no place for a cache is set", "", "set SINTER_CACHE_DIR, XDG_CACHE_HOME or HOME");
  return cache;
}

}  // namespace

std::string devices_text() {
  TextTable table("lrrr");
  table.add({"target", "multiprocessors", "memory", "tensor arithmetic"});
  for (const DeviceDescription& d : named_devices())
    table.add({d.name, std::to_string(d.multiprocessors), with_unit(d.memory_bytes_per_s, "B/s"),
               with_unit(d.tensor_flops_per_s, "FLOP/s")});
  const Result<NvrtcFile> nvrtc = find_nvrtc();
  return table.str() + fmt::format("\nNVRTC: {}\nCUDA driver: {}\nplans run on: cpu\n",
                                   nvrtc ? nvrtc->path : "not found, kernels stay CUDA text",
                                   has_cuda_driver() ? "libcuda.so.1" : "not found");
}

std::string devices_json() {
  using Json = nlohmann::ordered_json;
  Json targets = Json::array();
  for (const DeviceDescription& d : named_devices())
    targets.push_back({{"name", d.name},
                       {"multiprocessors", d.multiprocessors},
                       {"memory_bytes_per_s", d.memory_bytes_per_s},
                       {"tensor_flops_per_s", d.tensor_flops_per_s}});
  const Result<NvrtcFile> nvrtc = find_nvrtc();
  const Json json = {{"targets", targets},
                     {"nvrtc", nvrtc ? Json(nvrtc->path) : Json(nullptr)},
                     {"cuda_driver", has_cuda_driver()},
                     {"runs_on", {"cpu"}}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

Result<std::string> cache_status() {
  SINTER_LET(cache, user_cache());
  SINTER_LET(use, cache.use());
  return use_text(cache, use);
}

Result<std::string> clear_cache() {
  SINTER_LET(cache, user_cache());
  SINTER_LET(removed, cache.clear());
  return "removed " + use_text(cache, removed);
}

}  // namespace sinter
