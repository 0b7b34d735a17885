// Stands before glibc's allocator: every function of it that gives or takes memory is here.
#include "support/allocations.h"

#include <malloc.h>

#include <atomic>
#include <cerrno>

#if defined(__SANITIZE_ADDRESS__) || !defined(__GLIBC__)
namespace sinter::test {
bool allocations_are_counted() { return false; }
void reset_peak() {}
size_t peak_bytes() { return 0; }
size_t allocations() { return 0; }
}  // namespace sinter::test
#else

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
}

namespace {

std::atomic<size_t> held{0}, most{0}, count{0};
size_t start = 0;

void* gained(void* memory) {
  if (!memory) return memory;
  ++count;
  const size_t now = held.fetch_add(malloc_usable_size(memory)) + malloc_usable_size(memory);
  size_t seen = most.load();
  while (now > seen && !most.compare_exchange_weak(seen, now)) {
  }
  return memory;
}

void lost(void* memory) {
  if (memory) held.fetch_sub(malloc_usable_size(memory));
}

}  // namespace

extern "C" {
void* malloc(size_t size) { return gained(__libc_malloc(size)); }
void* calloc(size_t count, size_t size) { return gained(__libc_calloc(count, size)); }
void free(void* memory) {
  lost(memory);
  __libc_free(memory);
}
void* realloc(void* memory, size_t size) {
  lost(memory);
  void* moved = __libc_realloc(memory, size);
  if (!moved && size > 0) gained(memory);
  return gained(moved);
}
void* memalign(size_t alignment, size_t size) { return gained(__libc_memalign(alignment, size)); }
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** result, size_t alignment, size_t size) {
  void* memory = memalign(alignment, size);
  if (!memory) return ENOMEM;
  *result = memory;
  return 0;
}
}

namespace sinter::test {
bool allocations_are_counted() { return true; }
void reset_peak() {
  most = start = held;
  count = 0;
}
size_t peak_bytes() { return most - start; }
size_t allocations() { return count; }
}  // namespace sinter::test
#endif
