#include "codegen/kernel_trials.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>

#include "ir/in_place.h"
#include "ir/scalar_math.h"
#include "runtime/random_inputs.h"
#include "shim/kernel_shim.h"

namespace sinter {
namespace {

/// Zeros of both signs, infinities, NaN and subnormals among a tensor's elements; of i64 numbers of
/// every size.
void sprinkle(HostTensor& tensor, size_t seed) {
  constexpr double kSpecial[] = {-0.0, 0.0, INFINITY, -INFINITY, NAN, 1e-40, -6e-8, 65504, 3e38};
  constexpr int64_t kLong[] = {INT64_MIN,
                               INT64_MAX,
                               -1,
                               0,
                               int64_t{1} << 31,
                               -(int64_t{1} << 31) - 1,
                               (int64_t{1} << 40) + 1,
                               -3,
                               int64_t{1} << 62};
  const auto count = static_cast<size_t>(tensor.volume());
  for (size_t i = seed % 11, k = seed; i < count; i += 11 + i % 3, ++k) {
    const double value = kSpecial[k % std::size(kSpecial)];
    if (tensor.dtype == DType::i64)  // large and negative ones, and near the ends of i32
      tensor.data<int64_t>()[i] = kLong[k % std::size(kLong)];
    if (tensor.dtype == DType::f32) tensor.data<float>()[i] = math::to_float_sticky(value);
    if (tensor.dtype == DType::f16) tensor.data<uint16_t>()[i] = math::double_to_f16(value);
    if (tensor.dtype == DType::bf16) tensor.data<uint16_t>()[i] = math::double_to_bf16(value);
  }
}

std::string macro_text(const Capabilities& has) {
  std::string text;
  for (const std::string& macro : kernel_macros(has)) text += "#define " + macro + " 1\n";
  return text;
}

/// The kernel; or, where the number of items decides whether it has clusters, with and without.
std::vector<Kernel> ways_to_launch(const Kernel& kernel) {
  std::vector<Kernel> ways{kernel};
  if (kernel.launch.items_without_clusters == 0) return ways;
  ways[0].launch.items_without_clusters = 0;
  ways.push_back(kernel);
  ways[1].launch.cluster = 1;
  return ways;
}

/// For each output the first input whose memory it may take.
std::vector<InPlace> outputs_in_place(const Graph& group) {
  std::vector<InPlace> pairs;
  for (uint32_t output = 0; output < group.outputs.size(); ++output)
    for (uint32_t input = 0; input < group.inputs.size(); ++input) {
      const bool is_taken = llvm::any_of(
          pairs, [&](const InPlace& p) { return p.output == output || p.input == input; });
      if (!is_taken && may_overwrite(group, output, input, group_symbols()))
        pairs.push_back({output, input});
    }
  return pairs;
}

}  // namespace

int number_from(const char* variable, int usual) {
  const char* given = std::getenv(variable);
  return given ? std::atoi(given) : usual;
}

void Trials::add(const GroupText& group, DType dtype, int64_t width,
                 const DeviceDescription& device, const TunedForms& forms) {
  const Graph graph = make_group(group, dtype, width);
  auto kernel = emit_kernel(graph, group.parts(), group_symbols(), device, {}, forms,
                            outputs_in_place(graph));
  REQUIRE_MESSAGE(kernel.has_value(),
                  (std::string(group.name) + ": " + (kernel ? "" : kernel.error().message())));
  kernels.push_back(std::move(*kernel));
  names.push_back(fmt::format("{} {} width {} ({} threads, {} registers)", group.name,
                              to_string(dtype), width, device.max_threads_per_block,
                              device.registers_per_block));
}

void run_trials(const Trials& trials, llvm::ArrayRef<std::vector<int64_t>> symbol_values,
                const InputEditor& edit) {
  std::vector<const Kernel*> pointers;
  for (const Kernel& kernel : trials.kernels) pointers.push_back(&kernel);
  const auto shim = KernelShim::compile(pointers, macro_text(trials.played));
  REQUIRE_MESSAGE(shim.has_value(), (shim ? "" : shim.error().what));
  size_t tried = 0;
  for (size_t k = 0; k < trials.kernels.size(); ++k) {
    const Kernel& kernel = trials.kernels[k];
    for (size_t row = 0; row < symbol_values.size(); ++row) {
      std::vector<int64_t> values = symbol_values[row];
      values.resize(group_symbols().size());
      auto inputs = random_inputs(kernel.group, group_symbols(), values, k + 1);
      REQUIRE_MESSAGE(inputs.has_value(), (inputs ? "" : inputs.error().message()));
      if (edit) edit(kernel, values, *inputs);
      for (const bool special : {false, true}) {
        if (special && !trials.special_values) continue;
        std::vector<const HostTensor*> tensors;
        for (size_t i = 0; i < inputs->size(); ++i) {
          if (special) sprinkle((*inputs)[i], k + i);
          tensors.push_back(&(*inputs)[i]);
        }
        // A race shows whatever the values and sizes are: the others are tried in one order, each
        // in turn.
        const ThreadOrder turn[] = {kThreadOrders[tried++ % std::size(kThreadOrders)]};
        for (const Kernel& launched : ways_to_launch(kernel)) {
          const bool one_order = special || row > 0 || !trials.every_order;
          const Status status =
              check_kernel(*shim, launched, group_symbols(), values, tensors,
                           one_order ? llvm::ArrayRef(turn) : llvm::ArrayRef(kThreadOrders));
          CHECK_MESSAGE(
              status.has_value(),
              (trials.names[k] + fmt::format(", clusters of {}", launched.launch.cluster) +
               fmt::format(", symbols {}", fmt::join(values, ", ")) +
               (special ? ", special values: " : ": ") +
               (status ? "" : status.error().message() + "\n" + kernel.source)));
        }
      }
    }
  }
}

}  // namespace sinter
