// Copies by tensor maps as the shim plays them: boxes, zeros outside of the tensor, the swizzle,
// and the barrier that counts their bytes.
#include <doctest/doctest.h>

#include <vector>

#include "kernels/library.h"
#include "shim/shim_interface.h"
#include "shim/shim_module.h"
#include "support/result.h"

namespace sinter::shim_tensor_map_test {
namespace {

constexpr const char* kMacros =
    "#define SINTER_HAS_WGMMA 1\n#define SINTER_HAS_BULK_COPY 1\n#define SINTER_HAS_ASYNC_COPY 1\n";

/// Copies one box, waits, and writes the shared memory out. COPY: the instruction. WAIT: the wait.
std::string text_of(std::string_view copy, std::string_view wait) {
  return fmt::format(R"(#include "kernels/isa/tensor_map.cuh"
using namespace sinter;
extern "C" __global__ void copy_box(const __grid_constant__ TensorMap map, unsigned short* out) {{
  __shared__ __align__(1024) unsigned short box[512];
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) {{
    mbarrier_init(cvta_to_shared(&barrier), 1);
    fence_mbarrier_init();
    for (int i = 0; i < 512; ++i) box[i] = 0xffff;
  }}
  __syncthreads();
  if (threadIdx.x == 0) {{
    mbarrier_arrive_expect_tx(cvta_to_shared(&barrier), 1024);
    {}
  }}
  {}
  for (int i = threadIdx.x; i < 512; i += 32) out[blockIdx.x * 512 + i] = box[i];
}}
)",
                     copy, wait);
}
constexpr const char* kWait = "mbarrier_try_wait_parity(cvta_to_shared(&barrier), 0);";

std::vector<uint16_t> run(const std::string& text, sinter_shim::TensorMap map) {
  const ShimModule module =
      value(ShimModule::compile(ShimSource{"copy_box", text}, kernel_library(), kMacros));
  std::vector<uint16_t> out(1024, 0xeeee);
  uint16_t* address = out.data();
  void* arguments[] = {&map, &address};
  const Status status = module.launch("copy_box", {{2, 1, 1}, {32, 1, 1}}, arguments);
  REQUIRE_MESSAGE(status.has_value(), (status ? "" : status.error().message()));
  return out;
}

/// Elements 0, 1, 2, ... of a matrix of 10 rows of 40.
std::vector<uint16_t> matrix() {
  std::vector<uint16_t> elements(400);
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<uint16_t>(i);
  return elements;
}

}  // namespace

TEST_CASE("a box of a matrix is swizzled, and zeros stand where it leaves the matrix") {
  const std::vector<uint16_t> elements = matrix();
  sinter_shim::TensorMap map{elements.data(), 2, 2, 64, {40, 10}, {1, 40}, {32, 16}};
  const auto out = run(
      text_of("cp_async_bulk_tensor_2d(cvta_to_shared(box), map, 16, 3, cvta_to_shared(&barrier));",
              kWait),
      map);
  for (int block = 0; block < 2; ++block)
    for (int row = 0; row < 16; ++row)
      for (int column = 0; column < 32; ++column) {
        // Chunks of 8 elements; rows of 64 bytes: bits 4 and 5 of an address with bits 7 and 8.
        const int at = (row * 64 + column * 2) ^ (row * 64 >> 3 & 0x30);
        const bool present = 3 + row < 10 && 16 + column < 40;
        const int wanted = present ? (3 + row) * 40 + 16 + column : 0;
        CHECK(out[static_cast<size_t>(block * 512 + at / 2)] == wanted);
      }
}

TEST_CASE("a box of four dimensions interleaves rows of two halves in groups of eight") {
  // 32 rows of 16: (column, 8 rows, 2 halves, groups of 8 rows), as a product of gate and up reads
  // its matrix.
  std::vector<uint16_t> elements(512);
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<uint16_t>(i);
  sinter_shim::TensorMap map{elements.data(), 4, 2, 0, {16, 8, 2, 2}, {1, 16, 16 * 16, 16 * 8},
                             {16, 8, 2, 2}};
  const auto out = run(text_of("cp_async_bulk_tensor_4d(cvta_to_shared(box), map, 0, 0, 0, 0, "
                               "cvta_to_shared(&barrier));",
                               kWait),
                       map);
  for (int row = 0; row < 32; ++row) {
    const int group = row / 16, half = row / 8 % 2, source = 16 * half + 8 * group + row % 8;
    CHECK(out[static_cast<size_t>(16 * row)] == 16 * source);
  }
}

TEST_CASE("without a wait a box is not there in every other block") {
  const std::vector<uint16_t> elements = matrix();
  sinter_shim::TensorMap map{elements.data(), 2, 2, 0, {40, 10}, {1, 40}, {32, 16}};
  const auto out = run(
      text_of("cp_async_bulk_tensor_2d(cvta_to_shared(box), map, 0, 0, cvta_to_shared(&barrier));",
              "__syncthreads();"),
      map);
  CHECK((out[1] == 0xffff) != (out[513] == 0xffff));
}

}  // namespace sinter::shim_tensor_map_test
