// A CUDA driver for machines without one: a library that is loaded in the place of libcuda.so.1 by
// tests of what holds its handles. Device memory is the host's, copies are done at once, kernels
// and graphs compute nothing. A handle that is given back twice, or as something else, ends the
// program.
//
// SINTER_FAKE_DEVICES devices are there (default 1); SINTER_FAKE_BROKEN is the number of one whose
// context cannot be made.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

namespace {

enum class Kind { memory, pinned, stream, event, graph, executable, library };

constexpr int kOutOfMemory = 2, kInvalid = 1, kBroken = 999;
constexpr size_t kMemory = size_t{1} << 30;

std::map<uintptr_t, Kind> handles;
size_t most_pinned = 0;

int number(const char* variable, int usual) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : usual;
}

uintptr_t make(Kind kind, size_t bytes = 1) {
  constexpr size_t kAlignment = 256;
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const auto handle = reinterpret_cast<uintptr_t>(std::aligned_alloc(kAlignment, rounded));
  handles[handle] = kind;
  return handle;
}
template <typename Handle>
int make(Kind kind, Handle* handle) {
  *handle = reinterpret_cast<Handle>(make(kind));
  return 0;
}
int release(Kind kind, uintptr_t handle) {
  const auto at = handles.find(handle);
  if (at == handles.end() || at->second != kind) {
    std::fputs("fake driver: a handle is given back that is not there\n", stderr);
    std::abort();
  }
  handles.erase(at);
  std::free(reinterpret_cast<void*>(handle));
  return 0;
}
int release(Kind kind, void* handle) { return release(kind, reinterpret_cast<uintptr_t>(handle)); }
void* memory(uint64_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

extern "C" {

/// For tests: handles that are there, and the most bytes of one piece of pinned memory since the
/// last call.
size_t sinter_fake_handles() { return handles.size(); }
size_t sinter_fake_most_pinned() { return std::exchange(most_pinned, 0); }

int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
int cuGetErrorName(int, const char** name) { return *name = "FAKE_ERROR", 0; }
int cuGetErrorString(int, const char** text) { return *text = "made up", 0; }
int cuDeviceGetCount(int* count) { return *count = number("SINTER_FAKE_DEVICES", 1), 0; }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceGetName(char* name, int size, int device) {
  std::snprintf(name, static_cast<size_t>(size), "Fake GPU %d", device);
  return 0;
}
int cuDeviceGetAttribute(int* value, int, int) { return *value = 9, 0; }
int cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = kMemory, 0; }
int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = &handles;
  return device == number("SINTER_FAKE_BROKEN", -1) ? kBroken : 0;
}
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxSetCurrent(void*) { return 0; }
int cuMemGetInfo_v2(size_t* free, size_t* total) { return *free = *total = kMemory, 0; }
int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  if (bytes > kMemory) return kOutOfMemory;
  return *address = make(Kind::memory, bytes), 0;
}
int cuMemFree_v2(uint64_t address) { return release(Kind::memory, address); }
int cuMemHostAlloc(void** data, size_t bytes, unsigned) {
  most_pinned = std::max(most_pinned, bytes);
  return *data = memory(make(Kind::pinned, bytes)), 0;
}
int cuMemFreeHost(void* data) { return release(Kind::pinned, data); }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void*) {
  return std::memcpy(memory(to), from, bytes), 0;
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void*) {
  return std::memcpy(to, memory(from), bytes), 0;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void*) {
  return std::memcpy(memory(to), memory(from), bytes), 0;
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void*) {
  return std::memset(memory(to), value, bytes), 0;
}
int cuStreamCreate(void** stream, unsigned) { return make(Kind::stream, stream); }
int cuStreamDestroy_v2(void* stream) { return release(Kind::stream, stream); }
int cuStreamSynchronize(void*) { return 0; }
int cuStreamBeginCapture_v2(void*, int) { return 0; }
int cuStreamEndCapture(void*, void** graph) { return make(Kind::graph, graph); }
int cuEventCreate(void** event, unsigned) { return make(Kind::event, event); }
int cuEventDestroy_v2(void* event) { return release(Kind::event, event); }
int cuEventRecord(void*, void*) { return 0; }
int cuEventSynchronize(void*) { return 0; }
int cuEventQuery(void*) { return 0; }
int cuEventElapsedTime(float* milliseconds, void*, void*) { return *milliseconds = 2, 0; }
int cuGraphInstantiateWithFlags(void** executable, void*, unsigned long long) {
  return make(Kind::executable, executable);
}
int cuGraphLaunch(void*, void*) { return 0; }
int cuGraphExecDestroy(void* executable) { return release(Kind::executable, executable); }
int cuGraphDestroy(void* graph) { return release(Kind::graph, graph); }
int cuLibraryLoadData(void** library, const void* code, int*, void**, unsigned, int*, void**,
                      unsigned) {
  if (*static_cast<const char*>(code) == 0) return kInvalid;
  return make(Kind::library, library);
}
int cuLibraryUnload(void* library) { return release(Kind::library, library); }
int cuLibraryGetKernel(void** kernel, void* library, const char*) { return *kernel = library, 0; }
int cuKernelSetAttribute(int, int, void*, int) { return 0; }
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void*, void**, void**) {
  return 0;
}

}  // extern "C"
