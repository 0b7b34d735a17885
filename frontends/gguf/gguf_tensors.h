// The tensors of a GGUF model under their names in the file, with what the converter changed
// undone: rows of q and k in the order of the halves of a head, norms without their 1 (the
// subtraction is exact for weights of -0.5 and above; the converter's addition may have rounded).
// Matrices of the types that have a format of codes (code_format_of) are codes and scales
// (quantized/coded_tensor.h); other quantized types are dequantized to float32 when they are read.
// The matrices of experts are tensors of their own: "blk.0.ffn_up_exps.weight" [E, out, in] is
// "blk.0.ffn_up_exps.{e}.weight" [out, in].
#pragma once

#include <map>
#include <memory>

#include "frontends/gguf/gguf_architecture.h"
#include "frontends/quantized/coded_tensor.h"
#include "ir/tensor_source.h"

namespace sinter {

class GgufTensors final : public TensorSource {
 public:
  /// Reads the headers. Errors: those of GgufFile and gguf_architecture; a tensor of a type that is
  /// not read, q or k whose rows do not fit the number of heads.
  static Result<std::shared_ptr<const GgufTensors>> open(const std::string& path);

  const GgufFile& file() const { return file_; }
  const GgufArchitecture& architecture() const { return *architecture_; }
  /// Null: the file has no tensor of this name.
  const GgufTensor* tensor(std::string_view name) const;
  /// The elements of a small tensor of float32.
  Result<std::vector<float>> floats(std::string_view name) const;
  /// The matrices that are given as codes and scales.
  const CodedTensors& coded() const { return coded_; }
  /// The dequantized types, their bytes in the file and as they are given: for a line to the
  /// reader; empty: there are none.
  std::string quantized_note(DType dtype) const;

  std::optional<TensorType> find(std::string_view name) const override;
  std::vector<std::string> names() const override;
  std::vector<std::string> files() const override { return file_.files(); }
  Status read(std::string_view name, std::span<std::byte> out) const override;

 private:
  /// A tensor as it is given: rows of a tensor of the file.
  struct Part {
    const GgufTensor* tensor;
    std::vector<int64_t> dims;
    int64_t first_row = 0;
    int64_t head = 0;        // rows of a head, if their order is undone; else 0
    bool minus_one = false;  // the elements less 1
  };
  explicit GgufTensors(GgufFile file) : file_(std::move(file)) {}
  Status add(const GgufTensor& tensor);
  Status add_part(std::string name, Part part);
  /// Sets the rows of a head of q and k, which are interleaved.
  Status note_heads(Part& part) const;
  bool is_coded(const GgufTensor& tensor) const;
  /// Calls take(bytes, first row, rows) for pieces of a part, its rows in order.
  template <typename Take>
  Status for_rows(const Part& part, Take&& take) const;
  Status check_scales(const Part& part, std::span<const std::byte> stored) const;
  void dequantize(const Part& part, std::span<const std::byte> stored,
                  std::span<std::byte> out) const;
  tl::unexpected<Error> broken(const GgufTensor& tensor, std::string_view what,
                               std::string hint) const;

  GgufFile file_;
  const GgufArchitecture* architecture_ = nullptr;
  std::map<std::string, GgufType, std::less<>> types_;  // of the file's tensors
  std::map<std::string, Part, std::less<>> parts_;
  CodedTensors coded_;
};

}  // namespace sinter
