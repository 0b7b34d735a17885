// Small language models ready to run on the CPU.
#pragma once

#include <doctest/doctest.h>

#include "driver/generate/decoder.h"
#include "driver/ready_model.h"
#include "support/result.h"

namespace sinter {

inline const std::vector<std::string> kGoldenModels = {"gpt2", "llama", "llama3_gqa_scaled_rope",
                                                       "gpt_neox_parallel", "gpt_neox_sequential"};

inline LoadedModel load_golden(const std::string& name, DType dtype,
                               std::optional<StreamingCache> streaming = {}) {
  return value(load_model(SINTER_TESTS_DIR "/golden/" + name,
                          {.dtype = dtype, .random_weights = {}, .streaming = streaming}));
}

/// The spec of a Llama of one layer, as a file has it.
std::string one_layer_spec(int64_t positions);
/// It with random weights and 512 positions.
LoadedModel load_one_layer(DType dtype, std::optional<StreamingCache> streaming = {});

std::shared_ptr<Backend> cpu();
std::shared_ptr<const Model> ready(const LoadedModel& model);

/// A copy, in `folder`, of a model's reference tensors that has its texts `times` times. `error` is
/// added to the last element of its results.
std::string repeated_reference(const std::string& path, int64_t times, const std::string& folder,
                               float error = 0);

/// Tokens below 64, which every small model knows.
std::vector<int32_t> some_tokens(int64_t count, uint64_t seed);

}  // namespace sinter
