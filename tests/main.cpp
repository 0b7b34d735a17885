#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

int main(int argc, char** argv) {
#if defined(__GLIBC__)
  // Tensors that are freed stay with the process: to map and clear their pages anew for each call
  // takes as long as to compute it.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);  // bytes
  mallopt(M_TRIM_THRESHOLD, -1);       // never
  mallopt(M_TOP_PAD, 64 << 20);
#endif
  return doctest::Context(argc, argv).run();
}
