#include "runtime/eval_case.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "ir/scalar_math.h"
#include "ir/text.h"

namespace sinter {

HostTensor tensor(DType dtype, std::vector<int64_t> dims, const std::vector<double>& values) {
  Result<HostTensor> made = make_tensor(dtype, std::move(dims));
  REQUIRE(made.has_value());
  REQUIRE(made->volume() == static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    switch (dtype) {
      case DType::f32:
        made->data<float>()[i] = static_cast<float>(values[i]);
        break;
      case DType::f16:
        made->data<uint16_t>()[i] = math::double_to_f16(values[i]);
        break;
      case DType::bf16:
        made->data<uint16_t>()[i] = math::double_to_bf16(values[i]);
        break;
      case DType::i32:
        made->data<int32_t>()[i] = static_cast<int32_t>(values[i]);
        break;
      case DType::i64:
        made->data<int64_t>()[i] = static_cast<int64_t>(values[i]);
        break;
      case DType::i1:
        made->data<uint8_t>()[i] = values[i] != 0;
        break;
    }
  }
  return std::move(*made);
}

HostTensor random_tensor(DType dtype, std::vector<int64_t> dims, double low, double high,
                         uint64_t seed) {
  int64_t count = 1;
  for (int64_t extent : dims) count *= extent;
  std::mt19937_64 random(seed);
  std::vector<double> values(static_cast<size_t>(count));
  for (double& value : values) {
    value = low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
    if (!is_float(dtype)) value = std::floor(value);
  }
  return tensor(dtype, std::move(dims), values);
}

std::vector<double> values_of(const HostTensor& tensor) {
  std::vector<double> values(static_cast<size_t>(tensor.volume()));
  for (size_t i = 0; i < values.size(); ++i) {
    switch (tensor.dtype) {
      case DType::f32:
        values[i] = tensor.data<float>()[i];
        break;
      case DType::f16:
        values[i] = math::f16_to_float(tensor.data<uint16_t>()[i]);
        break;
      case DType::bf16:
        values[i] = math::bf16_to_float(tensor.data<uint16_t>()[i]);
        break;
      case DType::i32:
        values[i] = tensor.data<int32_t>()[i];
        break;
      case DType::i64:
        values[i] = static_cast<double>(tensor.data<int64_t>()[i]);
        break;
      case DType::i1:
        values[i] = tensor.data<uint8_t>()[i];
        break;
    }
  }
  return values;
}

double ulp(DType dtype, double x) {
  const int digits = dtype == DType::f32 ? 24 : dtype == DType::f16 ? 11 : 8;
  const int least = dtype == DType::f32 ? -149 : dtype == DType::f16 ? -24 : -133;
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::ldexp(1.0, x == 0 ? least : std::max(exponent - digits, least));
}

Module module_of(std::string_view parameters, std::string_view ops, std::string_view results,
                 std::string_view states) {
  const std::string text = fmt::format(
      "module @m {{\n  symbol N in [0, 4096]\n  symbol M in [0, 4096]\n"
      "{}\n  entry @e({}) -> ({}) {{\n{}\n  }}\n}}\n",
      states, parameters, results, ops);
  Result<Module> module = parse_module(text, "test.sir");
  REQUIRE_MESSAGE(module.has_value(), (module ? std::string() : module.error().message()));
  Graph& graph = module->entries[0].graph;
  for (uint32_t i = 0; i < graph.size(); ++i)
    if (graph.ops()[i].kind == OpKind::state) graph.inputs.push_back(ValueId{i});
  return std::move(*module);
}

Result<std::vector<HostTensor>> try_evaluate(const Module& module,
                                             const std::vector<HostTensor>& inputs,
                                             std::vector<int64_t> symbols,
                                             const EvalOptions& options) {
  return evaluate(module.entries[0].graph, module.symbols, symbols, addresses_of(inputs), options);
}

HostTensor evaluated(const Module& module, const std::vector<HostTensor>& inputs,
                     std::vector<int64_t> symbols, const EvalOptions& options) {
  auto results = try_evaluate(module, inputs, std::move(symbols), options);
  REQUIRE_MESSAGE(results.has_value(), (results ? std::string() : results.error().message()));
  return std::move(results->front());
}

std::string eval_error(const Module& module, const std::vector<HostTensor>& inputs,
                       std::vector<int64_t> symbols, const EvalOptions& options) {
  const auto results = try_evaluate(module, inputs, std::move(symbols), options);
  REQUIRE_FALSE(results.has_value());
  return results.error().message();
}

}  // namespace sinter
