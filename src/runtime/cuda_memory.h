// What lives on a CUDA device: memory, streams, events, loaded kernels, graphs. Each owns its handle
// and keeps its device; move-only.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "runtime/cuda_driver.h"

namespace sinter {

using CudaDevicePtr = std::shared_ptr<CudaDevice>;

/// Device memory, aligned to 256 bytes.
class CudaMemory {
 public:
  CudaMemory() = default;
  /// Uninitialized. `purpose` is for the message of an error, which says how much was wanted and how
  /// much is free.
  static Result<CudaMemory> allocate(CudaDevicePtr device, size_t bytes, std::string_view purpose);
  CudaMemory(CudaMemory&& other) noexcept { swap(other); }
  CudaMemory& operator=(CudaMemory&& other) noexcept { return swap(other), *this; }
  ~CudaMemory();

  CudaAddress address() const { return address_; }
  size_t bytes() const { return bytes_; }

 private:
  void swap(CudaMemory& other) {
    std::swap(device_, other.device_);
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
  }
  CudaDevicePtr device_;
  CudaAddress address_ = 0;
  size_t bytes_ = 0;
};

/// Page-locked host memory, for copies that run beside the host.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  static Result<PinnedMemory> allocate(CudaDevicePtr device, size_t bytes);
  PinnedMemory(PinnedMemory&& other) noexcept { swap(other); }
  PinnedMemory& operator=(PinnedMemory&& other) noexcept { return swap(other), *this; }
  ~PinnedMemory();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void swap(PinnedMemory& other) {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  CudaDevicePtr device_;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

/// A queue of work. All functions return before the work is done, synchronize() excepted.
class CudaStream {
 public:
  CudaStream() = default;
  static Result<CudaStream> create(CudaDevicePtr device);
  CudaStream(CudaStream&& other) noexcept { swap(other); }
  CudaStream& operator=(CudaStream&& other) noexcept { return swap(other), *this; }
  ~CudaStream();

  CudaApi::Stream handle() const { return stream_; }
  const CudaDevicePtr& device() const { return device_; }
  /// Waits; the error of work that failed names `what` was done.
  Status synchronize(std::string_view what) const;
  /// `from` must stay until the copy is done, unless it is pageable.
  Status copy_to_device(CudaAddress to, std::span<const std::byte> from) const;
  Status copy_to_host(std::span<std::byte> to, CudaAddress from) const;
  Status copy_on_device(CudaAddress to, CudaAddress from, size_t bytes) const;
  Status fill(CudaAddress to, unsigned char value, size_t bytes) const;

 private:
  void swap(CudaStream& other) {
    std::swap(device_, other.device_);
    std::swap(stream_, other.stream_);
  }
  CudaDevicePtr device_;
  CudaApi::Stream stream_ = nullptr;
};

/// A point in a stream, with a time.
class CudaEvent {
 public:
  CudaEvent() = default;
  static Result<CudaEvent> create(CudaDevicePtr device);
  CudaEvent(CudaEvent&& other) noexcept { swap(other); }
  CudaEvent& operator=(CudaEvent&& other) noexcept { return swap(other), *this; }
  ~CudaEvent();

  Status record(const CudaStream& stream) const;
  Status wait() const;
  /// Seconds from `begin` to this event; both have happened.
  Result<double> seconds_since(const CudaEvent& begin) const;

 private:
  void swap(CudaEvent& other) {
    std::swap(device_, other.device_);
    std::swap(event_, other.event_);
  }
  CudaDevicePtr device_;
  CudaApi::Event event_ = nullptr;
};

/// Machine code on the device.
class CudaLibrary {
 public:
  CudaLibrary() = default;
  /// `name` is for messages.
  static Result<CudaLibrary> load(CudaDevicePtr device, const std::string& cubin, std::string_view name);
  CudaLibrary(CudaLibrary&& other) noexcept { swap(other); }
  CudaLibrary& operator=(CudaLibrary&& other) noexcept { return swap(other), *this; }
  ~CudaLibrary();

  /// A `__global__` function with C linkage. Valid as long as the library is.
  Result<CudaApi::Kernel> kernel(const std::string& name) const;

 private:
  void swap(CudaLibrary& other) {
    std::swap(device_, other.device_);
    std::swap(library_, other.library_);
  }
  CudaDevicePtr device_;
  CudaApi::Library library_ = nullptr;
};

/// Work recorded once and launched often.
class CudaGraph {
 public:
  CudaGraph() = default;
  /// Records what `work` enqueues on the stream instead of running it.
  template <typename Work>
  static Result<CudaGraph> record(const CudaStream& stream, Work&& work) {
    SINTER_TRY(begin(stream));
    const Status done = work();
    return end(stream, done);
  }
  CudaGraph(CudaGraph&& other) noexcept { swap(other); }
  CudaGraph& operator=(CudaGraph&& other) noexcept { return swap(other), *this; }
  ~CudaGraph();

  Status launch(const CudaStream& stream) const;

 private:
  static Status begin(const CudaStream& stream);
  static Result<CudaGraph> end(const CudaStream& stream, const Status& done);
  void swap(CudaGraph& other) {
    std::swap(device_, other.device_);
    std::swap(exec_, other.exec_);
  }
  CudaDevicePtr device_;
  CudaApi::GraphExec exec_ = nullptr;
};

}  // namespace sinter
