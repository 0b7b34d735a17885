#include "driver/small_models.h"

#include <fstream>

#include "frontends/files/tensor_file.h"
#include "runtime/random_inputs.h"
#include "runtime/temporary_directory.h"

namespace sinter {

std::string one_layer_spec(int64_t positions) {
  return fmt::format(
      R"({{"sinter_spec": 1, "name": "one-layer", "dtype": "f32", "vocabulary": 97,
    "hidden": 48, "layers": 1, "heads": 4, "kv_heads": 2, "ffn": 80, "max_positions": {},
    "norm": "rms_norm", "norm_eps": 1e-5, "rope": {{"theta": 10000}}, "activation": "silu",
    "gated": true}})",
      positions);
}

Model load_one_layer(DType dtype, std::optional<StreamingCache> streaming) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/one_layer.json";
  std::ofstream(path) << one_layer_spec(512);
  return value(load_model(path, {.dtype = dtype, .random_weights = 5, .streaming = streaming}));
}

std::shared_ptr<Backend> cpu() {
  return value(Backend::open({.device = "cpu", .record = {}, .progress = {}}));
}

std::shared_ptr<const Executable> ready(const Model& model) {
  return value(make_ready(model, {}, *cpu())).executable;
}

std::string repeated_reference(const std::string& path, int64_t times, const std::string& folder,
                               float error) {
  const TensorFile file = value(open_tensor_file(path));
  const int64_t texts = file.entry("input_ids")->dims[0];
  std::vector<LoadedTensor> tensors;
  for (const FileTensor& entry : file.tensors()) {
    LoadedTensor& tensor = tensors.emplace_back(value(file.read_tensor(entry.name)));
    if (tensor.dims[0] != texts) continue;  // of the first text, or of all texts together
    const std::vector<std::byte> once = tensor.bytes;
    for (int64_t i = 1; i < times; ++i)
      tensor.bytes.insert(tensor.bytes.end(), once.begin(), once.end());
    tensor.dims[0] *= times;
    if (entry.name == "logits" || entry.name == "last_hidden_state")
      reinterpret_cast<float*>(tensor.bytes.data())[tensor.bytes.size() / sizeof(float) - 1] +=
          error;
  }
  std::vector<NamedTensor> named;
  for (size_t i = 0; i < tensors.size(); ++i)
    named.push_back(
        {file.tensors()[i].name, tensors[i].dtype, tensors[i].dims, std::span(tensors[i].bytes)});
  const std::string repeated = folder + "/repeated.safetensors";
  CHECK(write_tensor_file(repeated, named));
  return repeated;
}

std::vector<int32_t> some_tokens(int64_t count, uint64_t seed) {
  const HostTensor ids = value(random_tensor(DType::i32, {count}, seed, {1, 0, 63}));
  return {ids.data<int32_t>(), ids.data<int32_t>() + count};
}

}  // namespace sinter
