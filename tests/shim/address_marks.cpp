#include "shim/address_marks.h"

#include <dlfcn.h>

namespace sinter {
namespace {

/// Null where the library is not in the process.
template <typename Function>
Function find(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

using Mark = void (*)(const volatile void*, size_t);

}  // namespace

void poison(const void* address, size_t bytes) {
  static const Mark mark = find<Mark>("__asan_poison_memory_region");
  if (mark) mark(address, bytes);
}

void unpoison(const void* address, size_t bytes) {
  static const Mark mark = find<Mark>("__asan_unpoison_memory_region");
  if (mark) mark(address, bytes);
}

bool is_poisoned(const void* address, size_t bytes) {
  using FirstPoisoned = void* (*)(void*, size_t);
  static const auto first = find<FirstPoisoned>("__asan_region_is_poisoned");
  return first && first(const_cast<void*>(address), bytes);
}

}  // namespace sinter
