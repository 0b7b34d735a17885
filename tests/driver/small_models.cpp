#include "driver/small_models.h"

#include <fstream>

#include "runtime/random_inputs.h"
#include "runtime/temporary_directory.h"

namespace sinter {

LoadedModel load_one_layer(DType dtype, std::optional<StreamingCache> streaming) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/one_layer.json";
  std::ofstream(path)
      << R"({"sinter_spec": 1, "name": "one-layer", "dtype": "f32", "vocabulary": 97,
    "hidden": 48, "layers": 1, "heads": 4, "kv_heads": 2, "ffn": 80, "max_positions": 512,
    "norm": "rms_norm", "norm_eps": 1e-5, "rope": {"theta": 10000}, "activation": "silu",
    "gated": true})";
  return value(load_model(path, {.dtype = dtype, .random_weights = 5, .streaming = streaming}));
}

std::shared_ptr<Backend> cpu() {
  return value(Backend::open({.device = "cpu", .record = {}, .progress = {}}));
}

std::shared_ptr<const Model> ready(const LoadedModel& model) {
  return value(make_ready(model, {}, *cpu())).model;
}

std::vector<int32_t> some_tokens(int64_t count, uint64_t seed) {
  const HostTensor ids = value(random_tensor(DType::i32, {count}, seed, {1, 0, 63}));
  return {ids.data<int32_t>(), ids.data<int32_t>() + count};
}

}  // namespace sinter
