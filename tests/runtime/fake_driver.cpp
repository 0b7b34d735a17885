// A CUDA driver for machines without one: a library that tests of the driver's users load instead
// of libcuda.so.1. Device memory is the host's. A handle that is given back twice, or as something
// else, ends the program.
//
// Work waits in its stream until somebody waits for it, as late as a device may do it: a copy out
// of pinned memory takes what is there then. Between the two calls of a capture it goes to a graph
// instead, and so does the work of streams which wait for an event of the first one; each launch of
// the graph puts all of it into one stream, in the order of the capture. Kernels compute nothing
// and take no time, except the kernels of fake_driver.h; between any two events of a stream are 2
// ms.
//
// Each call is logged. Threads may call at once: one call at a time is played. A thread has a
// current context, which is a device's primary one or one that a test has made.
//
// SINTER_FAKE_DEVICES devices are there (default 1), of compute capability
// SINTER_FAKE_MAJOR.SINTER_FAKE_MINOR and with SINTER_FAKE_SHARED bytes of shared memory a block
// (default 9.9 and 227 KiB);
// SINTER_FAKE_BROKEN is the number of one whose context cannot be made.
//
// One file: all entry points work on the same handles, streams and failures.
#include "runtime/fake_driver.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

namespace {

using sinter::FakeCall;
using sinter::FakeCopy;
using sinter::FakeKernel;
using sinter::FakeLaunch;
using Work = std::function<void()>;

enum class Kind { memory, pinned, stream, event, graph, executable, library };

constexpr int kInvalidContext = 201, kCapturing = 900;
constexpr int kInvalid = 1, kOutOfMemory = 2, kUnsupported = 222, kIllegalAddress = 700,
              kUnjoined = 904, kBroken = 999;
constexpr size_t kMemory = size_t{1} << 30;
constexpr int kUsualShared = 48 * 1024, kMaxShared = 227 * 1024;

// CUlaunchAttribute and CUlaunchConfig, as CUDA's cuda.h declares them.
struct LaunchAttribute {
  int id;
  char padding[4];
  union {
    char bytes[64];
    unsigned cluster[3];
    int programmatic;
  };
};
struct LaunchConfig {
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void* stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

struct Handle {
  Kind kind;
  size_t bytes;
};
/// Work of a graph; `event`: one that is recorded after it.
struct Captured {
  Work work;
  void* event = nullptr;
};
struct Stream {
  void* context = nullptr;
  std::deque<Work> waiting;
  size_t done = 0;  // pieces of work ever
  std::vector<Captured>* capture = nullptr;
  bool forked = false;  // into the capture of another stream
  size_t last = 0,
         joined = 0;  // pieces in the capture up to its own last one, up to what was waited for
};

std::map<uintptr_t, Handle> handles;
std::map<void*, Stream> streams = {{nullptr, Stream{}}};  // and the default stream
std::map<void*, std::pair<void*, size_t>> events;  // a stream and the work in it before the event
double clock_ms = 0;                               // time that kernels took
std::map<void*, double> event_ms;                  // the clock when the event happened
// The stream of each event in a capture, and the number of pieces before it.
std::map<void*, std::pair<void*, size_t>> captured_events;
std::map<void*, std::vector<Captured>> graphs;  // and executables
std::map<void*, const FakeKernel*> kernels;     // by library
std::map<void*, int> shared_limits;             // by kernel, where one was set
std::recursive_mutex mutex;                     // of all that is here
thread_local void* current = nullptr;
constexpr int kMaxDevices = 8;
char primaries[kMaxDevices];         // contexts: their addresses
std::map<void*, int> made_contexts;  // by tests; their devices
std::vector<FakeCall> log;
std::vector<FakeLaunch> launches;
std::vector<FakeCopy> copies;
size_t max_pinned = 0;

struct {
  std::string name;
  size_t index = 0, calls = 0;
  int code = 0;
  bool sticky = false;
} failure;

int number(const char* variable, int usual) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : usual;
}

/// The error that a call of `name` gives now; 0: it succeeds.
int fails(std::string_view name) {
  if (failure.sticky) return failure.code;
  if (failure.code == 0 || name != failure.name || failure.calls++ != failure.index) return 0;
  failure.sticky = failure.code == kIllegalAddress;
  return failure.code;
}

/// A call of the driver, from its begin to its end.
class Entered {
 public:
  /// `name`: a literal. With failures of "any" call, `code` is the error that this one gives, if it
  /// may fail.
  explicit Entered(const char* name, bool may_fail = true) : lock_(mutex) {
    log.push_back({name, current});
    if (may_fail && failure.name == "any") code = fails("any");
  }
  int code = 0;

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

void run_until(Stream& stream, size_t count) {
  if (failure.sticky) stream.waiting.clear();  // the device does nothing any more
  for (; stream.done < count && !stream.waiting.empty(); ++stream.done) {
    const Work work = std::move(stream.waiting.front());
    stream.waiting.pop_front();
    work();
  }
}
void run(Stream& stream) { run_until(stream, SIZE_MAX); }
void run_all() {
  for (auto& [handle, stream] : streams) run(stream);
}
void capture(Stream& in, Captured piece) {
  in.capture->push_back(std::move(piece));
  in.last = in.capture->size();
}
void enqueue(void* stream, Work work) {
  Stream& in = streams.at(stream);
  if (in.capture)
    capture(in, {std::move(work)});
  else
    in.waiting.push_back(std::move(work));
}

void record(void* event, void* stream) {
  Stream& in = streams.at(stream);
  events[event] = {stream, in.done + in.waiting.size()};
  in.waiting.push_back([event] { event_ms[event] = clock_ms; });
}

uintptr_t make(Kind kind, size_t bytes = 1) {
  constexpr size_t kAlignment = 256;
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const auto handle = reinterpret_cast<uintptr_t>(std::aligned_alloc(kAlignment, rounded));
  handles[handle] = {kind, bytes};
  return handle;
}
template <typename Pointer>
int make(Kind kind, Pointer* handle, size_t bytes = 1) {
  if (const int code = fails("")) return code;
  *handle = reinterpret_cast<Pointer>(make(kind, bytes));
  return 0;
}
int release(Kind kind, uintptr_t handle) {
  const auto at = handles.find(handle);
  if (at == handles.end() || at->second.kind != kind) {
    std::fputs("fake driver: a handle is given back that is not there\n", stderr);
    std::abort();
  }
  handles.erase(at);
  std::free(reinterpret_cast<void*>(handle));
  return fails("give back");
}
int release(Kind kind, void* handle) { return release(kind, reinterpret_cast<uintptr_t>(handle)); }
void* memory(uint64_t address) { return reinterpret_cast<void*>(address); }

/// How many there are; with `out`, hands them over.
template <typename Item>
size_t take(std::vector<Item>& items, Item* out) {
  const size_t count = items.size();
  if (!out) return count;
  std::copy(items.begin(), items.end(), out);
  items.clear();
  return count;
}

bool is_pinned(const void* data) {
  auto at = handles.upper_bound(reinterpret_cast<uintptr_t>(data));
  if (at == handles.begin()) return false;
  --at;
  return at->second.kind == Kind::pinned &&
         reinterpret_cast<uintptr_t>(data) < at->first + at->second.bytes;
}

}  // namespace

extern "C" {

size_t sinter_fake_handles() { return handles.size(); }
size_t sinter_fake_max_pinned() { return std::exchange(max_pinned, 0); }
void sinter_fake_fail(const char* name, size_t index, int code) {
  failure = {name, index, 0, code, false};
}
size_t sinter_fake_calls() { return failure.calls; }
size_t sinter_fake_launches(FakeLaunch* out) { return take(launches, out); }
size_t sinter_fake_copies(FakeCopy* out) { return take(copies, out); }
size_t sinter_fake_log(FakeCall* out) { return take(log, out); }
void sinter_fake_enqueue(void* stream, void (*work)(void*), void* data, double milliseconds) {
  const Entered entered("sinter_fake_enqueue", false);
  enqueue(stream, [=] {
    work(data);
    clock_ms += milliseconds;
  });
}
void* sinter_fake_context(int device) {
  static char contexts[64];
  void* const made = &contexts[made_contexts.size()];
  made_contexts[made] = device;
  return made;
}

int cuInit(unsigned) {
  const Entered entered("cuInit", false);
  return 0;
}
int cuDriverGetVersion(int* version) {
  const Entered entered("cuDriverGetVersion");
  if (entered.code != 0) return entered.code;
  return *version = 13000, 0;
}
int cuGetErrorName(int code, const char** name) {
  const Entered entered("cuGetErrorName", false);
  *name = code == kIllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : code == kUnsupported  ? "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
                                  : "FAKE_ERROR";
  return 0;
}
int cuGetErrorString(int, const char** text) {
  const Entered entered("cuGetErrorString", false);
  return *text = "made up", 0;
}
int cuDeviceGetCount(int* count) {
  const Entered entered("cuDeviceGetCount", false);
  return *count = number("SINTER_FAKE_DEVICES", 1), 0;
}
int cuDeviceGet(int* device, int ordinal) {
  const Entered entered("cuDeviceGet");
  if (entered.code != 0) return entered.code;
  return *device = ordinal, 0;
}
int cuDeviceGetName(char* name, int size, int device) {
  const Entered entered("cuDeviceGetName");
  if (entered.code != 0) return entered.code;
  std::snprintf(name, static_cast<size_t>(size), "Fake GPU %d", device);
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  const Entered entered("cuDeviceGetAttribute");
  if (entered.code != 0) return entered.code;
  constexpr int kMaxSharedMemoryPerBlockOptin = 97, kMajor = 75, kMinor = 76;
  *value = attribute == kMaxSharedMemoryPerBlockOptin ? number("SINTER_FAKE_SHARED", kMaxShared)
           : attribute == kMajor                      ? number("SINTER_FAKE_MAJOR", 9)
           : attribute == kMinor                      ? number("SINTER_FAKE_MINOR", 9)
                                                      : 9;
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  const Entered entered("cuDeviceTotalMem_v2");
  if (entered.code != 0) return entered.code;
  return *bytes = kMemory, 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  const Entered entered("cuDevicePrimaryCtxRetain");
  if (entered.code != 0) return entered.code;
  *context = &primaries[device];
  return device == number("SINTER_FAKE_BROKEN", -1) ? kBroken : 0;
}
int cuDevicePrimaryCtxRelease_v2(int) {
  const Entered entered("cuDevicePrimaryCtxRelease_v2", false);
  return 0;
}
int cuCtxSetCurrent(void* context) {
  const Entered entered("cuCtxSetCurrent", false);
  current = context;
  return 0;
}
int cuCtxGetCurrent(void** context) {
  const Entered entered("cuCtxGetCurrent", false);
  return *context = current, 0;
}
int cuCtxGetDevice(int* device) {
  const Entered entered("cuCtxGetDevice");
  if (entered.code != 0) return entered.code;
  const auto made = made_contexts.find(current);
  if (made != made_contexts.end()) return *device = made->second, 0;
  const char* const primary = static_cast<char*>(current);
  if (primary < primaries || primary >= primaries + kMaxDevices) return kInvalidContext;
  return *device = static_cast<int>(primary - primaries), 0;
}
int cuMemGetInfo_v2(size_t* free, size_t* total) {
  const Entered entered("cuMemGetInfo_v2");
  if (entered.code != 0) return entered.code;
  return *free = *total = kMemory, 0;
}
int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  const Entered entered("cuMemAlloc_v2");
  if (entered.code != 0) return entered.code;
  if (bytes > kMemory) return kOutOfMemory;
  void* made = nullptr;
  const int code = make(Kind::memory, &made, bytes);
  return *address = reinterpret_cast<uintptr_t>(made), code;
}
int cuMemFree_v2(uint64_t address) {
  const Entered entered("cuMemFree_v2", false);
  run_all();
  return release(Kind::memory, address);
}
int cuMemHostAlloc(void** data, size_t bytes, unsigned) {
  const Entered entered("cuMemHostAlloc");
  if (entered.code != 0) return entered.code;
  max_pinned = std::max(max_pinned, bytes);
  return make(Kind::pinned, data, bytes);
}
int cuMemFreeHost(void* data) {
  const Entered entered("cuMemFreeHost", false);
  run_all();
  return release(Kind::pinned, data);
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream) {
  const Entered entered("cuMemcpyHtoDAsync_v2");
  if (entered.code != 0) return entered.code;
  if (const int code = fails("cuMemcpyHtoDAsync_v2")) return code;
  if (is_pinned(from)) {
    enqueue(stream, [=] { std::memcpy(memory(to), from, bytes); });
  } else {  // read before the call returns
    const auto* begin = static_cast<const char*>(from);
    enqueue(stream, [to, data = std::vector<char>(begin, begin + bytes)] {
      std::memcpy(memory(to), data.data(), data.size());
    });
  }
  return 0;
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* stream) {
  const Entered entered("cuMemcpyDtoHAsync_v2");
  if (entered.code != 0) return entered.code;
  if (const int code = fails("cuMemcpyDtoHAsync_v2")) return code;
  enqueue(stream, [=] { std::memcpy(to, memory(from), bytes); });
  if (!is_pinned(to) && !streams.at(stream).capture) run(streams.at(stream));
  return 0;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void* stream) {
  const Entered entered("cuMemcpyDtoDAsync_v2");
  if (entered.code != 0) return entered.code;
  if (const int code = fails("cuMemcpyDtoDAsync_v2")) return code;
  enqueue(stream, [=] {
    std::memcpy(memory(to), memory(from), bytes);
    copies.push_back({to, from, bytes, launches.size()});
  });
  return 0;
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void* stream) {
  const Entered entered("cuMemsetD8Async");
  if (entered.code != 0) return entered.code;
  enqueue(stream, [=] { std::memset(memory(to), value, bytes); });
  return 0;
}
int cuStreamCreate(void** stream, unsigned) {
  const Entered entered("cuStreamCreate");
  if (entered.code != 0) return entered.code;
  const int code = make(Kind::stream, stream);
  if (code == 0) streams[*stream].context = current;
  return code;
}
int cuStreamDestroy_v2(void* stream) {
  const Entered entered("cuStreamDestroy_v2", false);
  run(streams.at(stream));
  streams.erase(stream);
  return release(Kind::stream, stream);
}
int cuStreamSynchronize(void* stream) {
  const Entered entered("cuStreamSynchronize");
  if (entered.code != 0) return entered.code;
  if (const int code = fails("cuStreamSynchronize")) return code;
  if (streams.at(stream).capture) return kCapturing;
  run(streams.at(stream));
  return 0;
}
int cuStreamGetCtx(void* stream, void** context) {
  const Entered entered("cuStreamGetCtx");
  if (entered.code != 0) return entered.code;
  return *context = streams.at(stream).context, 0;
}
int cuStreamIsCapturing(void* stream, int* status) {
  const Entered entered("cuStreamIsCapturing");
  if (entered.code != 0) return entered.code;
  return *status = streams.at(stream).capture != nullptr, 0;
}
int cuStreamBeginCapture_v2(void* stream, int) {
  const Entered entered("cuStreamBeginCapture_v2");
  if (entered.code != 0) return entered.code;
  streams.at(stream).capture = new std::vector<Captured>;
  return 0;
}
int cuStreamEndCapture(void* stream, void** graph) {
  const Entered entered("cuStreamEndCapture", false);
  const std::unique_ptr<std::vector<Captured>> captured(streams.at(stream).capture);
  std::erase_if(captured_events, [&](const auto& event) {
    return streams.at(event.second.first).capture == captured.get();
  });
  int code = 0;
  for (auto& [handle, other] : streams)
    if (other.capture == captured.get()) {
      if (other.forked && other.joined < other.last) code = kUnjoined;
      other.capture = nullptr;
      other.forked = false;
      other.last = other.joined = 0;
    }
  if (code == 0) code = make(Kind::graph, graph);
  if (code == 0) graphs[*graph] = std::move(*captured);
  return code;
}
int cuEventCreate(void** event, unsigned) {
  const Entered entered("cuEventCreate");
  if (entered.code != 0) return entered.code;
  return make(Kind::event, event);
}
int cuEventDestroy_v2(void* event) {
  const Entered entered("cuEventDestroy_v2", false);
  events.erase(event);
  captured_events.erase(event);
  event_ms.erase(event);
  return release(Kind::event, event);
}
int cuEventRecord(void* event, void* stream) {
  const Entered entered("cuEventRecord");
  if (entered.code != 0) return entered.code;
  if (const int code = fails("cuEventRecord")) return code;
  if (streams.at(stream).capture)
    captured_events[event] = {stream, streams.at(stream).capture->size()};
  else
    record(event, stream);
  return 0;
}
int cuEventRecordWithFlags(void* event, void* stream, unsigned flags) {
  const Entered entered("cuEventRecordWithFlags");
  if (entered.code != 0) return entered.code;
  if (const int code = fails("cuEventRecordWithFlags")) return code;
  constexpr unsigned kExternal = 1;
  if (flags != kExternal || !streams.at(stream).capture) return kInvalid;
  capture(streams.at(stream), {[] {}, event});
  return 0;
}
/// For events in captures alone.
int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  const Entered entered("cuStreamWaitEvent");
  if (entered.code != 0) return entered.code;
  if (const int code = fails("cuStreamWaitEvent")) return code;
  const auto at = captured_events.find(event);
  if (at == captured_events.end()) return kInvalid;
  const auto [origin, pieces] = at->second;
  Stream &waits = streams.at(stream), &from = streams.at(origin);
  if (!waits.capture) {
    waits.capture = from.capture;
    waits.forked = true;
    waits.last = pieces + 1;  // it must be joined, whatever it does
  } else {
    from.joined = std::max(from.joined, pieces);
  }
  return 0;
}
int cuEventSynchronize(void* event) {
  const Entered entered("cuEventSynchronize");
  if (entered.code != 0) return entered.code;
  if (const int code = fails("cuEventSynchronize")) return code;
  const auto at = events.find(event);
  if (at == events.end()) return 0;
  const auto stream = streams.find(at->second.first);
  if (stream != streams.end()) run_until(stream->second, at->second.second);
  return 0;
}
int cuEventQuery(void* event) {
  const Entered entered("cuEventQuery");
  if (entered.code != 0) return entered.code;
  return cuEventSynchronize(event);
}
int cuEventElapsedTime(float* milliseconds, void* begin, void* end) {
  const Entered entered("cuEventElapsedTime");
  if (entered.code != 0) return entered.code;
  return *milliseconds = static_cast<float>(2 + event_ms[end] - event_ms[begin]), 0;
}
int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  const Entered entered("cuGraphInstantiateWithFlags");
  if (entered.code != 0) return entered.code;
  const int code = make(Kind::executable, executable);
  if (code == 0) graphs[*executable] = graphs.at(graph);
  return code;
}
int cuGraphLaunch(void* executable, void* stream) {
  const Entered entered("cuGraphLaunch");
  if (entered.code != 0) return entered.code;
  if (const int code = fails("cuGraphLaunch")) return code;
  for (const Captured& captured : graphs.at(executable)) {
    enqueue(stream, captured.work);
    if (captured.event) record(captured.event, stream);
  }
  return 0;
}
int cuGraphExecDestroy(void* executable) {
  const Entered entered("cuGraphExecDestroy", false);
  graphs.erase(executable);
  return release(Kind::executable, executable);
}
int cuGraphDestroy(void* graph) {
  const Entered entered("cuGraphDestroy", false);
  graphs.erase(graph);
  return release(Kind::graph, graph);
}
int cuLibraryLoadData(void** library, const void* code, int*, void**, unsigned, int*, void**,
                      unsigned) {
  const Entered entered("cuLibraryLoadData");
  if (entered.code != 0) return entered.code;
  const auto* text = static_cast<const char*>(code);
  if (*text == 0) return kInvalid;
  if (const int failed = fails("cuLibraryLoadData")) return failed;
  const int made = make(Kind::library, library);
  uintptr_t kernel = 0;
  if (made == 0 && std::sscanf(text, "kernel at %zu", &kernel) == 1)
    kernels[*library] = reinterpret_cast<const FakeKernel*>(kernel);
  return made;
}
int cuLibraryUnload(void* library) {
  const Entered entered("cuLibraryUnload", false);
  kernels.erase(library);
  shared_limits.erase(library);
  return release(Kind::library, library);
}
int cuLibraryGetKernel(void** kernel, void* library, const char*) {
  const Entered entered("cuLibraryGetKernel");
  if (entered.code != 0) return entered.code;
  return *kernel = library, 0;
}
int cuKernelSetAttribute(int attribute, int value, void* kernel, int) {
  const Entered entered("cuKernelSetAttribute");
  if (entered.code != 0) return entered.code;
  constexpr int kMaxDynamicSharedSizeBytes = 8;
  if (attribute != kMaxDynamicSharedSizeBytes || value > number("SINTER_FAKE_SHARED", kMaxShared))
    return kInvalid;
  shared_limits[kernel] = value;
  return 0;
}
int cuTensorMapEncodeTiled(void* map, int, unsigned rank, void*, const uint64_t* dims,
                           const uint64_t*, const uint32_t*, const uint32_t*, int, int, int, int) {
  const Entered entered("cuTensorMapEncodeTiled");
  if (entered.code != 0) return entered.code;
  if (std::count(dims, dims + rank, 0) > 0) return kInvalid;
  std::memset(map, 0, 128);
  return 0;
}
int cuLaunchKernelEx(const LaunchConfig* config, void* kernel, void** parameters, void**) {
  const Entered entered("cuLaunchKernelEx");
  if (entered.code != 0) return entered.code;
  if (const int code = fails("cuLaunchKernelEx")) return code;
  const LaunchConfig& c = *config;
  FakeLaunch launch = {
      {c.grid_x, c.grid_y, c.grid_z}, {c.block_x, c.block_y, c.block_z}, c.shared_bytes, 1, false};
  for (unsigned i = 0; i < c.attribute_count; ++i) {
    constexpr int kClusterDimension = 4, kProgrammaticStreamSerialization = 6;
    const LaunchAttribute& attribute = c.attributes[i];
    if (attribute.id == kClusterDimension && attribute.cluster[1] == 1 && attribute.cluster[2] == 1)
      launch.cluster = attribute.cluster[0];
    else if (attribute.id == kProgrammaticStreamSerialization)
      launch.overlaps = attribute.programmatic != 0;
    else
      return kInvalid;
  }
  const auto limit = shared_limits.find(kernel);
  const int shared_limit = limit == shared_limits.end() ? kUsualShared : limit->second;
  if (c.shared_bytes > static_cast<unsigned>(shared_limit)) return kInvalid;
  if (launch.cluster == 0 || c.grid_x % launch.cluster != 0) return kInvalid;
  const auto at = kernels.find(kernel);
  const FakeKernel* known = at == kernels.end() ? nullptr : at->second;
  std::vector<uint64_t> values(known ? known->parameters : 0);
  for (size_t i = 0; i < values.size(); ++i) std::memcpy(&values[i], parameters[i], 8);
  enqueue(c.stream, [=] {
    launches.push_back(launch);
    if (!known) return;
    known->run(*known, launch.grid[0], values.data());
    clock_ms += known->milliseconds;
  });
  return 0;
}

}  // extern "C"
