#include "plan/tensor_map.h"

namespace sinter {

std::optional<TensorMapNumbers> numbers_of(const TensorMap& map,
                                           llvm::ArrayRef<int64_t> symbol_values) {
  TensorMapNumbers numbers;
  const auto evaluate = [&](const SymExpr& expr, int64_t& out) {
    const std::optional<int64_t> value = expr.evaluate(symbol_values);
    if (value) out = *value;
    return value.has_value();
  };
  numbers.dims.resize(map.dims.size());
  numbers.strides.resize(map.strides.size());
  if (!evaluate(map.offset, numbers.offset)) return std::nullopt;
  for (size_t i = 0; i < map.dims.size(); ++i)
    if (!evaluate(map.dims[i], numbers.dims[i])) return std::nullopt;
  for (size_t i = 0; i < map.strides.size(); ++i)
    if (!evaluate(map.strides[i], numbers.strides[i])) return std::nullopt;
  return numbers;
}

int64_t parameter_bytes(size_t plain, size_t tensor_maps) {
  const auto bytes = static_cast<int64_t>(8 * plain);
  if (tensor_maps == 0) return bytes;
  const int64_t aligned = (bytes + kTensorMapArgumentAlignment - 1) / kTensorMapArgumentAlignment *
                          kTensorMapArgumentAlignment;
  return aligned + kTensorMapBytes * static_cast<int64_t>(tensor_maps);
}

}  // namespace sinter
