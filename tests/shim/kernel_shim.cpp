#include "shim/kernel_shim.h"

#include <llvm/ADT/STLExtras.h>

#include <cmath>
#include <cstring>
#include <string>

#include "ir/in_place.h"
#include "ir/op_roles.h"
#include "kernels/library.h"
#include "runtime/compare.h"
#include "runtime/evaluate/evaluate.h"
#include "shim/guarded_memory.h"

namespace sinter {
namespace {

Result<HostTensor> tensor_of(const TensorType& type, llvm::ArrayRef<int64_t> symbol_values) {
  std::vector<int64_t> dims;
  for (Dim dim : type.dims)
    dims.push_back(dim.is_constant() ? dim.constant() : symbol_values[dim.symbol().index]);
  return make_tensor(type.dtype, std::move(dims));
}

/// The input of `group` that holds the state which append `id` writes.
size_t appended_input(const Graph& group, ValueId id) {
  ValueId state = id;
  while (writes_state(group[state])) state = group[state].operands[0];
  for (size_t i = 0; i < group.inputs.size(); ++i)
    if (group.inputs[i] == state) return i;
  SINTER_CHECK(false, "{} appends to {}, which is no input", group[id].name, group[state].name);
}

sinter_shim::TensorMap tensor_map(const TensorMap& map, DType dtype, const void* input,
                                  llvm::ArrayRef<int64_t> symbol_values) {
  const auto numbers = numbers_of(map, symbol_values);
  SINTER_CHECK(numbers.has_value(), "a size of a tensor map exceeds 63 bits");
  const auto bytes = whole_bytes(dtype);
  sinter_shim::TensorMap result{};
  result.base = static_cast<const std::byte*>(input) + numbers->offset * bytes;
  result.rank = static_cast<int>(map.dims.size());
  result.element_bytes = static_cast<int>(bytes);
  result.swizzle = static_cast<int>(map.swizzle);
  for (size_t d = 0; d < map.dims.size(); ++d) {
    result.dims[d] = numbers->dims[d];
    result.strides[d] = d == 0 ? 1 : numbers->strides[d - 1];
    result.box[d] = static_cast<int>(map.box[d]);
  }
  return result;
}

const std::string kWarpgroups = "#define SINTER_HAS_MMA 1\n#define SINTER_HAS_WGMMA 1\n";

}  // namespace

Status KernelShim::prepare() { return ShimModule::prepare(kernel_library()); }

Result<KernelShim> KernelShim::compile(llvm::ArrayRef<const Kernel*> kernels,
                                       const std::string& prefix) {
  // Kernels with tensor maps run only on devices with products of warpgroups. Compiled for them,
  // kernels of other families would add on tensor cores too, in an order that the host does not
  // have.
  std::vector<ShimSource> with_maps, others;
  for (const Kernel* kernel : kernels)
    (prefix.empty() && !kernel->tensor_maps.empty() ? with_maps : others)
        .push_back({kernel->name, kernel->source});
  KernelShim shim;
  for (const auto& [sources, macros] : {std::pair(&with_maps, &kWarpgroups), {&others, &prefix}}) {
    if (sources->empty() && !kernels.empty()) continue;
    SINTER_LET(module, ShimModule::compile(*sources, kernel_library(), *macros));
    shim.modules_.push_back(std::move(module));
  }
  return shim;
}

Status KernelShim::launch(const Kernel& kernel, llvm::ArrayRef<int64_t> symbol_values,
                          llvm::ArrayRef<const void*> inputs, llvm::ArrayRef<void*> outputs,
                          ThreadOrder order) const {
  std::vector<const void*> pointers(inputs.begin(), inputs.end());
  pointers.insert(pointers.end(), outputs.begin(), outputs.end());
  std::vector<long long> symbols;
  for (SymbolId symbol : kernel.symbols) symbols.push_back(symbol_values[symbol.index]);
  std::vector<void*> arguments;
  for (const void*& pointer : pointers) arguments.push_back(&pointer);
  for (long long& symbol : symbols) arguments.push_back(&symbol);

  const auto launched = grid_of(kernel.launch, symbol_values);
  if (!launched) return fail("the number of blocks overflows");
  if (launched->blocks == 0) return {};
  std::vector<sinter_shim::TensorMap> maps;
  for (const TensorMap& map : kernel.tensor_maps)
    maps.push_back(tensor_map(map, kernel.group[kernel.group.inputs[map.input]].type.dtype,
                              inputs[map.input], symbol_values));
  for (sinter_shim::TensorMap& map : maps) arguments.push_back(&map);
  const Grid grid{{static_cast<unsigned>(launched->blocks), 1, 1},
                  {static_cast<unsigned>(kernel.launch.threads), 1, 1},
                  shared_bytes(kernel.launch, symbol_values).value_or(0),
                  static_cast<unsigned>(launched->cluster)};
  const auto module =
      llvm::find_if(modules_, [&](const ShimModule& one) { return one.has(kernel.name); });
  SINTER_CHECK(module != modules_.end(), "{}", kernel.name);
  return module->launch(kernel.name, grid, arguments, order);
}

Result<std::vector<HostTensor>> KernelShim::run(const Kernel& kernel,
                                                llvm::ArrayRef<int64_t> symbol_values,
                                                llvm::ArrayRef<const HostTensor*> inputs,
                                                ThreadOrder order,
                                                llvm::ArrayRef<InPlace> in_place) const {
  const Graph& group = kernel.group;
  std::vector<GuardedMemory> in, out;
  for (const HostTensor* input : inputs) {
    in.emplace_back(input->bytes.size(), kNanPoison);
    if (!input->bytes.empty())
      std::memcpy(in.back().data(), input->bytes.data(), input->bytes.size());
  }
  std::vector<HostTensor> results;
  std::vector<std::byte*> outputs;
  std::vector<bool> written(inputs.size(), false);
  out.reserve(group.outputs.size());
  for (size_t k = 0; k < group.outputs.size(); ++k) {
    const ValueId id = group.outputs[k];
    SINTER_LET(result, tensor_of(group[id].type, symbol_values));
    const auto pair = llvm::find_if(in_place, [&](const InPlace& p) { return p.output == k; });
    const std::optional<size_t> base = placed_input(group, k);
    if (writes_state(group[id]) || base || pair != in_place.end()) {
      const size_t input = base                     ? *base
                           : pair != in_place.end() ? pair->input
                                                    : appended_input(group, id);
      written[input] = true;
      outputs.push_back(in[input].data());
    } else {
      // Elements of a value that are not placed yet are zeros to the host.
      out.emplace_back(result.bytes.size(), kFinitePoison);
      if (places_part(group[id]) && !result.bytes.empty())
        std::memset(out.back().data(), 0, result.bytes.size());
      outputs.push_back(out.back().data());
    }
    results.push_back(std::move(result));
  }

  std::vector<const void*> in_pointers;
  for (const GuardedMemory& memory : in) in_pointers.push_back(memory.data());
  std::vector<void*> out_pointers(outputs.begin(), outputs.end());
  SINTER_TRY(launch(kernel, symbol_values, in_pointers, out_pointers, order));

  const auto check_guards = [&](llvm::ArrayRef<GuardedMemory> memories,
                                const char* what) -> Status {
    for (size_t i = 0; i < memories.size(); ++i)
      if (std::string damage = memories[i].damage(); !damage.empty())
        return fail(fmt::format("buffer of {} {} was overrun at {}", what, i, damage), kernel.name,
                    "", ExitCode::check_failed);
    return {};
  };
  SINTER_TRY(check_guards(in, "input"));
  SINTER_TRY(check_guards(out, "output"));
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!written[i] && !inputs[i]->bytes.empty() &&
        std::memcmp(in[i].data(), inputs[i]->bytes.data(), inputs[i]->bytes.size()) != 0)
      return fail(fmt::format("input {} was changed", i), kernel.name, "", ExitCode::check_failed);
  for (size_t i = 0; i < results.size(); ++i)
    if (!results[i].bytes.empty())
      std::memcpy(results[i].bytes.data(), outputs[i], results[i].bytes.size());
  return results;
}

namespace {

/// The operands of attention on tensor cores, and of its gradients, whose rows are multiplied with
/// the weight 0 of a token that does not see them, if another token of its block does; none: of
/// other ops.
llvm::ArrayRef<uint32_t> operands_beside_zeros(const Op& op) {
  static constexpr uint32_t kValues[] = {2}, kKeys[] = {1}, kQueries[] = {0}, kGrads[] = {5};
  if (order_of(op) == Order::tiled_attention) return kValues;
  if (op.kind == OpKind::attention_query_gradient) return kKeys;
  if (op.kind == OpKind::attention_key_gradient) return kQueries;
  if (op.kind == OpKind::attention_value_gradient) return kGrads;
  return {};
}

/// An infinity or NaN there makes NaN of the product, and the host, which knows no blocks, leaves
/// it out. So where they are not finite, the kernel may also give what the group makes of results
/// that are NaN everywhere: these results, none where all is finite.
Result<std::vector<HostTensor>> results_of_nan(const Graph& group, llvm::ArrayRef<Symbol> symbols,
                                               llvm::ArrayRef<int64_t> symbol_values,
                                               llvm::ArrayRef<const HostTensor*> inputs) {
  const auto is_finite = [&](ValueId operand) {
    const auto at = llvm::find(group.inputs, root_of(group, operand)) - group.inputs.begin();
    return llvm::all_of(to_doubles(*inputs[static_cast<size_t>(at)]),
                        [](double value) { return std::isfinite(value); });
  };
  Graph without = group;
  std::vector<HostTensor> nans;
  for (uint32_t i = 0; i < group.size(); ++i) {
    const Op& op = group[ValueId{i}];
    if (llvm::all_of(operands_beside_zeros(op),
                     [&](uint32_t operand) { return is_finite(op.operands[operand]); }))
      continue;
    SINTER_LET(nan, tensor_of(op.type, symbol_values));
    std::memset(nan.bytes.data(), 0xff, nan.bytes.size());
    nans.push_back(std::move(nan));
    without[ValueId{i}] = {OpKind::input, op.type, {}, {}, op.name};
    without.inputs.push_back(ValueId{i});
  }
  if (nans.empty()) return std::vector<HostTensor>();
  std::vector<const HostTensor*> all(inputs.begin(), inputs.end());
  for (const HostTensor& nan : nans) all.push_back(&nan);
  return evaluate(without, symbols, symbol_values, all);
}

/// Elements of `result` that equal `other`'s, or are NaN in both, become the elements of
/// `expected`.
void take_expected(const HostTensor& expected, const HostTensor& other, HostTensor& result) {
  const size_t bytes = whole_bytes(result.dtype);
  const std::vector<double> numbers = to_doubles(result), others = to_doubles(other);
  for (size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i] == others[i] || (std::isnan(numbers[i]) && std::isnan(others[i])))
      std::memcpy(result.bytes.data() + i * bytes, expected.bytes.data() + i * bytes, bytes);
}

}  // namespace

namespace {

/// Outputs that the kernel's text can write in the memory of an input, each by itself.
std::vector<InPlace> possible_in_place(const Kernel& kernel, llvm::ArrayRef<Symbol> symbols) {
  std::vector<InPlace> pairs;
  for (uint32_t output = 0; output < kernel.group.outputs.size(); ++output)
    for (uint32_t input = 0; input < kernel.group.inputs.size(); ++input) {
      const InPlace pair{output, input};
      if ((kernel.overlap.waits || llvm::is_contained(kernel.in_place, pair)) &&
          may_overwrite(kernel.group, output, input, symbols))
        pairs.push_back(pair);
    }
  return pairs;
}

Status compare_results(const Kernel& kernel, llvm::ArrayRef<HostTensor> expected,
                       llvm::ArrayRef<HostTensor> results, std::string_view how) {
  for (size_t i = 0; i < results.size(); ++i) {
    SINTER_LET(difference, compare_bits(expected[i], results[i]));
    if (difference)
      return fail(
          fmt::format("output {} (%{}), evaluated and from the kernel's text{}: {}", i,
                      kernel.group[kernel.group.outputs[i]].name, how, to_string(*difference)),
          kernel.name, "", ExitCode::check_failed);
  }
  return {};
}

}  // namespace

Status check_kernel(const KernelShim& shim, const Kernel& kernel, llvm::ArrayRef<Symbol> symbols,
                    llvm::ArrayRef<int64_t> symbol_values, llvm::ArrayRef<const HostTensor*> inputs,
                    llvm::ArrayRef<ThreadOrder> orders) {
  SINTER_LET(expected, evaluate(kernel.group, symbols, symbol_values, inputs));
  SINTER_LET(of_nan, results_of_nan(kernel.group, symbols, symbol_values, inputs));
  const auto compare = [&](std::vector<HostTensor> results, std::string_view how) {
    for (size_t i = 0; i < results.size() && !of_nan.empty(); ++i)
      take_expected(expected[i], of_nan[i], results[i]);
    return compare_results(kernel, expected, results, how);
  };
  for (ThreadOrder order : orders) {
    SINTER_LET(results, shim.run(kernel, symbol_values, inputs, order));
    SINTER_TRY(compare(std::move(results), ""));
  }
  for (const InPlace& pair : possible_in_place(kernel, symbols))
    for (ThreadOrder order : orders) {
      SINTER_LET(results, shim.run(kernel, symbol_values, inputs, order, pair));
      SINTER_TRY(compare(std::move(results), fmt::format(" with output {} in the place of input {}",
                                                         pair.output, pair.input)));
    }
  return {};
}

}  // namespace sinter
