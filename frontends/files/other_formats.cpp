#include "frontends/files/other_formats.h"

#include <filesystem>

namespace sinter {
namespace {

struct OtherFormat {
  std::string_view ending, what, hint;
};

constexpr std::string_view kFolder =
    "give the model's Hugging Face folder, with config.json and safetensors";

constexpr OtherFormat kOtherFormats[] = {
    {".gguf", "GGUF files are not read",
     "give the Hugging Face folder that the file was made from, or make one: "
     "AutoModelForCausalLM.from_pretrained(FOLDER, gguf_file=NAME).save_pretrained(OUT) of "
     "transformers"},
    {".onnx", "ONNX files are not read",
     "give the model's Hugging Face folder, or its torch module to sinter.from_torch in Python"},
    {".pt2", "the program does not read PyTorch's exported programs",
     "sinter.from_torch in Python does"},
    {".pt", "PyTorch files are not read", kFolder},
    {".pth", "PyTorch files are not read", kFolder},
    {".ckpt", "PyTorch files are not read", kFolder},
    {".h5", "TensorFlow files are not read", kFolder},
    {".msgpack", "Flax files are not read", kFolder},
    {".npz", "NumPy files are no models", kFolder},
    {".npy", "NumPy files are no models", kFolder},
};

}  // namespace

Status refuse_other_format(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return {};
  const std::string ending = std::filesystem::path(path).extension().string();
  for (const OtherFormat& other : kOtherFormats)
    if (ending == other.ending) return fail(std::string(other.what), path, std::string(other.hint));
  return {};
}

std::string safetensors_command(const std::string& folder) {
  return fmt::format(
      "cd '{}' && python -c \"import glob, torch; from safetensors.torch import save_file; "
      "save_file({{name: one.clone() for file in sorted(glob.glob('pytorch_model*.bin')) for name, "
      "one in torch.load(file, map_location='cpu', weights_only=True).items()}}, "
      "'model.safetensors')\"",
      folder);
}

}  // namespace sinter
