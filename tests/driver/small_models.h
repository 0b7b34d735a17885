// Small language models ready to run on the CPU.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "driver/generate/decoder.h"
#include "driver/ready_plan.h"
#include "support/result.h"

namespace sinter {

inline const std::vector<std::string> kGoldenModels = {"gpt2", "llama", "llama3_gqa_scaled_rope",
                                                       "gpt_neox_parallel", "gpt_neox_sequential"};

inline Model load_golden(const std::string& name, DType dtype,
                         std::optional<StreamingCache> streaming = {}) {
  return value(load_model(SINTER_TESTS_DIR "/golden/" + name,
                          {.dtype = dtype, .random_weights = {}, .streaming = streaming}));
}

/// Tensors of another source, one element of one of them replaced.
class ReplacedElement final : public TensorSource {
 public:
  ReplacedElement(std::shared_ptr<const TensorSource> source, std::string tensor, size_t index,
                  float value)
      : source_(std::move(source)), tensor_(std::move(tensor)), index_(index), value_(value) {}
  std::optional<TensorType> find(std::string_view name) const override {
    return source_->find(name);
  }
  Status read(std::string_view name, std::span<std::byte> out) const override {
    SINTER_TRY(source_->read(name, out));
    if (name == tensor_)  // of float32
      std::memcpy(out.data() + index_ * sizeof(float), &value_, sizeof(float));
    return {};
  }

 private:
  std::shared_ptr<const TensorSource> source_;
  std::string tensor_;
  size_t index_;
  float value_;
};

/// The golden Llama in which the embedding of one token has a NaN; `tests`: the folder of the
/// tests.
inline Model load_with_nan(int32_t token, const std::string& tests = SINTER_TESTS_DIR) {
  Model model = value(load_model(tests + "/golden/llama",
                                 {.dtype = DType::f32, .random_weights = {}, .streaming = {}}));
  model.tensors =
      std::make_shared<ReplacedElement>(std::move(model.tensors), "model.embed_tokens.weight",
                                        static_cast<size_t>(token) * 64 + 3, NAN);
  return model;
}

/// The spec of a Llama of one layer, as a file has it.
std::string one_layer_spec(int64_t positions);
/// It with random weights and 512 positions.
Model load_one_layer(DType dtype, std::optional<StreamingCache> streaming = {});

std::shared_ptr<Backend> cpu();
std::shared_ptr<const Executable> ready(const Model& model);

/// A copy, in `folder`, of a model's reference tensors that has its texts `times` times. `error` is
/// added to the last element of its results.
std::string repeated_reference(const std::string& path, int64_t times, const std::string& folder,
                               float error = 0);

/// Tokens below 64, which every small model knows.
std::vector<int32_t> some_tokens(int64_t count, uint64_t seed);

}  // namespace sinter
