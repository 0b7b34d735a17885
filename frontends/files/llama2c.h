// The llama2.c checkpoint format (.bin), versions 0 and 1: float32, little-endian, no names in the
// file. Rotary pairs are interleaved (2i, 2i+1); q_proj and k_proj rows stand as in the file.
#pragma once

#include <vector>

#include "frontends/files/bounded_file.h"
#include "ir/tensor_source.h"

namespace sinter {

struct Llama2cHeader {
  int64_t dim = 0;
  int64_t hidden_dim = 0;
  int64_t n_layers = 0;
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  int64_t vocab_size = 0;
  int64_t seq_len = 0;
  bool shared_classifier = true;  // the output projection is the embedding table
  int version = 0;

  int64_t head_size() const { return dim / n_heads; }
  int64_t kv_dim() const { return head_size() * n_kv_heads; }
};

/// Gives the tensors their Hugging Face llama names ("model.layers.0.self_attn.q_proj.weight", …).
/// "lm_head.weight" exists only if the classifier is not shared.
class Llama2cFile final : public TensorSource {
 public:
  /// Checks every field and that the file has exactly the bytes which the header promises.
  static Result<Llama2cFile> open(const std::string& path);

  const Llama2cHeader& header() const { return header_; }

  std::optional<TensorType> find(std::string_view name) const override;
  Status read(std::string_view name, std::span<std::byte> out) const override;
  std::vector<std::string> files() const override { return {file_.path()}; }

 private:
  /// One array of the file: all layers' copies of a matrix or vector, layer after layer.
  struct Section {
    std::string_view name;  // after "model.layers.N." if per_layer, else the whole name
    bool per_layer = false;
    int64_t rows = 0;  // 0: a vector
    int64_t columns = 0;
    uint64_t offset = 0;  // bytes from the start of the file

    uint64_t bytes() const;  // of one layer
  };
  struct Place {
    const Section* section;
    uint64_t offset;
  };

  explicit Llama2cFile(BoundedFile file) : file_(std::move(file)) {}
  std::optional<Place> locate(std::string_view name) const;

  BoundedFile file_;
  Llama2cHeader header_;
  std::vector<Section> sections_;
};

}  // namespace sinter
