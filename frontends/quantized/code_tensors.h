// The weights of a quantized checkpoint, in the one form of coded_tensor.h.
#pragma once

#include <memory>

#include "frontends/files/tensor_file.h"
#include "frontends/quantized/coded_tensor.h"

namespace sinter {

/// Gives the tensors of files, their quantized weights as the tensors of coded_tensor.h: a tensor
/// is unpacked when it is read, and the files' own bytes of it are held until then and no longer.
class CodeTensors final : public TensorSource {
 public:
  /// The files decide which weights are quantized, `quantization` how. Reads the headers, the
  /// shapes and the groups of inputs, no codes. Errors: codes of a module that the config does not
  /// quantize or describes otherwise, parts that are missing or whose shapes do not fit, inputs
  /// that no order sorts into whole groups.
  static Result<std::shared_ptr<const CodeTensors>> open(std::shared_ptr<const FileTensors> files,
                                                         const Quantization& quantization);

  const CodedTensors& weights() const { return weights_; }

  std::optional<TensorType> find(std::string_view name) const override;
  std::vector<std::string> names() const override;
  std::vector<std::string> files() const override { return files_->files(); }
  Error missing(std::string_view name) const override { return files_->missing(name); }
  /// Reading codes of a symmetric GPTQ weight fails where its zero points are not all the middle
  /// code.
  Status read(std::string_view name, std::span<std::byte> out) const override;

 private:
  explicit CodeTensors(std::shared_ptr<const FileTensors> files) : files_(std::move(files)) {}
  class Opener;
  enum class Part : uint8_t { codes, scales, zeros, order };  // as kCodedParts begins
  /// A tensor of coded_tensor.h by its name.
  std::optional<std::pair<const CodedTensors::value_type*, Part>> part_of(
      std::string_view name) const;

  std::shared_ptr<const FileTensors> files_;
  CodedTensors weights_;
  std::map<std::string, std::vector<int32_t>, std::less<>> orders_;  // by name
  std::vector<std::string> names_;
};

}  // namespace sinter
