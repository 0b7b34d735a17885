// Quantized weights: a line with the config's object, then the safetensors file that it describes.
#include <cstdlib>

#include "frontends/files/safetensors.h"
#include "frontends/huggingface/quantization.h"
#include "frontends/quantized/code_tensors.h"
#include "fuzz/reading.h"
#include "ir/sym_expr.h"

namespace sinter::fuzz {
namespace {

/// Every byte of the tensors is `fill`, of which zero points of symmetric GPTQ are made.
std::string seed(std::string_view config, std::vector<NamedTensor> tensors, unsigned char fill) {
  const std::vector<std::byte> bytes(4096, std::byte{fill});
  // A shape says 8, 32; groups of inputs and exponents have values of their own.
  const int64_t shape[] = {8, 32};
  std::vector<int32_t> groups(32);
  for (size_t i = 0; i < groups.size(); ++i) groups[i] = static_cast<int32_t>(1 - i / 16);
  const float one = 1;
  for (NamedTensor& tensor : tensors) {
    const size_t size = *tensor_bytes(tensor.dtype, tensor.dims);
    tensor.bytes = tensor.name == "p.weight_shape" ? std::as_bytes(std::span(shape))
                   : tensor.name == "p.g_idx"      ? std::as_bytes(std::span(groups))
                   : tensor.dtype == FileDType::F32 && size == sizeof one
                       ? std::as_bytes(std::span(&one, 1))
                       : std::span(bytes).first(size);
  }
  const ScratchFolder folder;
  const std::string path = folder.path() + "/model.safetensors";
  if (!write_safetensors(path, tensors)) std::abort();
  return fmt::format("{}\n{}", config, bytes_of(path));
}

std::string compressed(std::string_view format, std::string_view weights) {
  return fmt::format(
      R"({{"quant_method": "compressed-tensors", "format": "{}", "ignore": ["re:.*head"], )"
      R"("config_groups": {{"g": {{"targets": ["Linear"], "weights": {{{}}}}}}}}})",
      format, weights);
}

}  // namespace

Outcome read_quantized(std::string_view bytes) {
  const size_t line = bytes.find('\n');
  if (line == bytes.npos) return refused(Error{"no line with a config", "m", "write one"});
  auto quantization = read_quantization_text(bytes.substr(0, line), "config.json");
  if (!quantization) return refused(std::move(quantization.error()));
  auto file = open_safetensors(as_file(bytes.substr(line + 1)));
  if (!file) return refused(std::move(file.error()));
  auto tensors = CodeTensors::open(std::make_shared<TensorFile>(std::move(*file)), *quantization);
  if (!tensors) return refused(std::move(tensors.error()));
  std::string read = quantization->description() + "\n";
  for (const auto& [name, weight] : (*tensors)->weights())
    read += fmt::format("{} [{}, {}] {}\n", name, weight.out, weight.in, weight.format());
  for (const std::string& name : (*tensors)->names()) {
    const std::optional<TensorType> type = (*tensors)->find(name);
    if (!type) continue;  // of an element type that modules do not have
    std::vector<char> out(static_cast<size_t>(storage_bytes(*type).constant()));
    if (const auto status = (*tensors)->read(name, std::as_writable_bytes(std::span(out))); !status)
      return refused(status.error());
    read +=
        fmt::format("{} {} {:x}\n", name, to_string(*type, {}), hash_of({out.data(), out.size()}));
  }
  return read_as(std::move(read));
}

std::vector<std::string> quantized_seeds() {
  using enum FileDType;
  const NamedTensor other{"norm.weight", F16, {4}, {}};
  return {
      seed(R"({"quant_method": "gptq", "bits": 4, "group_size": 16, "desc_act": true})",
           {{"p.qweight", I32, {4, 8}, {}},
            {"p.qzeros", I32, {2, 1}, {}},
            {"p.scales", F16, {2, 8}, {}},
            {"p.g_idx", I32, {32}, {}},
            other},
           0x77),
      seed(R"({"quant_method": "awq", "bits": 4, "group_size": 16, "version": "gemm"})",
           {{"p.qweight", I32, {32, 1}, {}},
            {"p.qzeros", I32, {2, 1}, {}},
            {"p.scales", F16, {2, 8}, {}}},
           0x35),
      seed(
          compressed("pack-quantized",
                     R"("num_bits": 4, "strategy": "group", "group_size": 16, "symmetric": false)"),
          {{"p.weight_packed", I32, {8, 4}, {}},
           {"p.weight_scale", BF16, {8, 2}, {}},
           {"p.weight_shape", I64, {2}, {}},
           {"p.weight_zero_point", I32, {1, 2}, {}},
           other},
          0x2b),
      seed(
          compressed("float-quantized", R"("num_bits": 8, "type": "float", "strategy": "channel")"),
          {{"p.weight", F8_E4M3, {8, 5}, {}}, {"p.weight_scale", F32, {8, 1}, {}}}, 0x3c),
      seed(R"({"quant_method": "fp8", "weight_block_size": [128, 128]})",
           {{"p.weight", F8_E4M3, {130, 3}, {}}, {"p.weight_scale_inv", F32, {2, 1}, {}}}, 0x3c),
      seed(
          compressed("nvfp4-pack-quantized", R"("num_bits": 4, "type": "float", "group_size": 16)"),
          {{"p.weight_packed", U8, {8, 16}, {}},
           {"p.weight_scale", F8_E4M3, {8, 2}, {}},
           {"p.weight_global_scale", F32, {1}, {}}},
          0x4d),
      seed(R"({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head*"]})",
           {{"p.weight", U8, {8, 16}, {}},
            {"p.weight_scale", F8_E4M3, {8, 2}, {}},
            {"p.weight_scale_2", F32, {}, {}}},
           0x4d),
  };
}

}  // namespace sinter::fuzz
