// Tests that need a CUDA device; without one they say so and pass.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include "runtime/cuda/driver.h"

int main(int argc, char** argv) {
  const auto devices = sinter::cuda_device_count();
  if (!devices || *devices == 0) {
    std::puts("skipped: no CUDA device");
    return 0;
  }
  return doctest::Context(argc, argv).run();
}
