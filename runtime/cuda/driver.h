// NVIDIA's driver, found when it is asked for. Nothing of CUDA is needed when Sinter is built, and
// a machine without a driver gets an error that says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "device/capabilities.h"
#include "ir/error.h"

namespace sinter {

/// An address in device memory.
using CudaAddress = uint64_t;

/// CUlaunchAttribute and CUlaunchConfig, as the driver's C interface lays them out.
struct CudaLaunchAttribute {
  enum class Id : int { cluster_dimension = 4, programmatic_stream_serialization = 6 };
  Id id;
  alignas(8) unsigned value[16];  // a union of 64 bytes: three extents of a cluster, or one flag
};
struct CudaLaunchConfig {
  unsigned grid[3], block[3];
  unsigned shared_bytes;
  struct CudaStreamHandle* stream;
  const CudaLaunchAttribute* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(CudaLaunchAttribute) == 72 && offsetof(CudaLaunchAttribute, value) == 8);
static_assert(sizeof(CudaLaunchConfig) == 56 && offsetof(CudaLaunchConfig, shared_bytes) == 24 &&
              offsetof(CudaLaunchConfig, stream) == 32 &&
              offsetof(CudaLaunchConfig, attributes) == 40 &&
              offsetof(CudaLaunchConfig, attribute_count) == 48);

/// The driver's entry points in use, with the types that its C interface gives them.
struct CudaApi {
  using Device = int;
  using Context = struct CudaContextHandle*;
  using Stream = struct CudaStreamHandle*;
  using Event = struct CudaEventHandle*;
  using Library = struct CudaLibraryHandle*;
  using Kernel = struct CudaKernelHandle*;
  using Graph = struct CudaGraphHandle*;
  using GraphExec = struct CudaGraphExecHandle*;

  int (*init)(unsigned flags);
  int (*driver_version)(int* version);
  int (*error_name)(int code, const char** name);
  int (*error_string)(int code, const char** text);
  int (*device_count)(int* count);
  int (*device_get)(Device* device, int ordinal);
  int (*device_name)(char* name, int size, Device device);
  int (*device_attribute)(int* value, int attribute, Device device);
  int (*device_memory)(size_t* bytes, Device device);
  int (*context_retain)(Context* context, Device device);
  int (*context_release)(Device device);
  int (*context_set)(Context context);
  int (*context_get)(Context* context);
  int (*context_device)(Device* device);
  int (*memory_info)(size_t* free, size_t* total);
  int (*allocate)(CudaAddress* address, size_t bytes);
  int (*free)(CudaAddress address);
  int (*allocate_host)(void** memory, size_t bytes, unsigned flags);
  int (*free_host)(void* memory);
  int (*copy_to_device)(CudaAddress to, const void* from, size_t bytes, Stream stream);
  int (*copy_to_host)(void* to, CudaAddress from, size_t bytes, Stream stream);
  int (*copy_on_device)(CudaAddress to, CudaAddress from, size_t bytes, Stream stream);
  int (*set_bytes)(CudaAddress to, unsigned char value, size_t bytes, Stream stream);
  int (*stream_create)(Stream* stream, unsigned flags);
  int (*stream_destroy)(Stream stream);
  int (*stream_synchronize)(Stream stream);
  int (*stream_context)(Stream stream, Context* context);
  int (*stream_is_capturing)(Stream stream, int* status);
  int (*stream_wait_event)(Stream stream, Event event, unsigned flags);
  int (*stream_begin_capture)(Stream stream, int mode);
  int (*stream_end_capture)(Stream stream, Graph* graph);
  int (*event_create)(Event* event, unsigned flags);
  int (*event_destroy)(Event event);
  int (*event_record)(Event event, Stream stream);
  int (*event_record_with_flags)(Event event, Stream stream, unsigned flags);
  int (*event_synchronize)(Event event);
  int (*event_query)(Event event);
  int (*event_elapsed)(float* milliseconds, Event begin, Event end);
  int (*graph_instantiate)(GraphExec* exec, Graph graph, unsigned long long flags);
  int (*graph_launch)(GraphExec exec, Stream stream);
  int (*graph_exec_destroy)(GraphExec exec);
  int (*graph_destroy)(Graph graph);
  int (*library_load)(Library* library, const void* code, int* jit_options, void** jit_values,
                      unsigned jit_count, int* options, void** values, unsigned count);
  int (*library_unload)(Library library);
  int (*library_kernel)(Kernel* kernel, Library library, const char* name);
  int (*kernel_set_attribute)(int attribute, int value, Kernel kernel, Device device);
  int (*launch)(const CudaLaunchConfig* config, Kernel kernel, void** parameters, void** extra);
  int (*tensor_map_encode_tiled)(void* map, int type, unsigned rank, void* address,
                                 const uint64_t* dims, const uint64_t* strides, const uint32_t* box,
                                 const uint32_t* element_strides, int interleave, int swizzle,
                                 int l2_promotion, int out_of_bounds_fill);
};

/// The driver of this machine, loaded and initialized on first use. Thread-safe. The error (exit
/// code 5) says whether there is no driver, or what it answered.
Result<const CudaApi*> load_cuda();

/// "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory". `code` must not be 0.
Error cuda_error(const CudaApi& api, std::string_view call, int code, std::string where = {});

/// Sets the calling thread's current context back, at its end, to what it was: for calls into a
/// program that has contexts of its own. Without a driver (null) it does nothing.
class CudaContextGuard {
 public:
  explicit CudaContextGuard(const CudaApi* api);
  ~CudaContextGuard();
  CudaContextGuard(const CudaContextGuard&) = delete;
  CudaContextGuard& operator=(const CudaContextGuard&) = delete;

 private:
  const CudaApi* api_;
  CudaApi::Context before_ = nullptr;
};

/// Where device memory comes from instead of the driver. Called from any thread. `stream`: in whose
/// order the memory is used; null: after a synchronization, by any stream.
struct CudaAllocator {
  std::function<void*(size_t bytes, CudaApi::Stream stream)> allocate;  // null: out of memory
  std::function<void(void* memory, size_t bytes, CudaApi::Stream stream)> release;
};

/// Options of CudaDevice::open() for a program with a context or an allocator of its own.
struct CudaDeviceOptions {
  CudaApi::Context context = nullptr;  // of the device; stays until the device is closed
  CudaAllocator allocator;             // both functions or none
};

/// A device with its primary context, or one that it was given, which every call below makes
/// current in the calling thread. Shared by all that lives on it.
class CudaDevice {
 public:
  /// Device `ordinal` of those that the driver shows. With a context, the primary one stays as it
  /// is; one of another device is an error.
  static Result<std::shared_ptr<CudaDevice>> open(int ordinal, CudaDeviceOptions options = {});
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const CudaApi& api() const { return api_; }
  int ordinal() const { return ordinal_; }
  CudaApi::Device handle() const { return device_; }
  const std::string& name() const { return name_; }               // "NVIDIA H200"
  const std::string& arch() const { return arch_; }               // what to compile for: "sm_90a"
  int compute_capability() const { return compute_capability_; }  // 90: 9.0
  const Capabilities& has() const { return has_; }
  int multiprocessors() const { return multiprocessors_; }
  size_t memory_bytes() const { return memory_bytes_; }
  size_t l2_bytes() const { return l2_bytes_; }
  /// Most shared memory of a block, for a kernel that asks for it.
  int64_t shared_bytes_per_block() const { return shared_bytes_per_block_; }
  int driver_version() const { return driver_version_; }  // 13000: CUDA 13.0
  /// Whether a kernel may be launched before the one ahead of it ends (programmatic dependent
  /// launch), in a recorded graph too.
  bool overlaps_launches() const { return has_.pdl && driver_version_ >= 12030; }

  /// Makes the context current in this thread.
  Status make_current() const;
  CudaApi::Context context() const { return context_; }
  /// The program's own, or one without functions.
  const CudaAllocator& allocator() const { return allocator_; }
  /// The error of a driver call that returned `code`, or nothing for 0.
  Status check(int code, std::string_view call) const;
  struct Memory {
    size_t free = 0, total = 0;  // bytes
  };
  Result<Memory> memory() const;

 private:
  explicit CudaDevice(const CudaApi& api) : api_(api) {}
  Status adopt(CudaApi::Context context);

  const CudaApi& api_;
  int ordinal_ = 0;
  CudaApi::Device device_ = 0;
  CudaApi::Context context_ = nullptr;
  bool is_retained_ = false;  // the context is the primary one
  CudaAllocator allocator_;
  std::string name_, arch_;
  Capabilities has_;
  int compute_capability_ = 0, multiprocessors_ = 0, driver_version_ = 0;
  int64_t shared_bytes_per_block_ = 0;
  size_t memory_bytes_ = 0, l2_bytes_ = 0;
};

/// Number of devices; an error where there is no driver.
Result<int> cuda_device_count();

}  // namespace sinter
