#include "driver/stored_plan/embed_weights.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "driver/text_file.h"
#include "frontends/files/safetensors.h"
#include "ir/type_sizes.h"
#include "plan/plan_file.h"
#include "runtime/weight_queue.h"

namespace sinter {
namespace {

constexpr uint64_t kShardBytes = uint64_t{4} << 30;

bool is_of_files(const Weight& weight) {
  return llvm::any_of(weight.init.ops(), [](const Op& op) { return op.kind == OpKind::file; });
}

TensorEntry entry_of(const Weight& weight) {
  return {weight.name, to_file_dtype(weight.type.dtype), concrete_dims(weight.type, {})};
}

/// Where the files end: numbers of weights. A file has at least one.
Result<std::vector<size_t>> shard_ends(llvm::ArrayRef<Weight> weights) {
  std::vector<size_t> ends;
  uint64_t bytes = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const TensorEntry entry = entry_of(weights[i]);
    SINTER_LET(own, tensor_bytes(entry.dtype, entry.dims));
    if (bytes > 0 && bytes + own > kShardBytes) {
      ends.push_back(i);
      bytes = 0;
    }
    bytes += own;
  }
  ends.push_back(weights.size());
  return ends;
}

}  // namespace

void embed_weights(Module& frozen) {
  for (Weight& weight : frozen.weights) {
    if (!is_of_files(weight)) continue;
    Op op{OpKind::file, weight.type, {}, {}, weight.name};
    op.attrs.set(AttrName::tensor, weight.name);
    Graph init;
    init.outputs.push_back(init.add(std::move(op)));
    weight.init = std::move(init);
  }
}

Result<EmbeddedWeights> write_embedded(llvm::ArrayRef<Weight> weights, const TensorSource* source,
                                       const std::string& folder) {
  Program program;
  llvm::copy_if(weights, std::back_inserter(program.weights), is_of_files);
  EmbeddedWeights embedded;
  if (program.weights.empty()) return embedded;
  SINTER_LET(ends, shard_ends(program.weights));
  WeightQueue queue(program, source);
  nlohmann::ordered_json index;
  uint64_t total = 0;
  size_t next = 0;
  for (size_t shard = 0; shard < ends.size(); ++shard) {
    const std::string name =
        ends.size() == 1 ? "model.safetensors"
                         : fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, ends.size());
    const size_t begin = next;
    std::vector<TensorEntry> entries;
    for (size_t i = begin; i < ends[shard]; ++i) entries.push_back(entry_of(program.weights[i]));
    SINTER_LET(writer,
               SafetensorsWriter::create((std::filesystem::path(folder) / name).string(), entries));
    for (; next < ends[shard]; ++next) {
      SINTER_LET(tensor, queue.take());
      SINTER_TRY(writer.write(next - begin, tensor.bytes));
      total += tensor.bytes.size();
      const auto* bytes = reinterpret_cast<const char*>(tensor.bytes.data());
      embedded.hashes[program.weights[next].name] = content_hash({bytes, tensor.bytes.size()});
      index["weight_map"][program.weights[next].name] = name;
    }
    SINTER_TRY(writer.commit());
  }
  if (ends.size() == 1) return embedded;
  index["metadata"]["total_size"] = total;
  SINTER_TRY(write_text((std::filesystem::path(folder) / "model.safetensors.index.json").string(),
                        index.dump(2)));
  return embedded;
}

}  // namespace sinter
