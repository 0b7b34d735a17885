// Objects on a CUDA device: memory, streams, events, loaded kernels, graphs. Each owns its handle
// and keeps its device; move-only.
#pragma once

#include <span>
#include <vector>

#include "runtime/cuda/driver.h"
#include "runtime/unique_handle.h"

namespace sinter {

using CudaDevicePtr = std::shared_ptr<CudaDevice>;

/// Gives a handle back to the driver of the device that it lives on.
template <auto function>
struct CudaRelease {
  CudaDevicePtr device;
  void operator()(auto handle) const {
    if (device->make_current()) (device->api().*function)(handle);
  }
};
template <typename Handle, auto function>
class CudaHandle : public UniqueHandle<Handle, CudaRelease<function>> {
 public:
  CudaHandle() = default;
  explicit CudaHandle(CudaDevicePtr device)
      : UniqueHandle<Handle, CudaRelease<function>>({std::move(device)}) {}
  const CudaDevicePtr& device() const { return this->release().device; }
};

/// Device memory, aligned to 256 bytes (kArenaAlignment); the driver's, or the allocator's of the
/// device.
class CudaMemory {
 public:
  CudaMemory() = default;
  /// Uninitialized. `purpose` is for the message of an error, which says how much was wanted and
  /// how much is free. `stream`: for the device's allocator; null: all streams may use the memory.
  static Result<CudaMemory> allocate(CudaDevicePtr device, size_t bytes, std::string_view purpose,
                                     CudaApi::Stream stream = nullptr);

  CudaAddress address() const { return memory_.get(); }
  size_t bytes() const { return bytes_; }

 private:
  struct Release {
    CudaDevicePtr device;
    size_t bytes = 0;
    CudaApi::Stream stream = nullptr;
    void operator()(CudaAddress address) const;
  };
  explicit CudaMemory(Release release)
      : memory_(std::move(release)), bytes_(memory_.release().bytes) {}

  UniqueHandle<CudaAddress, Release> memory_;
  size_t bytes_ = 0;
};

/// Page-locked host memory, for copies that run beside the host.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  static Result<PinnedMemory> allocate(CudaDevicePtr device, size_t bytes);

  std::byte* data() const { return static_cast<std::byte*>(memory_.get()); }
  size_t bytes() const { return bytes_; }

 private:
  PinnedMemory(CudaDevicePtr device, size_t bytes) : memory_(std::move(device)), bytes_(bytes) {}

  CudaHandle<void*, &CudaApi::free_host> memory_;
  size_t bytes_ = 0;
};

/// A queue of work. All functions return before the work is done, synchronize() excepted.
class CudaStream {
 public:
  CudaStream() = default;
  static Result<CudaStream> create(CudaDevicePtr device);
  /// Somebody else's stream in the device's context, which outlives this; null is the context's
  /// default stream (the legacy one, which cannot be captured).
  static CudaStream borrow(CudaDevicePtr device, CudaApi::Stream handle);

  CudaApi::Stream handle() const { return stream_.get() != nullptr ? stream_.get() : borrowed_; }
  const CudaDevicePtr& device() const { return stream_.device(); }
  /// Waits; the error of work that failed names `what` was done.
  Status synchronize(std::string_view what) const;
  /// An error where a borrowed stream is of another context than the device's.
  Status check_context() const;
  /// Whether enqueued work is now captured into a graph; always false for the default stream.
  Result<bool> is_capturing() const;
  /// `from` must stay until the copy is done, unless it is pageable.
  Status copy_to_device(CudaAddress to, std::span<const std::byte> from) const;
  Status copy_to_host(std::span<std::byte> to, CudaAddress from) const;
  Status copy_on_device(CudaAddress to, CudaAddress from, size_t bytes) const;
  Status fill(CudaAddress to, unsigned char value, size_t bytes) const;

 private:
  explicit CudaStream(CudaDevicePtr device) : stream_(std::move(device)) {}

  CudaHandle<CudaApi::Stream, &CudaApi::stream_destroy> stream_;
  CudaApi::Stream borrowed_ = nullptr;
};

/// A point in a stream, with a time.
class CudaEvent {
 public:
  CudaEvent() = default;
  static Result<CudaEvent> create(CudaDevicePtr device);

  Status record(const CudaStream& stream) const;
  /// Records the event at each launch of the graph that the stream's work is captured into.
  Status record_at_launch(const CudaStream& stream) const;
  /// Later work on `stream` waits for the work that was enqueued before the event was recorded. If
  /// that work is captured into a graph, so is the later work.
  Status hold(const CudaStream& stream) const;
  Status wait() const;
  /// Seconds from `begin` to this event; both have happened.
  Result<double> seconds_since(const CudaEvent& begin) const;

 private:
  explicit CudaEvent(CudaDevicePtr device) : event_(std::move(device)) {}

  CudaHandle<CudaApi::Event, &CudaApi::event_destroy> event_;
};

/// Machine code on the device.
class CudaLibrary {
 public:
  CudaLibrary() = default;
  /// `name` is for messages.
  static Result<CudaLibrary> load(CudaDevicePtr device, const std::string& cubin,
                                  std::string_view name);

  /// A `__global__` function with C linkage. Valid as long as the library is.
  Result<CudaApi::Kernel> kernel(const std::string& name) const;

 private:
  explicit CudaLibrary(CudaDevicePtr device) : library_(std::move(device)) {}

  CudaHandle<CudaApi::Library, &CudaApi::library_unload> library_;
};

/// Work recorded once and launched often.
class CudaGraph {
 public:
  CudaGraph() = default;
  /// Records what `work` enqueues on the stream instead of running it, and on others that have
  /// waited for events of it; at the end the stream must have waited for them.
  template <typename Work>
  static Result<CudaGraph> record(const CudaStream& stream, Work&& work) {
    SINTER_TRY(begin(stream));
    const Status done = work();
    return end(stream, done);
  }

  Status launch(const CudaStream& stream) const;

 private:
  static Status begin(const CudaStream& stream);
  static Result<CudaGraph> end(const CudaStream& stream, const Status& done);
  explicit CudaGraph(CudaDevicePtr device) : exec_(std::move(device)) {}

  CudaHandle<CudaApi::GraphExec, &CudaApi::graph_exec_destroy> exec_;
};

}  // namespace sinter
