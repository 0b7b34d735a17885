// mpnet: BERT without token types, whose scores get a learned bias by the distance of the tokens.
#include <algorithm>
#include <cstdlib>

#include "frontends/huggingface/config.h"

namespace sinter {

namespace {

constexpr int64_t kBuckets = 32;  // of distances; transformers takes no other number
constexpr int64_t kExact = 8;     // distances on one side that have a bucket of their own
constexpr int64_t kFar = 128;     // this distance and all larger ones have the last bucket

/// The bucket of the distance from a query to a key: one for each small distance, then twice as
/// many distances in every second bucket.
int64_t bucket_of(int64_t distance) {
  const int64_t length = std::abs(distance), side = kBuckets / 2;
  int64_t bucket = std::min(length, kExact);
  // Bucket kExact + k begins at kExact * 2^(k/2).
  while (length >= kExact && bucket + 1 < side &&
         length * length >= (kExact * kExact) << (bucket + 1 - kExact))
    ++bucket;
  return distance > 0 ? side + bucket : bucket;
}

WeightMap mpnet_weight_map(int64_t buckets) {
  WeightMap map = bert_weight_map("mpnet");
  map.foreign.push_back("lm_head.");
  for (const std::string which : {"q", "k", "v"})
    add_rules(map, "l{i}." + which, "encoder.layer.{i}.attention.attn." + which);
  add_rules(map, "l{i}.attn_out", "encoder.layer.{i}.attention.attn.o");
  add_rules(map, "l{i}.norm1", "encoder.layer.{i}.attention.LayerNorm");
  TensorRule bias{.tensor = "{p}encoder.relative_attention_bias.weight", .group_rows = buckets};
  for (int64_t distance = -kFar; distance <= kFar; ++distance)
    bias.rows.push_back(bucket_of(distance));
  map.rules["position_bias.weight"] = std::move(bias);
  return map;
}

}  // namespace

Result<HfModel> read_hf_mpnet(HfConfig& config) {
  SINTER_LET(spec, read_bert_fields(config));
  SINTER_LET(view, config.find("buckets", {"relative_attention_num_buckets"}));
  SINTER_LET(buckets, view.integer_or(kBuckets, kBuckets, kLargestSize));
  spec.bias_distance = kFar;
  constexpr int64_t kUnusedPositions = 2;  // whatever the padding token is
  if (spec.max_positions <= kUnusedPositions)
    return fail(fmt::format("{} positions, of which the first {} are not used", spec.max_positions,
                            kUnusedPositions),
                config.places()("max_positions"), "give the model's true size");
  WeightMap map = mpnet_weight_map(buckets);
  skip_positions(spec, map, kUnusedPositions);
  return HfModel{std::move(spec), std::move(map)};
}

}  // namespace sinter
