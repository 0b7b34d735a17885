// Kernels around a matvec compute what the host evaluator computes, bit for bit: their text runs on
// the CPU, where several tokens of 16-bit types have the stated order too.
#include <doctest/doctest.h>

#include "codegen/kernel_trials.h"

namespace sinter {
namespace {

/// Few multiprocessors, so that a block has several rows of the matrix and its runs differ in
/// length.
DeviceDescription device_of(const char* arch, int64_t multiprocessors) {
  DeviceDescription device = *find_device(arch);
  device.multiprocessors = multiprocessors;
  return device;
}

/// Every number of tokens that the kernel treats in its own way, and none.
const std::vector<std::vector<int64_t>> kTokens = {{0, 0, 0, 0, 1}, {0, 0, 0, 0, 2},
                                                   {0, 0, 0, 0, 3}, {0, 0, 0, 0, 5},
                                                   {0, 0, 0, 0, 8}, {0, 0, 0, 0, 0}};

/// The device with a form of its own for the group's product.
DeviceDescription with_ring(DeviceDescription device, const GroupText& group, DType dtype,
                            int64_t width, size_t turn) {
  const Graph graph = make_group(group, dtype, width);
  for (const Op& op : graph.ops()) {
    if (op.kind != OpKind::matvec) continue;
    const MatvecProduct product = matvec_product(graph, op, group_symbols());
    const auto forms = matvec_ring_candidates(product, device);
    REQUIRE(forms.size() > 1);
    device.rings[product.key()].ring = forms[1 + turn % (forms.size() - 1)];
  }
  REQUIRE(device.rings.size() == 1);
  return device;
}

}  // namespace

TEST_CASE("matvecs with and without neighbours, of every element type") {
  Trials trials;
  for (const GroupText& group : kMatvecGroups)
    for (DType dtype : kFloats) trials.add(group, dtype, 264, device_of("sm_90a", 3));
  run_trials(trials, kTokens);
}

TEST_CASE("matvecs of rows of one chunk, of whole pieces and of broken ones") {
  Trials trials;
  size_t turn = 0;
  for (const GroupText& group : kMatvecGroups)
    for (int64_t width : {8, 1024, 4360})
      trials.add(group, kFloats[turn++ % 3], width, device_of(width == 8 ? "sm_90a" : "sm_80", 2));
  run_trials(trials, {kTokens[0], kTokens[2]});
}

TEST_CASE("no form of the ring changes a bit") {
  Trials trials;
  size_t turn = 0;
  for (const GroupText& group : kMatvecGroups)
    for (int64_t width : {264, 2056}) {
      const DType dtype = kFloats[turn % 3];
      trials.add(group, dtype, width,
                 with_ring(device_of("sm_90a", 3), group, dtype, width, turn++));
    }
  run_trials(trials, {kTokens[0], kTokens[2], kTokens[4]});
}

}  // namespace sinter
