// Files with weights: safetensors, an index of shards, llama2.c.
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "frontends/files/npy.h"
#include "frontends/files/safetensors.h"
#include "frontends/files/shards.h"
#include "frontends/llama2c_bytes.h"
#include "frontends/llama2c_spec.h"
#include "frontends/model/build_model.h"
#include "fuzz/reading.h"
#include "ir/sym_expr.h"
#include "ir/text.h"

namespace sinter::fuzz {
namespace {

std::string_view text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string header_of(const FileTensor& tensor) {
  return fmt::format("{} {} [{}] {} {}\n", tensor.name, to_string(tensor.dtype),
                     fmt::join(tensor.dims, ","), tensor.begin, tensor.end);
}

/// A folder with two small shards, whose index is a MemoryFile.
class ShardFolder {
 public:
  ShardFolder() {
    const std::array<float, 4> values{1, 2, 3, 4};
    const auto bytes = std::as_bytes(std::span(values));
    const auto write = [&](const char* name, const char* tensor) {
      const NamedTensor written{tensor, FileDType::F32, {2, 2}, bytes};
      if (!write_safetensors(folder_.path() + "/" + name, written)) std::abort();
    };
    write("one.safetensors", "a");
    write("two.safetensors", "b");
    std::filesystem::create_symlink(index_.path(), folder_.path() + "/index.json");
  }
  Result<ShardedWeights> open(std::string_view index) {
    index_.put(index);
    return ShardedWeights::open(folder_.path(), "index.json");
  }

 private:
  MemoryFile index_;
  ScratchFolder folder_;
};

}  // namespace

namespace {

/// All tensors of a file, by every way of reading them.
Outcome read_tensors(const Result<TensorFile>& file) {
  if (!file) return refused(file.error());
  std::string read;
  for (const FileTensor& tensor : file->tensors()) {
    read += header_of(tensor);
    auto loaded = file->read_tensor(tensor.name);
    if (!loaded) return refused(std::move(loaded.error()));
    read += fmt::format("{:x}\n", hash_of(text_of(loaded->bytes)));
    (void)to_i32(*loaded);
    const std::optional<TensorType> type = file->find(tensor.name);
    if (!type) continue;
    std::vector<std::byte> out(static_cast<size_t>(storage_bytes(*type).upper_bound({})));
    if (auto filled = file->read(tensor.name, out); !filled)
      return refused(std::move(filled.error()));
    read += fmt::format("{:x}\n", hash_of(text_of(out)));
  }
  return read_as(std::move(read));
}

/// Files with tensors of several types and ranks, written under a name with this ending.
std::vector<std::string> written_seeds(std::string_view ending) {
  std::vector<std::byte> data(64);
  const std::span<const std::byte> bytes(data);
  const std::vector<std::vector<NamedTensor>> files = {
      {},
      {{"w", FileDType::F32, {}, bytes.first(4)}},
      {{"l0.w", FileDType::F32, {2, 3}, bytes.first(24)},
       {"l0.b", FileDType::F16, {3}, bytes.first(6)},
       {"mask", FileDType::BOOL, {2, 2, 2}, bytes.first(8)},
       {"none", FileDType::F16, {0, 5}, bytes.first(0)},
       {"ids", FileDType::I64, {4}, bytes.first(32)}}};
  std::vector<std::string> seeds;
  for (const auto& tensors : files) {
    const std::string path =
        (std::filesystem::temp_directory_path() / fmt::format("sinter_seed_{}", ::getpid()))
            .string() +
        std::string(ending);
    if (!write_tensor_file(path, tensors)) std::abort();
    seeds.push_back(bytes_of(path));
    std::filesystem::remove(path);
  }
  return seeds;
}

}  // namespace

Outcome read_safetensors(std::string_view bytes) {
  return read_tensors(open_safetensors(as_file(bytes)));
}
std::vector<std::string> safetensors_seeds() { return written_seeds(".safetensors"); }

Outcome read_numpy(std::string_view bytes) {
  return read_tensors(open_tensor_file(as_file(bytes)));
}
std::vector<std::string> npz_seeds() { return written_seeds(".npz"); }

std::vector<std::string> npy_seeds() {
  std::vector<std::string> seeds;
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{}, {7}, {2, 3}, {0, 4}}) {
    const std::string header = *npy_header(FileDType::F32, dims);
    seeds.push_back(header + std::string(*tensor_bytes(FileDType::F32, dims), '\1'));
  }
  return seeds;
}

Outcome read_shard_index(std::string_view bytes) {
  static ShardFolder folder;
  auto weights = folder.open(bytes);
  if (!weights) return refused(std::move(weights.error()));
  std::string read;
  for (const std::string& name : weights->names()) {
    const auto type = weights->find(name);
    read += fmt::format("{} {}\n", name, type ? to_string(*type, {}) : "?");
  }
  return read_as(std::move(read));
}

std::vector<std::string> shard_index_seeds() {
  return {R"({"metadata": {"total_size": 32},
 "weight_map": {"a": "one.safetensors", "b": "two.safetensors"}})",
          R"({"weight_map": {"a": "one.safetensors"}})", R"({"weight_map": {}})"};
}

Outcome read_llama2c(std::string_view bytes) {
  const std::string& path = as_file(bytes);
  auto file = Llama2cFile::open(path);
  if (!file) return refused(std::move(file.error()));
  auto model = llama2c_spec(file->header(), path, "m");
  if (!model) return refused(std::move(model.error()));
  constexpr int64_t kMaxLayers = 64;  // built ones; a file of more is only opened
  if (model->spec.layers > kMaxLayers) return read_as("deep");
  WeightNames names{std::move(model->map), {}};
  names.prefix = names.map.prefixes.front();
  auto module = build_model(model->spec, names, &*file, path);
  if (!module) return refused(std::move(module.error()));
  std::string read = print_module(*module);
  for (const Weight& weight : module->weights)
    for (const Op& op : weight.init.ops()) {
      if (op.kind != OpKind::file) continue;
      const std::string tensor = op.attrs.get<std::string>(AttrName::tensor);
      const auto type = file->find(tensor);
      if (!type) return {std::move(read), "a tensor of the module that the file lacks"};
      int64_t elements = 1;
      for (Dim dim : type->dims) elements *= dim.constant();
      std::vector<std::byte> data(static_cast<size_t>(elements) * sizeof(float));
      if (const Status status = file->read(tensor, data); !status) return refused(status.error());
      read += fmt::format("{:x}\n", hash_of(text_of(data)));
    }
  return read_as(std::move(read));
}

std::vector<std::string> llama2c_seeds() {
  using testing::llama2c_bytes;
  // One layer of width 4, two heads that share keys, an MLP of 2, 3 tokens, 4 positions.
  const size_t shared = 3 * 4 + 4 + 4 + 16 + 2 * 8 + 16 + 3 * 8 + 4;
  return {llama2c_bytes({4, 2, 1, 2, 1, 3, 4}, 0, 1, shared + 4 * 2),
          llama2c_bytes({4, 2, 1, 2, 1, -3, 4}, 0, 0, shared + 4 * 2 + 12),
          llama2c_bytes({4, 2, 1, 2, 1, 3, 4}, 1, 1, shared),
          llama2c_bytes({4, 2, 1, 2, 1, 3, 4}, 1, 0, shared + 12)};
}

}  // namespace sinter::fuzz
