// Emitted kernels compute what the host evaluator computes, bit for bit: over element types,
// widths, forms (on chip and looped) and numbers of threads. The kernel text runs on the CPU.
#include <doctest/doctest.h>

#include <deque>

#include "codegen/emit.h"
#include "codegen/groups.h"
#include "ir/scalar_math.h"
#include "runtime/random_inputs.h"
#include "shim/kernel_shim.h"

namespace sinter {
namespace {

constexpr DType kFloats[] = {DType::f32, DType::f16, DType::bf16};

/// Devices that make the schedule choose its different forms.
std::vector<DeviceDescription> devices() {
  const DeviceDescription whole = *find_device("sm_90a");
  DeviceDescription looped = whole, narrow = whole, narrow_looped = whole;
  looped.registers_per_block = 0;
  narrow.max_threads_per_block = 64;
  narrow_looped.max_threads_per_block = 32;
  narrow_looped.registers_per_block = 0;
  return {whole, looped, narrow, narrow_looped};
}

/// Kernels with the rows that they are tried on.
struct Trials {
  std::deque<Kernel> kernels;
  std::vector<std::string> names;

  void add(const GroupText& group, DType dtype, int64_t width, const DeviceDescription& device) {
    auto kernel =
        emit_kernel(make_group(group, dtype, width), group.prefix_rank, group_symbols(), device);
    REQUIRE_MESSAGE(kernel.has_value(),
                    (std::string(group.name) + ": " + (kernel ? "" : kernel.error().message())));
    kernels.push_back(std::move(*kernel));
    names.push_back(fmt::format("{} {} width {} ({} threads, {} registers)", group.name,
                                to_string(dtype), width, device.max_threads_per_block,
                                device.registers_per_block));
  }
};

/// Zeros of both signs, infinities, NaN and subnormals among a tensor's elements.
void sprinkle(HostTensor& tensor, size_t seed) {
  constexpr double kSpecial[] = {-0.0, 0.0, INFINITY, -INFINITY, NAN, 1e-40, -6e-8, 65504, 3e38};
  const auto count = static_cast<size_t>(tensor.volume());
  for (size_t i = seed % 11, k = seed; i < count; i += 11 + i % 3, ++k) {
    const double value = kSpecial[k % std::size(kSpecial)];
    if (tensor.dtype == DType::f32) tensor.data<float>()[i] = math::to_float_sticky(value);
    if (tensor.dtype == DType::f16) tensor.data<uint16_t>()[i] = math::double_to_f16(value);
    if (tensor.dtype == DType::bf16) tensor.data<uint16_t>()[i] = math::double_to_bf16(value);
  }
}

void run(const Trials& trials, llvm::ArrayRef<std::vector<int64_t>> symbol_values) {
  std::vector<const Kernel*> pointers;
  for (const Kernel& kernel : trials.kernels) pointers.push_back(&kernel);
  const auto shim = KernelShim::compile(pointers);
  REQUIRE_MESSAGE(shim.has_value(), (shim ? "" : shim.error().what));
  for (size_t k = 0; k < trials.kernels.size(); ++k) {
    const Kernel& kernel = trials.kernels[k];
    for (const auto& values : symbol_values) {
      auto inputs = random_inputs(kernel.group, group_symbols(), values, k + 1);
      REQUIRE_MESSAGE(inputs.has_value(), (inputs ? "" : inputs.error().message()));
      for (const bool special : {false, true}) {
        std::vector<const HostTensor*> tensors;
        for (size_t i = 0; i < inputs->size(); ++i) {
          if (special) sprinkle((*inputs)[i], k + i);
          tensors.push_back(&(*inputs)[i]);
        }
        const Status status = check_kernel(*shim, kernel, group_symbols(), values, tensors);
        CHECK_MESSAGE(status.has_value(),
                      (trials.names[k] + ", N = " + std::to_string(values[0]) +
                       (special ? ", special values: " : ": ") +
                       (status ? "" : status.error().message() + "\n" + kernel.source)));
      }
    }
  }
}

}  // namespace

TEST_CASE("rows of every width, on chip and looped, by many threads and few") {
  constexpr int64_t kWidths[] = {1, 3, 7, 8, 100, 127, 129, 1024, 4095};
  Trials trials;
  size_t turn = 0;
  for (const GroupText& group : kRowGroups)
    for (int64_t width : kWidths)
      for (const DeviceDescription& device : devices())
        trials.add(group, kFloats[turn++ % 3], width, device);
  run(trials, {{3, 5, 0, 0}});
}

TEST_CASE("rows longer than 1024 lanes") {
  Trials trials;
  for (const DeviceDescription& device : devices()) {
    trials.add(kRowGroups[0], DType::f16, 9000, device);
    trials.add(kRowGroups[1], DType::f32, 16384, device);
    trials.add(kRowGroups[2], DType::bf16, 12288, device);
  }
  run(trials, {{2, 0, 0, 0}});
}

TEST_CASE("groups of views, gathers, appends, parts and several results") {
  Trials trials;
  const std::vector<DeviceDescription> all = devices();
  for (const GroupText& group : kFixedGroups)
    for (size_t d = 0; d < all.size(); ++d) trials.add(group, kFloats[d % 3], 0, all[d]);
  run(trials, {{5, 3, 21, 16}, {1, 1, 300, 1024}, {0, 0, 0, 0}, {37, 2, 1, 8}});
}

TEST_CASE("every element type") {
  Trials trials;
  for (const GroupText& group : kFixedGroups)
    for (DType dtype : kFloats) trials.add(group, dtype, 0, devices()[0]);
  run(trials, {{7, 3, 40, 24}});
}

}  // namespace sinter
