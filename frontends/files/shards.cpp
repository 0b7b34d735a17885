#include "frontends/files/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>

#include "frontends/files/bounded_file.h"
#include "frontends/files/json.h"
#include "frontends/files/other_formats.h"

namespace sinter {
namespace {

constexpr const char* single_name = "model.safetensors";
constexpr const char* index_name = "model.safetensors.index.json";
constexpr const char* again = "download the model again";

std::string inside(const std::string& folder, const std::string& name) {
  return (std::filesystem::path(folder) / name).string();
}

/// A shard's name is a plain file name: an index must not lead out of its folder.
Status check_shard_name(const JsonView& view, const std::string& name) {
  const bool is_plain = !name.empty() && name != "." && name != ".." &&
                        name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
  if (is_plain) return {};
  return view.fail(fmt::format("expected the name of a file in the same folder, got \"{}\"",
                               printable(name, 80)),
                   "correct the index");
}

}  // namespace

Result<ShardedWeights> ShardedWeights::open(const std::string& folder, const std::string& index) {
  ShardedWeights weights;
  weights.index_path_ = inside(folder, index);
  SINTER_LET(document, read_json(weights.index_path_, uint64_t{64} << 20));
  JsonView map = document.view()["weight_map"];
  SINTER_LET(members, map.object());
  std::map<std::string, uint32_t> numbers;  // shard name to its place in shards_
  for (const JsonMember& member : *members) {
    JsonView view = map.at(member);
    SINTER_LET(name, view.string());
    auto known = numbers.find(name);
    if (known == numbers.end()) {
      SINTER_TRY(check_shard_name(view, name));
      auto shard = open_safetensors(inside(folder, name));
      if (!shard && !path_exists(inside(folder, name)))
        return view.fail(fmt::format("the shard \"{}\" is not in the folder", printable(name)),
                         again);
      if (!shard) return tl::make_unexpected(std::move(shard.error()));
      known = numbers.emplace(name, weights.shards_.size()).first;
      weights.shards_.push_back(std::move(*shard));
    }
    if (!weights.shards_[known->second].entry(member.key))
      return view.fail(
          fmt::format("the index names shard \"{}\", which lacks this tensor", printable(name)),
          again);
  }
  for (uint32_t shard = 0; shard < weights.shards_.size(); ++shard)
    for (const FileTensor& tensor : weights.shards_[shard].tensors())
      weights.entries_.push_back({tensor.name, shard});
  std::sort(weights.entries_.begin(), weights.entries_.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.name, a.shard) < std::tie(b.name, b.shard);
  });
  for (size_t i = 1; i < weights.entries_.size(); ++i) {
    const Entry &a = weights.entries_[i - 1], &b = weights.entries_[i];
    if (a.name == b.name)
      return fail(fmt::format("tensor \"{}\" is in two shards, {} and {}", printable(a.name),
                              weights.shards_[a.shard].path(), weights.shards_[b.shard].path()),
                  weights.index_path_, again);
  }
  return weights;
}

const TensorFile* ShardedWeights::shard_of(std::string_view name) const {
  auto at = std::lower_bound(
      entries_.begin(), entries_.end(), name,
      [](const Entry& entry, std::string_view wanted) { return entry.name < wanted; });
  return at != entries_.end() && at->name == name ? &shards_[at->shard] : nullptr;
}

std::optional<TensorType> ShardedWeights::find(std::string_view name) const {
  const TensorFile* shard = shard_of(name);
  return shard ? shard->find(name) : std::nullopt;
}

std::vector<std::string> ShardedWeights::names() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) names.emplace_back(entry.name);
  return names;
}

std::vector<std::string> ShardedWeights::files() const {
  std::vector<std::string> files = {index_path_};
  for (const TensorFile& shard : shards_) files.push_back(shard.path());
  return files;
}

Error ShardedWeights::missing(std::string_view name) const {
  if (const TensorFile* shard = shard_of(name)) return shard->missing(name);
  std::optional<std::string> first;
  if (!entries_.empty()) first = entries_.front().name;
  return Error{fmt::format("no tensor named \"{}\" among the {} of {} shards", printable(name),
                           entries_.size(), shards_.size()),
               index_path_, missing_hint(first ? &*first : nullptr)};
}

Status ShardedWeights::read(std::string_view name, std::span<std::byte> out) const {
  const TensorFile* shard = shard_of(name);
  if (!shard) return tl::make_unexpected(missing(name));
  return shard->read(name, out);
}

const FileTensor* ShardedWeights::entry(std::string_view name) const {
  const TensorFile* shard = shard_of(name);
  return shard ? shard->entry(name) : nullptr;
}

Status ShardedWeights::read_raw(std::string_view name, std::span<std::byte> out) const {
  const TensorFile* shard = shard_of(name);
  if (!shard) return tl::make_unexpected(missing(name));
  return shard->read_raw(name, out);
}

bool has_weights(const std::string& folder) {
  return path_exists(inside(folder, single_name)) || path_exists(inside(folder, index_name));
}

std::string other_weights(const std::string& folder) {
  for (const char* name : {"pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5",
                           "flax_model.msgpack", "consolidated.00.pth"})
    if (path_exists(inside(folder, name))) return name;
  return {};
}

std::string safetensors_hint(const std::string& folder, const std::string& file) {
  if (file.starts_with("pytorch_model"))
    return "this makes safetensors of it: " + safetensors_command(folder);
  return "convert the weights to safetensors, or download that form of the model";
}

Result<std::unique_ptr<FileTensors>> open_weights(const std::string& path) {
  std::error_code error;
  const bool is_folder = std::filesystem::is_directory(path, error);
  if (!is_folder || path_exists(inside(path, single_name))) {
    if (!path_exists(path)) return fail("no such file or folder", path, "check the path");
    SINTER_LET(file, open_safetensors(is_folder ? inside(path, single_name) : path));
    return std::make_unique<TensorFile>(std::move(file));
  }
  if (path_exists(inside(path, index_name))) {
    SINTER_LET(shards, ShardedWeights::open(path, index_name));
    return std::make_unique<ShardedWeights>(std::move(shards));
  }
  std::string what = fmt::format("the folder holds neither {} nor {}", single_name, index_name);
  if (const std::string other = other_weights(path); !other.empty())
    return fail(fmt::format("{}, only {}", what, other), path, safetensors_hint(path, other));
  return fail(std::move(what), path, "download the weights, or use --random-weights SEED instead");
}

}  // namespace sinter
