#include "runtime/cuda/driver.h"

#include "runtime/dynamic_library.h"

namespace sinter {
namespace {

// CUdevice_attribute values.
constexpr int kMultiprocessorCount = 16;
constexpr int kL2CacheSize = 38;
constexpr int kComputeCapabilityMajor = 75;
constexpr int kComputeCapabilityMinor = 76;
constexpr int kMaxSharedMemoryPerBlockOptin = 97;

constexpr LibraryFunction<CudaApi> kCudaFunctions[] = {
    {"cuInit", set_function<&CudaApi::init>},
    {"cuDriverGetVersion", set_function<&CudaApi::driver_version>},
    {"cuGetErrorName", set_function<&CudaApi::error_name>},
    {"cuGetErrorString", set_function<&CudaApi::error_string>},
    {"cuDeviceGetCount", set_function<&CudaApi::device_count>},
    {"cuDeviceGet", set_function<&CudaApi::device_get>},
    {"cuDeviceGetName", set_function<&CudaApi::device_name>},
    {"cuDeviceGetAttribute", set_function<&CudaApi::device_attribute>},
    {"cuDeviceTotalMem_v2", set_function<&CudaApi::device_memory>},
    {"cuDevicePrimaryCtxRetain", set_function<&CudaApi::context_retain>},
    {"cuDevicePrimaryCtxRelease_v2", set_function<&CudaApi::context_release>},
    {"cuCtxSetCurrent", set_function<&CudaApi::context_set>},
    {"cuCtxGetCurrent", set_function<&CudaApi::context_get>},
    {"cuCtxGetDevice", set_function<&CudaApi::context_device>},
    {"cuMemGetInfo_v2", set_function<&CudaApi::memory_info>},
    {"cuMemAlloc_v2", set_function<&CudaApi::allocate>},
    {"cuMemFree_v2", set_function<&CudaApi::free>},
    {"cuMemHostAlloc", set_function<&CudaApi::allocate_host>},
    {"cuMemFreeHost", set_function<&CudaApi::free_host>},
    {"cuMemcpyHtoDAsync_v2", set_function<&CudaApi::copy_to_device>},
    {"cuMemcpyDtoHAsync_v2", set_function<&CudaApi::copy_to_host>},
    {"cuMemcpyDtoDAsync_v2", set_function<&CudaApi::copy_on_device>},
    {"cuMemsetD8Async", set_function<&CudaApi::set_bytes>},
    {"cuStreamCreate", set_function<&CudaApi::stream_create>},
    {"cuStreamDestroy_v2", set_function<&CudaApi::stream_destroy>},
    {"cuStreamSynchronize", set_function<&CudaApi::stream_synchronize>},
    {"cuStreamGetCtx", set_function<&CudaApi::stream_context>},
    {"cuStreamIsCapturing", set_function<&CudaApi::stream_is_capturing>},
    {"cuStreamWaitEvent", set_function<&CudaApi::stream_wait_event>},
    {"cuStreamBeginCapture_v2", set_function<&CudaApi::stream_begin_capture>},
    {"cuStreamEndCapture", set_function<&CudaApi::stream_end_capture>},
    {"cuEventCreate", set_function<&CudaApi::event_create>},
    {"cuEventDestroy_v2", set_function<&CudaApi::event_destroy>},
    {"cuEventRecord", set_function<&CudaApi::event_record>},
    {"cuEventRecordWithFlags", set_function<&CudaApi::event_record_with_flags>},
    {"cuEventSynchronize", set_function<&CudaApi::event_synchronize>},
    {"cuEventQuery", set_function<&CudaApi::event_query>},
    {"cuEventElapsedTime", set_function<&CudaApi::event_elapsed>},
    {"cuGraphInstantiateWithFlags", set_function<&CudaApi::graph_instantiate>},
    {"cuGraphLaunch", set_function<&CudaApi::graph_launch>},
    {"cuGraphExecDestroy", set_function<&CudaApi::graph_exec_destroy>},
    {"cuGraphDestroy", set_function<&CudaApi::graph_destroy>},
    {"cuLibraryLoadData", set_function<&CudaApi::library_load>},
    {"cuLibraryUnload", set_function<&CudaApi::library_unload>},
    {"cuLibraryGetKernel", set_function<&CudaApi::library_kernel>},
    {"cuKernelSetAttribute", set_function<&CudaApi::kernel_set_attribute>},
    {"cuLaunchKernelEx", set_function<&CudaApi::launch>},
    {"cuTensorMapEncodeTiled", set_function<&CudaApi::tensor_map_encode_tiled>},
};

Result<CudaApi> open_cuda() {
  auto library = DynamicLibrary::open({"libcuda.so.1"});
  if (!library)
    return fail("no NVIDIA driver on this machine (libcuda.so.1 cannot be loaded)", {},
                "use --device cpu, or install the driver", ExitCode::device);
  SINTER_LET(api, library->functions(kCudaFunctions, "the NVIDIA driver",
                                     "install a driver of CUDA 12 or newer"));
  if (const int code = api.init(0); code != 0)
    return tl::make_unexpected(cuda_error(api, "cuInit", code));
  return api;
}

// The architecture that kernels are compiled for, which is also the name of a device description.
// Compute capability 9.0 has instructions of its own ("a"); on later ones kernels use none of
// these.
std::string arch_name(int major, int minor) {
  return fmt::format("sm_{}{}{}", major, minor, major == 9 ? "a" : "");
}

}  // namespace

Result<const CudaApi*> load_cuda() { return load_once<open_cuda>(); }

Error cuda_error(const CudaApi& api, std::string_view call, int code, std::string where) {
  const char *name = nullptr, *text = nullptr;
  if (api.error_name(code, &name) != 0 || name == nullptr) name = "unknown error";
  if (api.error_string(code, &text) != 0 || text == nullptr) text = "no description";
  return Error{fmt::format("{}: {} ({}): {}", call, name, code, text),
               std::move(where),
               {},
               ExitCode::device};
}

Result<int> cuda_device_count() {
  SINTER_LET(api, load_cuda());
  int count = 0;
  if (const int code = api->device_count(&count); code != 0)
    return tl::make_unexpected(cuda_error(*api, "cuDeviceGetCount", code));
  return count;
}

CudaContextGuard::CudaContextGuard(const CudaApi* api) : api_(api) {
  if (api_ != nullptr && api_->context_get(&before_) != 0) api_ = nullptr;
}

CudaContextGuard::~CudaContextGuard() {
  if (api_ != nullptr) api_->context_set(before_);
}

Result<std::shared_ptr<CudaDevice>> CudaDevice::open(int ordinal, CudaDeviceOptions options) {
  SINTER_LET(count, cuda_device_count());
  if (ordinal < 0 || ordinal >= count)
    return fail(fmt::format("no CUDA device {}: the driver shows {}", ordinal, count), {},
                "`sinter devices` lists them", ExitCode::device);
  SINTER_LET(api, load_cuda());
  std::shared_ptr<CudaDevice> device(new CudaDevice(*api));
  device->ordinal_ = ordinal;
  SINTER_TRY(device->check(api->device_get(&device->device_, ordinal), "cuDeviceGet"));
  char name[256] = {};
  SINTER_TRY(
      device->check(api->device_name(name, sizeof(name), device->device_), "cuDeviceGetName"));
  device->name_ = name;
  SINTER_TRY(device->check(api->device_memory(&device->memory_bytes_, device->device_),
                           "cuDeviceTotalMem"));
  SINTER_TRY(device->check(api->driver_version(&device->driver_version_), "cuDriverGetVersion"));
  const auto attribute = [&](int which, int& value) {
    return device->check(api->device_attribute(&value, which, device->device_),
                         "cuDeviceGetAttribute");
  };
  int major = 0, minor = 0, l2 = 0, shared = 0;
  SINTER_TRY(attribute(kComputeCapabilityMajor, major));
  SINTER_TRY(attribute(kComputeCapabilityMinor, minor));
  SINTER_TRY(attribute(kMultiprocessorCount, device->multiprocessors_));
  SINTER_TRY(attribute(kL2CacheSize, l2));
  SINTER_TRY(attribute(kMaxSharedMemoryPerBlockOptin, shared));
  device->shared_bytes_per_block_ = shared;
  device->compute_capability_ = 10 * major + minor;
  device->l2_bytes_ = static_cast<size_t>(l2);
  device->arch_ = arch_name(major, minor);
  device->has_ = capabilities_of(device->arch_);
  device->allocator_ = std::move(options.allocator);
  if (options.context != nullptr) {
    SINTER_TRY(device->adopt(options.context));
    return device;
  }
  SINTER_TRY(device->check(api->context_retain(&device->context_, device->device_),
                           "cuDevicePrimaryCtxRetain"));
  device->is_retained_ = true;
  SINTER_TRY(device->make_current());
  return device;
}

Status CudaDevice::adopt(CudaApi::Context context) {
  context_ = context;
  SINTER_TRY(make_current());
  CudaApi::Device of = 0;
  SINTER_TRY(check(api_.context_device(&of), "cuCtxGetDevice"));
  if (of == device_) return {};
  return fail(fmt::format("the context is one of device {}, not of device {}", of, device_),
              fmt::format("device {} ({})", ordinal_, name_),
              "give the ordinal of the context's device", ExitCode::usage);
}

CudaDevice::~CudaDevice() {
  if (is_retained_) api_.context_release(device_);
}

Status CudaDevice::make_current() const {
  return check(api_.context_set(context_), "cuCtxSetCurrent");
}

Status CudaDevice::check(int code, std::string_view call) const {
  if (code == 0) return {};
  return tl::make_unexpected(
      cuda_error(api_, call, code, fmt::format("device {} ({})", ordinal_, name_)));
}

Result<CudaDevice::Memory> CudaDevice::memory() const {
  SINTER_TRY(make_current());
  Memory memory;
  SINTER_TRY(check(api_.memory_info(&memory.free, &memory.total), "cuMemGetInfo"));
  return memory;
}

}  // namespace sinter
