// Registers, shared memory and spills, as they stand in machine code.
#include "runtime/cuda/kernel_resources.h"

#include <doctest/doctest.h>

#include "runtime/cuda/nvrtc.h"
#include "support/nvrtc.h"

namespace sinter::kernel_resources_test {
namespace {

// 80 numbers that live at the same time in blocks of 1024 threads, two on a multiprocessor: a
// thread has 32 registers, and the rest goes to memory.
constexpr const char* kText = R"(
extern "C" __global__ void __launch_bounds__(1024, 2) spilling(float* p, int n) {
  float a[80];
#pragma unroll
  for (int i = 0; i < 80; ++i) a[i] = p[i * n + threadIdx.x];
#pragma unroll
  for (int r = 0; r < 3; ++r) {
#pragma unroll
    for (int i = 0; i < 80; ++i) a[i] = a[i] * a[(i * 7 + r) % 80] + a[(i * 3) % 80];
  }
  __shared__ float s[100];
  s[threadIdx.x % 100] = a[3];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 80; ++i) p[i * n + threadIdx.x] = a[i] + s[i];
}
extern "C" __global__ void small(float* p) { p[threadIdx.x] = 1.0f; }
)";

TEST_CASE("a kernel's registers, shared memory and spills" * doctest::test_suite("nvrtc")) {
  const NvrtcFile* nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  for (const char* arch : {"sm_80", "sm_90a"}) {
    CAPTURE(arch);
    const auto cubin = compile_kernel(*nvrtc, {"spilling", kText}, {}, arch);
    REQUIRE(cubin);
    const auto spilling = kernel_resources(cubin->bytes, "spilling");
    REQUIRE(spilling);
    CHECK(spilling->registers == 32);
    CHECK(spilling->shared_bytes == 400);
    CHECK(spilling->spill_bytes > 80);
    CHECK(spilling->parameter_bytes == 12);
    CHECK(spilling->most_threads == 1024);
    const auto small = kernel_resources(cubin->bytes, "small");
    REQUIRE(small);
    CHECK(small->registers > 0);
    CHECK(small->registers < 20);
    CHECK(small->shared_bytes == 0);
    CHECK(small->spill_bytes == 0);
    CHECK(small->parameter_bytes == 8);
    CHECK(small->most_threads == 0);
    CHECK_FALSE(kernel_resources(cubin->bytes, "large"));
  }
}

TEST_CASE("a cubin that is cut or changed anywhere is read or refused" *
          doctest::test_suite("nvrtc")) {
  const NvrtcFile* nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  const auto cubin = compile_kernel(*nvrtc, {"small", kText}, {}, "sm_80");
  REQUIRE(cubin);
  const std::string& bytes = cubin->bytes;
  for (size_t size = 0; size < bytes.size(); size += 7)
    kernel_resources(std::string_view(bytes).substr(0, size), "small");
  for (size_t at = 0; at < bytes.size(); at += 3) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0xff);
    kernel_resources(changed, "small");
  }
}

TEST_CASE("what is no cubin tells nothing") {
  CHECK_FALSE(kernel_resources("", "k"));
  CHECK_FALSE(
      kernel_resources("\x7f"
                       "ELF",
                       "k"));
  CHECK_FALSE(kernel_resources(std::string(4096, 'x'), "k"));
}

}  // namespace
}  // namespace sinter::kernel_resources_test
