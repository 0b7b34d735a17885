#include "frontends/files/other_formats.h"

#include <algorithm>
#include <filesystem>
#include <vector>

namespace sinter {
namespace {

struct OtherFormat {
  std::string_view ending, what, hint;
};

constexpr std::string_view kFolder =
    "give the model's Hugging Face folder, with config.json and safetensors";

constexpr std::string_view kOnnx = ".onnx";

constexpr OtherFormat kOtherFormats[] = {
    {kOnnx, "ONNX files are converted before they are read", {}},  // onnx_hint
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

std::string onnx_hint(const std::filesystem::path& file) {
  return fmt::format("python -m sinter convert '{}' -o '{}'", file.string(),
                     (file.parent_path() / file.stem()).string());
}

const OtherFormat* format_of(const std::filesystem::path& file) {
  const std::string ending = file.extension().string();
  for (const OtherFormat& other : kOtherFormats)
    if (ending == other.ending) return &other;
  return nullptr;
}

std::string hint_of(const OtherFormat& format, const std::filesystem::path& file) {
  return format.ending == kOnnx ? onnx_hint(file) : std::string(format.hint);
}

}  // namespace

Status refuse_other_format(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return {};
  if (const OtherFormat* other = format_of(path))
    return fail(std::string(other->what), path, hint_of(*other, path));
  return {};
}

std::string folder_hint(const std::string& folder) {
  constexpr std::string_view kContents =
      "a Hugging Face folder has config.json, a tokenizer and model.safetensors, a module's has "
      "model.sir";
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error))
    files.push_back(at->path());
  if (files.empty()) return fmt::format("the folder is empty; {}", kContents);
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files)
    if (const OtherFormat* other = format_of(file))
      return fmt::format("it holds {}; {}: {}", printable(file.filename().string()), other->what,
                         hint_of(*other, file));
  constexpr size_t kNamed = 3;
  std::string names;
  for (size_t i = 0; i < std::min(files.size(), kNamed); ++i)
    names += (i == 0 ? "" : ", ") + printable(files[i].filename().string());
  if (files.size() > kNamed) names += fmt::format(" and {} more", files.size() - kNamed);
  return fmt::format("it holds {}; {}; a llama2.c .bin, and one of several .gguf, is given itself",
                     names, kContents);
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
