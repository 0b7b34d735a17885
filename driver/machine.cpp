#include "driver/machine.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "device/named_devices.h"
#include "driver/text_table.h"
#include "ir/c_locale.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/kernel_cache.h"
#include "runtime/cuda/nvrtc_library.h"

namespace sinter {
namespace {

/// "cuda:0 (NVIDIA H200)", ..., and "cpu".
std::vector<std::string> devices_that_run() {
  std::vector<std::string> names;
  const Result<int> count = cuda_device_count();
  for (int ordinal = 0; count && ordinal < *count; ++ordinal)
    if (const auto device = CudaDevice::open(ordinal))
      names.push_back(fmt::format("cuda:{} ({})", ordinal, (*device)->name()));
  names.push_back("cpu");
  return names;
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
  const auto driver = load_cuda();
  return table.str() + fmt::format("\nNVRTC: {}\nCUDA driver: {}\nplans run on: {}\n",
                                   nvrtc ? nvrtc->path : "not found, kernels stay CUDA text",
                                   driver ? "libcuda.so.1" : driver.error().what,
                                   fmt::join(devices_that_run(), ", "));
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
                     {"cuda_driver", load_cuda().has_value()},
                     {"runs_on", devices_that_run()}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

Result<std::vector<BoardRates>> measure_devices(
    const std::function<void(const std::string&)>& on_stage) {
  const Result<int> count = cuda_device_count();
  if (!count || *count == 0)
    return fail("rates are measured on a GPU, and this machine has none that runs", "--measure",
                count ? "" : count.error().what, ExitCode::device);
  std::vector<BoardRates> all;
  for (int ordinal = 0; ordinal < *count; ++ordinal) {
    SINTER_LET(device, CudaDevice::open(ordinal));
    if (std::any_of(all.begin(), all.end(),
                    [&](const BoardRates& rates) { return rates.device == device->name(); }))
      continue;
    on_stage("measuring " + device->name());
    SINTER_LET(rates, measure_board(device));
    SINTER_TRY(keep_board(rates));
    all.push_back(std::move(rates));
  }
  return all;
}

std::string rates_text(const std::vector<BoardRates>& rates) {
  TextTable table("lrrrrrl");
  table.add({"board", "memory", "cache", "tensor arithmetic", "float32", "launch", "kept in"});
  for (const BoardRates& one : rates)
    table.add({printable(one.device), with_unit(one.memory_bytes_per_s, "B/s"),
               with_unit(one.cache_bytes_per_s, "B/s"), with_unit(one.tensor_flops_per_s, "FLOP/s"),
               with_unit(one.float_flops_per_s, "FLOP/s"), duration(one.launch_s),
               board_path(one.device)});
  return table.str();
}

std::string rates_json(const std::vector<BoardRates>& rates) {
  const CLocale numbers_with_a_point;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const BoardRates& one : rates) {
    nlohmann::ordered_json json = nlohmann::ordered_json::parse(board_json(one));
    json["file"] = board_path(one.device);
    list.push_back(std::move(json));
  }
  return list.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

Result<std::string> cache_status() {
  SINTER_LET(cache, user_cache());
  SINTER_LET(use, cache.use());
  return use_text(cache, use) +
         fmt::format("limit: {}, of SINTER_CACHE_MEGABYTES or the usual one\n",
                     with_unit(static_cast<double>(cache.limit()), "B"));
}

Result<std::string> clear_cache() {
  SINTER_LET(cache, user_cache());
  SINTER_LET(removed, cache.clear());
  return "removed " + use_text(cache, removed);
}

}  // namespace sinter
