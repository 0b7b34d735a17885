#include "api/device.h"

#include <cxxabi.h>
#include <unistd.h>

#include "api/callbacks.h"
#include "ir/verify_graph.h"

namespace sinter {
namespace {

std::unique_ptr<sinter_device> describe(std::shared_ptr<Device> device) {
  auto made = std::make_unique<sinter_device>();
  made->name = device->name();
  made->target = device->target();
  made->device = std::move(device);
  return made;
}

Result<std::unique_ptr<sinter_device>> open_gpu(const GpuOptions& options) {
  SINTER_LET(device, Device::gpu(options));
  return describe(std::move(device));
}

/// Runs `work`. A thread that is ended in it sleeps until the process is gone: memory is released
/// in destructors, which end the process where a stack is unwound through them.
template <typename Work>
void sleep_if_ended(Work&& work) {
  try {
    work();
  } catch (const abi::__forced_unwind&) {
    for (;;) ::pause();
  }
}

}  // namespace

Result<TensorView> view_of(const char* name, const char* dtype, size_t rank, const int64_t* dims,
                           const int64_t* strides, void* data) {
  SINTER_TRY(require(name, "name"));
  SINTER_TRY(require(dtype, "dtype"));
  if (rank > 0) SINTER_TRY(require(dims, "dims"));
  if (rank > kMaxAxes)
    return fail(fmt::format("{} axes, a tensor has at most {}", rank, kMaxAxes), printable(name),
                {}, ExitCode::usage);
  TensorView view;
  const auto type = parse_dtype(dtype);
  if (!type)
    return fail(fmt::format("no element type is called \"{}\"", printable(dtype)), printable(name),
                "the types are f32, f16, bf16, i32, i64 and i1", ExitCode::usage);
  view.dtype = *type;
  view.data = data;
  for (size_t i = 0; i < rank; ++i) {
    if (dims[i] < 0)
      return fail(fmt::format("axis {} has {} elements", i, dims[i]), printable(name), {},
                  ExitCode::usage);
    view.dims.push_back(dims[i]);
    if (strides) view.strides.push_back(strides[i]);
  }
  return view;
}

Result<std::shared_ptr<Backend>> backend_on(const sinter_device& device,
                                            const WeightProgress& progress) {
  BackendOptions options;
  options.progress = progress;
  return Backend::on(device.device, options);
}

}  // namespace sinter

using namespace sinter;

sinter_error* sinter_device_open(const char* name, sinter_device** device) {
  return make_handle(device, [&]() -> Result<std::unique_ptr<sinter_device>> {
    SINTER_TRY(require(name, "name"));
    SINTER_LET(choice, choose_device(name));
    if (!choice.gpu) return describe(Device::cpu());
    GpuOptions options;
    options.ordinal = *choice.gpu;
    return open_gpu(options);
  });
}

sinter_error* sinter_device_open_cuda(int ordinal, void* context, sinter_allocate allocate,
                                      sinter_release release, void* user, sinter_device** device) {
  return make_handle(device, [&]() -> Result<std::unique_ptr<sinter_device>> {
    if (!allocate != !release)
      return fail("an allocator has both functions, or neither", {}, {}, ExitCode::usage);
    GpuOptions options;
    options.ordinal = ordinal;
    options.context = context;
    if (allocate) {
      // An exception is memory that was not given, or is lost.
      options.allocate = [=](size_t bytes, void* stream) {
        return call_back("allocator", [&] { return allocate(user, bytes, stream); })
            .value_or(nullptr);
      };
      options.release = [=](void* memory, size_t bytes, void* stream) {
        (void)call_back("allocator", [&] {
          sleep_if_ended([&] { release(user, memory, bytes, stream); });
          return 0;
        });
      };
    }
    return open_gpu(options);
  });
}

const char* sinter_device_name(const sinter_device* device) {
  return device ? device->name.c_str() : nullptr;
}
const char* sinter_device_target(const sinter_device* device) {
  return device ? device->target.c_str() : nullptr;
}
void sinter_device_free(sinter_device* device) { free_handle(device); }

sinter_error* sinter_weights_create(sinter_weights** weights) {
  return make_handle(weights, []() -> Result<std::unique_ptr<sinter_weights>> {
    return std::make_unique<sinter_weights>();
  });
}

sinter_error* sinter_weights_add(sinter_weights* weights, const char* name, const char* dtype,
                                 size_t rank, const int64_t* dims, const int64_t* strides,
                                 const void* data, int on_device) {
  return border([&]() -> Status {
    SINTER_TRY(require(weights, "weights"));
    SINTER_LET(view, view_of(name, dtype, rank, dims, strides, const_cast<void*>(data)));
    if (weights->host.contains(name) || weights->device.contains(name))
      return fail("the tensor is there already", printable(name), {}, ExitCode::usage);
    (on_device ? weights->device : weights->host)[name] = std::move(view);
    return {};
  });
}

void sinter_weights_free(sinter_weights* weights) { free_handle(weights); }
