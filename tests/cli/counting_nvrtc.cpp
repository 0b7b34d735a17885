// Stands in for NVRTC, and counts the compilations that run at the same time. Each waits until as
// many run as SINTER_TEST_THREADS says, or for ten seconds; the most is written to the file that
// SINTER_TEST_LOG names.
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>

namespace {

std::mutex mutex;
std::condition_variable changed;
int running = 0, most = 0;

}  // namespace

extern "C" {

int nvrtcCreateProgram(void** program, const char*, const char*, int, const char* const*,
                       const char* const*) {
  *program = new char;
  return 0;
}

int nvrtcDestroyProgram(void** program) {
  delete static_cast<char*>(*program);
  return 0;
}

int nvrtcCompileProgram(void*, int, const char* const*) {
  std::unique_lock lock(mutex);
  ++running;
  if (running > most) {
    most = running;
    std::ofstream(std::getenv("SINTER_TEST_LOG")) << most;
  }
  changed.notify_all();
  const int wanted = std::atoi(std::getenv("SINTER_TEST_THREADS"));
  changed.wait_for(lock, std::chrono::seconds(10), [&] { return most >= wanted; });
  --running;
  return 0;
}

int nvrtcGetCUBINSize(void*, size_t* size) {
  *size = 4;
  return 0;
}

int nvrtcGetCUBIN(void*, char* cubin) {
  std::memcpy(cubin, "code", 4);
  return 0;
}

int nvrtcGetProgramLogSize(void*, size_t* size) {
  *size = 1;
  return 0;
}

int nvrtcGetProgramLog(void*, char* log) {
  *log = 0;
  return 0;
}

const char* nvrtcGetErrorString(int) { return "none"; }

}  // extern "C"
