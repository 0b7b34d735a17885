// For portable builds: what LLVM's archive takes from glibc 2.36, so that programs run with 2.35,
// the version of Ubuntu 22.04.
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" __attribute__((visibility("hidden"))) std::uint32_t arc4random() {
  std::uint32_t number = 0;
  if (getrandom(&number, sizeof(number), 0) != sizeof(number)) std::abort();
  return number;
}
