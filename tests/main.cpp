#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

int main(int argc, char** argv) {
#if defined(__GLIBC__)
  // Tensors that are freed stay with the process: to map and clear their pages anew for each call
  // takes as long as to compute it.
  constexpr int kKept = 1 << 30;  // bytes
  mallopt(M_MMAP_THRESHOLD, kKept);
  mallopt(M_TRIM_THRESHOLD, kKept);
#endif
  return doctest::Context(argc, argv).run();
}
