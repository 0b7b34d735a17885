#include "runtime/cuda_memory.h"

#include <algorithm>

namespace sinter {
namespace {

constexpr int kOutOfMemory = 2;             // CUDA_ERROR_OUT_OF_MEMORY
constexpr unsigned kNonBlocking = 1;        // CU_STREAM_NON_BLOCKING
constexpr int kCaptureThreadLocal = 1;      // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL

std::string megabytes(size_t bytes) { return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6); }

}  // namespace

Result<CudaMemory> CudaMemory::allocate(CudaDevicePtr device, size_t bytes, std::string_view purpose) {
  SINTER_TRY(device->make_current());
  CudaMemory memory;
  memory.device_ = device;
  memory.bytes_ = bytes;
  if (bytes == 0) return memory;
  const int code = device->api().allocate(&memory.address_, bytes);
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

CudaMemory::~CudaMemory() {
  if (address_ != 0 && device_->make_current()) device_->api().free(address_);
}

Result<PinnedMemory> PinnedMemory::allocate(CudaDevicePtr device, size_t bytes) {
  SINTER_TRY(device->make_current());
  PinnedMemory memory;
  memory.device_ = device;
  memory.bytes_ = bytes;
  void* data = nullptr;
  SINTER_TRY(device->check(device->api().allocate_host(&data, std::max<size_t>(bytes, 1), 0), "cuMemHostAlloc"));
  memory.data_ = static_cast<std::byte*>(data);
  return memory;
}

PinnedMemory::~PinnedMemory() {
  if (data_ != nullptr && device_->make_current()) device_->api().free_host(data_);
}

Result<CudaStream> CudaStream::create(CudaDevicePtr device) {
  SINTER_TRY(device->make_current());
  CudaStream stream;
  stream.device_ = device;
  SINTER_TRY(device->check(device->api().stream_create(&stream.stream_, kNonBlocking), "cuStreamCreate"));
  return stream;
}

CudaStream::~CudaStream() {
  if (stream_ != nullptr && device_->make_current()) device_->api().stream_destroy(stream_);
}

Status CudaStream::synchronize(std::string_view what) const {
  SINTER_TRY(device_->make_current());
  Status done = device_->check(device_->api().stream_synchronize(stream_), "cuStreamSynchronize");
  if (!done) done.error().where = fmt::format("{}: {}", what, done.error().where);
  return done;
}

Status CudaStream::copy_to_device(CudaAddress to, std::span<const std::byte> from) const {
  if (from.empty()) return {};
  SINTER_TRY(device_->make_current());
  return device_->check(device_->api().copy_to_device(to, from.data(), from.size(), stream_), "cuMemcpyHtoDAsync");
}

Status CudaStream::copy_to_host(std::span<std::byte> to, CudaAddress from) const {
  if (to.empty()) return {};
  SINTER_TRY(device_->make_current());
  return device_->check(device_->api().copy_to_host(to.data(), from, to.size(), stream_), "cuMemcpyDtoHAsync");
}

Status CudaStream::copy_on_device(CudaAddress to, CudaAddress from, size_t bytes) const {
  if (bytes == 0) return {};
  SINTER_TRY(device_->make_current());
  return device_->check(device_->api().copy_on_device(to, from, bytes, stream_), "cuMemcpyDtoDAsync");
}

Status CudaStream::fill(CudaAddress to, unsigned char value, size_t bytes) const {
  if (bytes == 0) return {};
  SINTER_TRY(device_->make_current());
  return device_->check(device_->api().set_bytes(to, value, bytes, stream_), "cuMemsetD8Async");
}

Result<CudaEvent> CudaEvent::create(CudaDevicePtr device) {
  SINTER_TRY(device->make_current());
  CudaEvent event;
  event.device_ = device;
  SINTER_TRY(device->check(device->api().event_create(&event.event_, 0), "cuEventCreate"));
  return event;
}

CudaEvent::~CudaEvent() {
  if (event_ != nullptr && device_->make_current()) device_->api().event_destroy(event_);
}

Status CudaEvent::record(const CudaStream& stream) const {
  SINTER_TRY(device_->make_current());
  return device_->check(device_->api().event_record(event_, stream.handle()), "cuEventRecord");
}

Status CudaEvent::wait() const {
  SINTER_TRY(device_->make_current());
  return device_->check(device_->api().event_synchronize(event_), "cuEventSynchronize");
}

Result<double> CudaEvent::seconds_since(const CudaEvent& begin) const {
  SINTER_TRY(device_->make_current());
  float milliseconds = 0;
  SINTER_TRY(device_->check(device_->api().event_elapsed(&milliseconds, begin.event_, event_), "cuEventElapsedTime"));
  return static_cast<double>(milliseconds) * 1e-3;
}

Result<CudaLibrary> CudaLibrary::load(CudaDevicePtr device, const std::string& cubin, std::string_view name) {
  SINTER_TRY(device->make_current());
  CudaLibrary library;
  library.device_ = device;
  const int code = device->api().library_load(&library.library_, cubin.data(), nullptr, nullptr, 0,
                                              nullptr, nullptr, 0);
  if (Status loaded = device->check(code, "cuLibraryLoadData"); !loaded) {
    loaded.error().where = fmt::format("kernel {}, {}", name, loaded.error().where);
    return tl::make_unexpected(std::move(loaded.error()));
  }
  return library;
}

CudaLibrary::~CudaLibrary() {
  if (library_ != nullptr && device_->make_current()) device_->api().library_unload(library_);
}

Result<CudaApi::Kernel> CudaLibrary::kernel(const std::string& name) const {
  SINTER_TRY(device_->make_current());
  CudaApi::Kernel kernel = nullptr;
  if (Status found = device_->check(device_->api().library_kernel(&kernel, library_, name.c_str()), "cuLibraryGetKernel");
      !found) {
    found.error().where = fmt::format("kernel {}, {}", name, found.error().where);
    return tl::make_unexpected(std::move(found.error()));
  }
  return kernel;
}

Status CudaGraph::begin(const CudaStream& stream) {
  const CudaDevice& device = *stream.device();
  SINTER_TRY(device.make_current());
  return device.check(device.api().stream_begin_capture(stream.handle(), kCaptureThreadLocal), "cuStreamBeginCapture");
}

Result<CudaGraph> CudaGraph::end(const CudaStream& stream, const Status& done) {
  const CudaDevice& device = *stream.device();
  CudaApi::Graph graph = nullptr;
  const int code = device.api().stream_end_capture(stream.handle(), &graph);
  CudaGraph result;
  result.device_ = stream.device();
  Status made = done;
  if (made) made = device.check(code, "cuStreamEndCapture");
  if (made) made = device.check(device.api().graph_instantiate(&result.exec_, graph, 0), "cuGraphInstantiate");
  if (graph != nullptr) device.api().graph_destroy(graph);
  if (!made) return tl::make_unexpected(std::move(made.error()));
  return result;
}

CudaGraph::~CudaGraph() {
  if (exec_ != nullptr && device_->make_current()) device_->api().graph_exec_destroy(exec_);
}

Status CudaGraph::launch(const CudaStream& stream) const {
  SINTER_TRY(device_->make_current());
  return device_->check(device_->api().graph_launch(exec_, stream.handle()), "cuGraphLaunch");
}

}  // namespace sinter
