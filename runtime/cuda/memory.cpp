#include "runtime/cuda/memory.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>

namespace sinter {
namespace {

constexpr CudaAddress kMemoryAlignment = 256;
constexpr int kOutOfMemory = 2;  // CUDA_ERROR_OUT_OF_MEMORY
// Errors of drivers for machine code of another device: CUDA_ERROR_INVALID_IMAGE,
// NO_BINARY_FOR_GPU, INVALID_PTX, UNSUPPORTED_PTX_VERSION.
constexpr int kForeignCode[] = {200, 209, 218, 222};
constexpr unsigned kNonBlocking = 1;    // CU_STREAM_NON_BLOCKING
constexpr unsigned kExternal = 1;       // CU_EVENT_RECORD_EXTERNAL
constexpr int kCaptureThreadLocal = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL

std::string megabytes(size_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

}  // namespace

void CudaMemory::Release::operator()(CudaAddress address) const {
  if (!device->make_current()) return;
  if (device->allocator().release)
    device->allocator().release(reinterpret_cast<void*>(address), bytes, stream);
  else
    device->api().free(address);
}

namespace {

/// Memory of the device's own allocator as driver calls give it: the code of an error, or 0.
Result<int> allocate_by_program(const CudaDevice& device, size_t bytes, CudaApi::Stream stream,
                                CudaAddress* address) {
  void* const memory = device.allocator().allocate(bytes, stream);
  if (memory == nullptr) return kOutOfMemory;
  *address = reinterpret_cast<CudaAddress>(memory);
  if (*address % kMemoryAlignment != 0)
    return fail(fmt::format("the allocator gave {:#x}, which is not aligned to {} bytes", *address,
                            kMemoryAlignment),
                fmt::format("device {} ({})", device.ordinal(), device.name()),
                "align device memory as cuMemAlloc does", ExitCode::device);
  // An allocator that orders by streams may give memory that earlier work still uses.
  if (stream == nullptr)
    SINTER_TRY(device.check(device.api().stream_synchronize(nullptr), "cuStreamSynchronize"));
  return 0;
}

}  // namespace

Result<CudaMemory> CudaMemory::allocate(CudaDevicePtr device, size_t bytes,
                                        std::string_view purpose, CudaApi::Stream stream) {
  SINTER_TRY(device->make_current());
  CudaMemory memory(Release{device, bytes, stream});
  if (bytes == 0) return memory;
  int code = 0;
  if (device->allocator().allocate) {
    SINTER_LET(given, allocate_by_program(*device, bytes, stream, memory.memory_.receive()));
    code = given;
  } else {
    code = device->api().allocate(memory.memory_.receive(), bytes);
  }
  if (code == kOutOfMemory) {
    SINTER_LET(now, device->memory());
    return fail(fmt::format("no device memory for {}: {} wanted, {} of {} free", purpose,
                            megabytes(bytes), megabytes(now.free), megabytes(now.total)),
                fmt::format("device {} ({})", device->ordinal(), device->name()),
                "use a smaller model, batch or context, or end other programs on the device",
                ExitCode::device);
  }
  SINTER_TRY(device->check(code, "cuMemAlloc"));
  return memory;
}

Result<PinnedMemory> PinnedMemory::allocate(CudaDevicePtr device, size_t bytes) {
  SINTER_TRY(device->make_current());
  PinnedMemory memory(device, bytes);
  SINTER_TRY(device->check(
      device->api().allocate_host(memory.memory_.receive(), std::max<size_t>(bytes, 1), 0),
      "cuMemHostAlloc"));
  return memory;
}

Result<CudaStream> CudaStream::create(CudaDevicePtr device) {
  SINTER_TRY(device->make_current());
  CudaStream stream(device);
  SINTER_TRY(device->check(device->api().stream_create(stream.stream_.receive(), kNonBlocking),
                           "cuStreamCreate"));
  return stream;
}

CudaStream CudaStream::borrow(CudaDevicePtr device, CudaApi::Stream handle) {
  CudaStream stream(std::move(device));
  stream.borrowed_ = handle;
  return stream;
}

Status CudaStream::check_context() const {
  if (handle() == nullptr) return {};
  const CudaDevice& on = *device();
  SINTER_TRY(on.make_current());
  CudaApi::Context context = nullptr;
  SINTER_TRY(on.check(on.api().stream_context(handle(), &context), "cuStreamGetCtx"));
  if (context == on.context()) return {};
  return fail(
      fmt::format("the stream is of context {}, the device's context is {}",
                  static_cast<const void*>(context), static_cast<const void*>(on.context())),
      fmt::format("device {} ({})", on.ordinal(), on.name()),
      "give the device the stream's context", ExitCode::usage);
}

Result<bool> CudaStream::is_capturing() const {
  if (handle() == nullptr) return false;
  const CudaDevice& on = *device();
  SINTER_TRY(on.make_current());
  int status = 0;
  SINTER_TRY(on.check(on.api().stream_is_capturing(handle(), &status), "cuStreamIsCapturing"));
  return status != 0;
}

Status CudaStream::synchronize(std::string_view what) const {
  const CudaDevice& on = *device();
  SINTER_TRY(on.make_current());
  Status done = on.check(on.api().stream_synchronize(handle()), "cuStreamSynchronize");
  if (!done) done.error().where = fmt::format("{}: {}", what, done.error().where);
  return done;
}

Status CudaStream::copy_to_device(CudaAddress to, std::span<const std::byte> from) const {
  if (from.empty()) return {};
  const CudaDevice& on = *device();
  SINTER_TRY(on.make_current());
  return on.check(on.api().copy_to_device(to, from.data(), from.size(), handle()),
                  "cuMemcpyHtoDAsync");
}

Status CudaStream::copy_to_host(std::span<std::byte> to, CudaAddress from) const {
  if (to.empty()) return {};
  const CudaDevice& on = *device();
  SINTER_TRY(on.make_current());
  return on.check(on.api().copy_to_host(to.data(), from, to.size(), handle()), "cuMemcpyDtoHAsync");
}

Status CudaStream::copy_on_device(CudaAddress to, CudaAddress from, size_t bytes) const {
  if (bytes == 0) return {};
  const CudaDevice& on = *device();
  SINTER_TRY(on.make_current());
  return on.check(on.api().copy_on_device(to, from, bytes, handle()), "cuMemcpyDtoDAsync");
}

Status CudaStream::fill(CudaAddress to, unsigned char value, size_t bytes) const {
  if (bytes == 0) return {};
  const CudaDevice& on = *device();
  SINTER_TRY(on.make_current());
  return on.check(on.api().set_bytes(to, value, bytes, handle()), "cuMemsetD8Async");
}

Result<CudaEvent> CudaEvent::create(CudaDevicePtr device) {
  SINTER_TRY(device->make_current());
  CudaEvent event(device);
  SINTER_TRY(device->check(device->api().event_create(event.event_.receive(), 0), "cuEventCreate"));
  return event;
}

Status CudaEvent::record(const CudaStream& stream) const {
  const CudaDevice& on = *event_.device();
  SINTER_TRY(on.make_current());
  return on.check(on.api().event_record(event_.get(), stream.handle()), "cuEventRecord");
}

Status CudaEvent::record_at_launch(const CudaStream& stream) const {
  const CudaDevice& on = *event_.device();
  SINTER_TRY(on.make_current());
  return on.check(on.api().event_record_with_flags(event_.get(), stream.handle(), kExternal),
                  "cuEventRecordWithFlags");
}

Status CudaEvent::hold(const CudaStream& stream) const {
  const CudaDevice& on = *event_.device();
  SINTER_TRY(on.make_current());
  return on.check(on.api().stream_wait_event(stream.handle(), event_.get(), 0),
                  "cuStreamWaitEvent");
}

Status CudaEvent::wait() const {
  const CudaDevice& on = *event_.device();
  SINTER_TRY(on.make_current());
  return on.check(on.api().event_synchronize(event_.get()), "cuEventSynchronize");
}

Result<double> CudaEvent::seconds_since(const CudaEvent& begin) const {
  const CudaDevice& on = *event_.device();
  SINTER_TRY(on.make_current());
  float milliseconds = 0;
  SINTER_TRY(on.check(on.api().event_elapsed(&milliseconds, begin.event_.get(), event_.get()),
                      "cuEventElapsedTime"));
  return static_cast<double>(milliseconds) * 1e-3;
}

Result<CudaLibrary> CudaLibrary::load(CudaDevicePtr device, const std::string& cubin,
                                      std::string_view name) {
  SINTER_TRY(device->make_current());
  CudaLibrary library(device);
  const int code = device->api().library_load(library.library_.receive(), cubin.data(), nullptr,
                                              nullptr, 0, nullptr, nullptr, 0);
  if (Status loaded = device->check(code, "cuLibraryLoadData"); !loaded) {
    const int version = device->driver_version();
    loaded.error().where = fmt::format("kernel {}, {}", name, loaded.error().where);
    if (llvm::is_contained(kForeignCode, code))
      loaded.error().hint = fmt::format(
          "the driver is of CUDA {}.{}: install one no older than the CUDA toolkit, or set "
          "CUDA_HOME to an older toolkit",
          version / 1000, version % 1000 / 10);
    return tl::make_unexpected(std::move(loaded.error()));
  }
  return library;
}

Result<CudaApi::Kernel> CudaLibrary::kernel(const std::string& name) const {
  const CudaDevice& on = *library_.device();
  SINTER_TRY(on.make_current());
  CudaApi::Kernel kernel = nullptr;
  const int code = on.api().library_kernel(&kernel, library_.get(), name.c_str());
  if (Status found = on.check(code, "cuLibraryGetKernel"); !found) {
    found.error().where = fmt::format("kernel {}, {}", name, found.error().where);
    return tl::make_unexpected(std::move(found.error()));
  }
  return kernel;
}

Status CudaGraph::begin(const CudaStream& stream) {
  const CudaDevice& device = *stream.device();
  SINTER_TRY(device.make_current());
  return device.check(device.api().stream_begin_capture(stream.handle(), kCaptureThreadLocal),
                      "cuStreamBeginCapture");
}

Result<CudaGraph> CudaGraph::end(const CudaStream& stream, const Status& done) {
  const CudaDevice& device = *stream.device();
  CudaApi::Graph graph = nullptr;
  const int code = device.api().stream_end_capture(stream.handle(), &graph);
  CudaGraph result(stream.device());
  Status made = done;
  if (made) made = device.check(code, "cuStreamEndCapture");
  if (made)
    made = device.check(device.api().graph_instantiate(result.exec_.receive(), graph, 0),
                        "cuGraphInstantiate");
  if (graph != nullptr) device.api().graph_destroy(graph);
  if (!made) return tl::make_unexpected(std::move(made.error()));
  return result;
}

Status CudaGraph::launch(const CudaStream& stream) const {
  const CudaDevice& on = *exec_.device();
  SINTER_TRY(on.make_current());
  return on.check(on.api().graph_launch(exec_.get(), stream.handle()), "cuGraphLaunch");
}

}  // namespace sinter
