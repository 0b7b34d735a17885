// Every kind of emitted kernel compiles for real devices, with the contract's flags.
#include <doctest/doctest.h>

#include <deque>

#include "codegen/groups.h"
#include "codegen/lowering/emit.h"
#include "kernels/gemv/schedule.h"
#include "runtime/cuda/compared_orders.h"
#include "support/nvrtc.h"

namespace sinter::nvrtc_kernels_test {

TEST_CASE("attention on tensor cores compiles for every device that has them") {
  const NvrtcFile* nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  for (const char* arch : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"}) {
    std::deque<Kernel> kernels;
    std::vector<KernelSource> sources;
    // All widths for one device of each form, the types in turn; for the others the largest tiles.
    const bool is_wgmma = std::string_view(arch) == "sm_90a";
    const bool each = is_wgmma || std::string_view(arch) == "sm_80";
    const int64_t widths[] = {64, 80, 96, 128, 192, 256};
    for (size_t i = 0; i < std::size(widths); ++i) {
      if (!each && widths[i] < 256) continue;
      const DType dtype = (i % 2 == 0) == is_wgmma ? DType::f16 : DType::bf16;
      auto kernel = emit_kernel(make_group(kAttentionGroups[0], dtype, widths[i]), 0,
                                group_symbols(), *find_device(arch));
      REQUIRE_MESSAGE(kernel.has_value(), (kernel ? "" : kernel.error().message()));
      kernels.push_back(std::move(*kernel));
      sources.push_back({kernels.back().name, kernels.back().source});
    }
    const Status compiled = compile_or_find(*nvrtc, sources, arch);
    CHECK_MESSAGE(compiled.has_value(), (compiled ? "" : compiled.error().what));
  }
}

TEST_CASE("the comparison of orders of tensor cores compiles") {
  const NvrtcFile* nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  const Status compiled = compile_or_find(*nvrtc, compared_orders_kernel(), "sm_90a");
  CHECK_MESSAGE(compiled.has_value(), (compiled ? "" : compiled.error().what));
}

TEST_CASE("emitted kernels compile") {
  const NvrtcFile* nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  // Kernels that do not depend on the device have one type or size on each of the two.
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const size_t turn = std::string_view(arch) == "sm_90a" ? 1 : 0;
    std::deque<Kernel> kernels;
    std::vector<KernelSource> sources;
    DeviceDescription device = *find_device(arch);
    TunedForms forms;
    const auto add = [&](const GroupText& text, DType dtype, int64_t width) {
      auto kernel = emit_kernel(make_group(text, dtype, width), text.parts(), group_symbols(),
                                device, {}, forms);
      REQUIRE_MESSAGE(kernel.has_value(), (kernel ? "" : kernel.error().message()));
      kernels.push_back(std::move(*kernel));
      sources.push_back({kernels.back().name, kernels.back().source});
    };
    for (size_t i = 0; i < kRowGroups.size(); ++i) {
      const bool is_even = (i + turn) % 2 == 0;
      add(kRowGroups[i], is_even ? DType::f16 : DType::bf16, is_even ? 4096 : 129);
    }
    for (const GroupText& text : kFixedGroups) add(text, DType::bf16, 0);
    for (const GroupText& text : kCheckedGroups) add(text, DType::f16, 0);
    for (const GroupText& text : kColumnGroups) add(text, DType::bf16, 4096);
    add(kColumnGroups[2], DType::f32, 100);
    for (const GroupText& text : kRunGroups) add(text, DType::bf16, 768);
    for (const GroupText& text : kPartGroups) add(text, DType::f16, 1000);
    constexpr DType types[] = {DType::f32, DType::f16, DType::bf16};
    for (size_t i = 0; i < kClosedGroups.size(); ++i)
      add(kClosedGroups[i], types[(i + turn) % std::size(types)], 0);
    // Attention takes long to compile: each group for one of the devices; played kernels have both
    // forms of each (tiled_attention_kernels, attention_backward_kernels).
    for (const auto* groups : {&kAttentionGroups, &kSequenceGroups, &kGradientGroups})
      for (size_t i = turn; i < groups->size(); i += 2)
        add((*groups)[i], i / 2 % 2 == 0 ? DType::f16 : DType::bf16, 64);
    // Gemvs take long to compile: one with everything around it for each type, and the plain one.
    for (DType dtype : {DType::f32, DType::f16, DType::bf16}) add(kGemvGroups[4], dtype, 1024);
    add(kGemvGroups[0], DType::bf16, 4096);
    add(kGemvGroups[6], DType::f16, 4096);
    // Fewer warps, and another depth than the kernels' usual one.
    for (const DType dtype : {DType::f32, DType::f16}) {
      const Graph graph = make_group(kGemvGroups[0], dtype, 4096);
      for (const Op& op : graph.ops())
        if (order_of(op) == Order::gemv) {
          const GemvProduct product = gemv_product(graph, op, group_symbols());
          const auto candidates = gemv_form_candidates(product, device);
          if (!candidates.empty()) forms["gemv"][product.key()] = to_form(candidates.back());
        }
      add(kGemvGroups[0], dtype, 4096);
    }
    add(kSampleGroup, DType::f16, 128256);
    forms.clear();
    device.max_threads_per_block = 64;
    device.registers_per_block = 0;
    add(kRowGroups[0], DType::f32, 4096);
    const Status compiled = compile_or_find(*nvrtc, sources, arch);
    CHECK_MESSAGE(compiled.has_value(), (compiled ? "" : compiled.error().what));
  }
}

// A product of few tokens for each set of forms, and rows that are no whole panels.
TEST_CASE("products on tensor cores compile") {
  const NvrtcFile* nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  std::deque<Kernel> kernels;
  std::vector<KernelSource> sources;
  for (const auto& [tokens, rows, length] : {std::tuple("N", 4096, 4096),
                                             {"F", 512, 2048},
                                             {"F", 4096, 88},
                                             {"F", 12288, 4096},
                                             {"F", 16384, 2048},
                                             {"F", 22016, 4096},
                                             {"16", 4096, 4096}}) {
    const std::string text = fmt::format(
        "graph(%x: DTYPE[{0}, {2}], %w: DTYPE[{1}, {2}], %r: DTYPE[{0}, {1}]) -> (%y) {{\n"
        "  %p = linear %x, %w {{order = tiled_linear}} : DTYPE[{0}, {1}]\n  %y = add %p, %r : "
        "DTYPE[{0}, {1}]\n}}",
        tokens, rows, length);
    const GroupText group{"product", 1, text.c_str()};
    auto kernel = emit_kernel(make_group(group, DType::bf16, 0), group.parts(), group_symbols(),
                              *find_device("sm_90a"));
    REQUIRE_MESSAGE(kernel.has_value(), (kernel ? "" : kernel.error().message()));
    kernels.push_back(std::move(*kernel));
    sources.push_back({kernels.back().name, kernels.back().source});
  }
  const Status compiled = compile_or_find(*nvrtc, sources, "sm_90a");
  CHECK_MESSAGE(compiled.has_value(), (compiled ? "" : compiled.error().what));
}

}  // namespace sinter::nvrtc_kernels_test
