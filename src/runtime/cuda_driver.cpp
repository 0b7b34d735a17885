#include "runtime/cuda_driver.h"

#include <dlfcn.h>

#include <mutex>
#include <optional>

namespace sinter {
namespace {

// CUdevice_attribute values.
constexpr int kMultiprocessorCount = 16;
constexpr int kL2CacheSize = 38;
constexpr int kComputeCapabilityMajor = 75;
constexpr int kComputeCapabilityMinor = 76;

Result<CudaApi> load() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return fail("no NVIDIA driver on this machine (libcuda.so.1 cannot be loaded)", {},
                "use --device cpu, or install the driver", ExitCode::device);
  CudaApi api;
  const char* missing = nullptr;
  const auto bind = [&]<typename F>(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(library, name));
    if (function == nullptr && missing == nullptr) missing = name;
  };
  bind(api.init, "cuInit");
  bind(api.driver_version, "cuDriverGetVersion");
  bind(api.error_name, "cuGetErrorName");
  bind(api.error_string, "cuGetErrorString");
  bind(api.device_count, "cuDeviceGetCount");
  bind(api.device_get, "cuDeviceGet");
  bind(api.device_name, "cuDeviceGetName");
  bind(api.device_attribute, "cuDeviceGetAttribute");
  bind(api.device_memory, "cuDeviceTotalMem_v2");
  bind(api.context_retain, "cuDevicePrimaryCtxRetain");
  bind(api.context_release, "cuDevicePrimaryCtxRelease_v2");
  bind(api.context_set, "cuCtxSetCurrent");
  bind(api.memory_info, "cuMemGetInfo_v2");
  bind(api.allocate, "cuMemAlloc_v2");
  bind(api.free, "cuMemFree_v2");
  bind(api.allocate_host, "cuMemHostAlloc");
  bind(api.free_host, "cuMemFreeHost");
  bind(api.copy_to_device, "cuMemcpyHtoDAsync_v2");
  bind(api.copy_to_host, "cuMemcpyDtoHAsync_v2");
  bind(api.copy_on_device, "cuMemcpyDtoDAsync_v2");
  bind(api.set_bytes, "cuMemsetD8Async");
  bind(api.stream_create, "cuStreamCreate");
  bind(api.stream_destroy, "cuStreamDestroy_v2");
  bind(api.stream_synchronize, "cuStreamSynchronize");
  bind(api.stream_begin_capture, "cuStreamBeginCapture_v2");
  bind(api.stream_end_capture, "cuStreamEndCapture");
  bind(api.event_create, "cuEventCreate");
  bind(api.event_destroy, "cuEventDestroy_v2");
  bind(api.event_record, "cuEventRecord");
  bind(api.event_synchronize, "cuEventSynchronize");
  bind(api.event_query, "cuEventQuery");
  bind(api.event_elapsed, "cuEventElapsedTime");
  bind(api.graph_instantiate, "cuGraphInstantiateWithFlags");
  bind(api.graph_launch, "cuGraphLaunch");
  bind(api.graph_exec_destroy, "cuGraphExecDestroy");
  bind(api.graph_destroy, "cuGraphDestroy");
  bind(api.library_load, "cuLibraryLoadData");
  bind(api.library_unload, "cuLibraryUnload");
  bind(api.library_kernel, "cuLibraryGetKernel");
  bind(api.kernel_set_attribute, "cuKernelSetAttribute");
  bind(api.launch, "cuLaunchKernel");
  if (missing != nullptr)
    return fail(fmt::format("the NVIDIA driver has no {}", missing), {},
                "install a driver of CUDA 12 or newer", ExitCode::device);
  if (const int code = api.init(0); code != 0)
    return tl::make_unexpected(cuda_error(api, "cuInit", code));
  return api;
}

// The names of architectures with features of their own have an "a" behind them.
std::string arch_name(int major, int minor) {
  return fmt::format("sm_{}{}{}", major, minor, major >= 9 && major < 12 ? "a" : "");
}

}  // namespace

Result<const CudaApi*> load_cuda() {
  static std::mutex mutex;
  static std::optional<Result<CudaApi>> loaded;
  const std::lock_guard lock(mutex);
  if (!loaded) loaded = load();
  if (!*loaded) return tl::make_unexpected(loaded->error());
  return &**loaded;
}

Error cuda_error(const CudaApi& api, std::string_view call, int code, std::string where) {
  const char *name = nullptr, *text = nullptr;
  if (api.error_name(code, &name) != 0 || name == nullptr) name = "unknown error";
  if (api.error_string(code, &text) != 0 || text == nullptr) text = "no description";
  return Error{fmt::format("{}: {} ({}): {}", call, name, code, text), std::move(where), {},
               ExitCode::device};
}

Result<int> cuda_device_count() {
  SINTER_LET(api, load_cuda());
  int count = 0;
  if (const int code = api->device_count(&count); code != 0)
    return tl::make_unexpected(cuda_error(*api, "cuDeviceGetCount", code));
  return count;
}

Result<std::shared_ptr<CudaDevice>> CudaDevice::open(int ordinal) {
  SINTER_LET(count, cuda_device_count());
  if (ordinal < 0 || ordinal >= count)
    return fail(fmt::format("no CUDA device {}: the driver shows {}", ordinal, count), {},
                "`sinter devices` lists them", ExitCode::device);
  SINTER_LET(api, load_cuda());
  std::shared_ptr<CudaDevice> device(new CudaDevice(*api));
  device->ordinal_ = ordinal;
  SINTER_TRY(device->check(api->device_get(&device->device_, ordinal), "cuDeviceGet"));
  char name[256] = {};
  SINTER_TRY(device->check(api->device_name(name, sizeof(name), device->device_), "cuDeviceGetName"));
  device->name_ = name;
  SINTER_TRY(device->check(api->device_memory(&device->memory_bytes_, device->device_), "cuDeviceTotalMem"));
  SINTER_TRY(device->check(api->driver_version(&device->driver_version_), "cuDriverGetVersion"));
  const auto attribute = [&](int which, int& value) {
    return device->check(api->device_attribute(&value, which, device->device_), "cuDeviceGetAttribute");
  };
  int major = 0, minor = 0, l2 = 0;
  SINTER_TRY(attribute(kComputeCapabilityMajor, major));
  SINTER_TRY(attribute(kComputeCapabilityMinor, minor));
  SINTER_TRY(attribute(kMultiprocessorCount, device->multiprocessors_));
  SINTER_TRY(attribute(kL2CacheSize, l2));
  device->l2_bytes_ = static_cast<size_t>(l2);
  device->arch_ = arch_name(major, minor);
  SINTER_TRY(device->check(api->context_retain(&device->context_, device->device_), "cuDevicePrimaryCtxRetain"));
  SINTER_TRY(device->make_current());
  return device;
}

CudaDevice::~CudaDevice() {
  if (context_ != nullptr) api_.context_release(device_);
}

Status CudaDevice::make_current() const { return check(api_.context_set(context_), "cuCtxSetCurrent"); }

Status CudaDevice::check(int code, std::string_view call) const {
  if (code == 0) return {};
  return tl::make_unexpected(cuda_error(api_, call, code, fmt::format("device {} ({})", ordinal_, name_)));
}

Result<CudaDevice::Memory> CudaDevice::memory() const {
  SINTER_TRY(make_current());
  Memory memory;
  SINTER_TRY(check(api_.memory_info(&memory.free, &memory.total), "cuMemGetInfo"));
  return memory;
}

}  // namespace sinter
