// Stand-in weights: values that depend only on (seed, tensor name, element index), the same bytes
// on every machine.
#pragma once

#include <map>
#include <string>

#include "ir/tensor_source.h"

namespace sinter {

/// Weights are near normal(0, 0.018), cut at 3.45 sigma; the weights of norms (name contains "norm"
/// or "ln_", ends in "weight" or "gamma") lie in [0.9375, 1.0625], so that a deep model stays
/// finite. f16 holds exactly the values that f32 does; bf16 rounds them to nearest even. Elements
/// of i32 and i1 are 0 or 1; of tensors ".codes" and ".scales" of a quantized weight, words of
/// random codes without NaN, and numbers near 2^-10.
class RandomTensorSource final : public TensorSource {
 public:
  using Types = std::map<std::string, TensorType, std::less<>>;

  /// All dims of `types` are constants.
  RandomTensorSource(uint64_t seed, Types types) : seed_(seed), types_(std::move(types)) {}

  std::optional<TensorType> find(std::string_view name) const override;
  Status read(std::string_view name, std::span<std::byte> out) const override;

 private:
  uint64_t seed_;
  Types types_;
};

}  // namespace sinter
