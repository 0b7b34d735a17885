// The weights of a model folder: one safetensors file, or several and their index.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "frontends/files/safetensors.h"
#include "ir/tensor_source.h"

namespace sinter {

/// The union of the shards that an index file lists.
class ShardedWeights final : public FileTensors {
 public:
  /// Opens `folder`/`index_name` and every shard of its `weight_map`, which must be files of that
  /// very folder. Every mapped tensor must be in its shard, and no tensor in two.
  static Result<ShardedWeights> open(const std::string& folder, const std::string& index_name);

  std::optional<TensorType> find(std::string_view name) const override;
  Error missing(std::string_view name) const override;
  std::vector<std::string> names() const override;
  /// The index, then its shards in the order in which it names them first.
  std::vector<std::string> files() const override;
  Status read(std::string_view name, std::span<std::byte> out) const override;
  const FileTensor* entry(std::string_view name) const override;
  Status read_raw(std::string_view name, std::span<std::byte> out) const override;

 private:
  struct Entry {
    std::string_view name;  // borrowed from the shard's own entry
    uint32_t shard = 0;
  };

  const TensorFile* shard_of(std::string_view name) const;

  std::string index_path_;
  std::vector<TensorFile> shards_;
  std::vector<Entry> entries_;  // by name
};

/// Whether open_weights() finds a file in the folder.
bool has_weights(const std::string& folder);

/// A file of weights in a form that is not read; empty: the folder has none.
std::string other_weights(const std::string& folder);
/// The way from `file`, which other_weights() found in `folder`, to safetensors.
std::string safetensors_hint(const std::string& folder, const std::string& file);

/// `path` is a safetensors file, or a folder with model.safetensors or, if that is not there, the
/// shards of model.safetensors.index.json.
Result<std::unique_ptr<FileTensors>> open_weights(const std::string& path);

}  // namespace sinter
