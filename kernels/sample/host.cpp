// The choice of tokens; kernels/sample/order.h has the arithmetic, which precise evaluation shares:
// it rounds what it has in float64 before.
#include <algorithm>

#include "kernels/sample/order.h"
#include "runtime/evaluate/ops.h"

namespace sinter {
namespace {

struct Sampler {
  float temperature;
  int32_t top_k;
  float top_p;
  int32_t seed, step;

  int32_t choose(llvm::ArrayRef<float> x) const {
    std::vector<uint32_t> keys;
    for (float value : x) keys.push_back(math::order_key(value));
    const auto at = std::max_element(keys.begin(), keys.end());
    const auto best = static_cast<int32_t>(at - keys.begin());
    if (!chooses(*at)) return kNoToken;
    if (!(temperature > 0)) return best;

    std::vector<uint64_t> weights;
    const float largest = x[static_cast<size_t>(best)];
    for (float value : x)
      weights.push_back(sampling_weight(sampling_exponent(value, largest, temperature)));
    uint32_t least = 0;
    if (top_k > 0 && top_k < static_cast<int32_t>(x.size())) {
      std::vector<uint32_t> sorted = keys;
      std::nth_element(sorted.begin(), sorted.begin() + (top_k - 1), sorted.end(),
                       std::greater<>());
      least = sorted[static_cast<size_t>(top_k - 1)];
    }
    if (top_p < 1) least = std::max(least, cut_by_weight(keys, weights, least));
    uint64_t total = 0;
    for (size_t i = 0; i < x.size(); ++i) total += keys[i] >= least ? weights[i] : 0;
    uint64_t left = sampling_below(sampling_bits(seed, step), total);
    for (size_t i = 0; i < x.size(); ++i) {
      if (keys[i] < least) continue;
      if (left < weights[i]) return static_cast<int32_t>(i);
      left -= weights[i];
    }
    return best;
  }

 private:
  uint32_t cut_by_weight(const std::vector<uint32_t>& keys, const std::vector<uint64_t>& weights,
                         uint32_t least) const {
    std::vector<std::pair<uint32_t, uint64_t>> kept;
    uint64_t total = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] < least) continue;
      kept.emplace_back(keys[i], weights[i]);
      total += weights[i];
    }
    std::sort(kept.begin(), kept.end(), std::greater<>());
    const uint64_t target = sampling_target(top_p, total);
    uint64_t sum = 0;
    for (const auto& [key, weight] : kept)
      if ((sum += weight) >= target) return key;
    return least;
  }
};

Result<HostView> in_float32(const HostView& view) {
  return view.storage == Storage::f64 ? copy_dense(view, Storage::f32) : view;
}

}  // namespace

Result<HostView> evaluate_sample(const OpCall& call) {
  SINTER_LET(logits_view, in_float32(call.operands[0]));
  SINTER_LET(temperature_view, in_float32(call.operands[1]));
  SINTER_LET(top_p_view, in_float32(call.operands[3]));
  std::vector<float> logits_scratch, temperature_scratch, top_p_scratch;
  std::vector<int32_t> top_k_scratch, seed_scratch, step_scratch;
  const float* logits = dense_elements(logits_view, logits_scratch);
  const float* temperature = dense_elements(temperature_view, temperature_scratch);
  const int32_t* top_k = dense_elements(call.operands[2], top_k_scratch);
  const float* top_p = dense_elements(top_p_view, top_p_scratch);
  const int32_t* seed = dense_elements(call.operands[4], seed_scratch);
  const int32_t* step = dense_elements(call.operands[5], step_scratch);
  const int64_t width = call.operands[0].dims[1];
  SINTER_LET(value, allocate(call.dims, call.storage));
  for (int64_t n = 0; n < call.dims[0]; ++n) {
    const Sampler sampler{temperature[n], top_k[n], top_p[n], seed[n], step[n]};
    const int32_t token = sampler.choose({logits + n * width, static_cast<size_t>(width)});
    store_run(&token, 1, call.storage, value.out + n * whole_bytes(call.storage));
  }
  return value.view;
}

}  // namespace sinter
