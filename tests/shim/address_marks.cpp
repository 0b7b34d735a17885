#include "shim/address_marks.h"

#include <dlfcn.h>

namespace sinter {
namespace {

using Mark = void (*)(const volatile void*, size_t);

/// Null where the library is not in the process.
Mark find(const char* name) { return reinterpret_cast<Mark>(dlsym(RTLD_DEFAULT, name)); }

}  // namespace

void poison(const void* address, size_t bytes) {
  static const Mark mark = find("__asan_poison_memory_region");
  if (mark) mark(address, bytes);
}

void unpoison(const void* address, size_t bytes) {
  static const Mark mark = find("__asan_unpoison_memory_region");
  if (mark) mark(address, bytes);
}

}  // namespace sinter
