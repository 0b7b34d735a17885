#include "kernels/gemv/schedule.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>

#include "ir/integers.h"
#include "kernels/gemv/layout.h"

namespace sinter {
namespace {

// Shared memory of a gemv's block: static memory of the prologue's reductions and the system's own;
// the sums, the warps' sums of two tiles; barriers and pipelines, where the device has bulk copies.
constexpr int64_t kOtherBytes = 2048;
constexpr int64_t kMaxSumBytes = 32 * 1024;
constexpr int64_t kTileBytes = 2048;     // for each token
constexpr int64_t kBarrierBytes = 4096;  // and what alignment and an odd number of tokens take
constexpr int64_t kMinPipelineBytes = 66 * 1024;

constexpr int64_t kUsualStageBytes = 2048;

/// Steps of kStageStep elements in a stage, for a split of `split` steps: near `wanted`, such that
/// the last stage of the split wastes least.
int64_t stage_steps(int64_t split, int64_t wanted) {
  int64_t best = wanted, waste = ceil_div(split, wanted) * wanted - split;
  for (const int64_t steps : {wanted + 1, wanted - 1})
    if (steps > 0 && ceil_div(split, steps) * steps - split < waste)
      best = steps, waste = ceil_div(split, steps) * steps - split;
  return std::min(best, split);
}

int64_t split_steps(const GemvProduct& product) {
  return ceil_div(ceil_div(product.length, product.splits), product.step_length());
}

GemvForm usual_form(const GemvProduct& product) {
  const int64_t step_bytes = product.step_bytes();
  const int64_t steps = std::max<int64_t>((kUsualStageBytes + step_bytes / 2) / step_bytes, 1);
  return {.warps = kTileWarps,
          .stage_bytes = stage_steps(split_steps(product), steps) * step_bytes,
          .stages = kGemvStages / gemv_rows_at_once(1, product.codes.has_value())};
}

/// Whether a kernel can have the form at all, whatever shared memory it takes.
bool is_possible(const GemvForm& form, const GemvProduct& product,
                 const DeviceDescription& device) {
  const int64_t step_bytes = product.step_bytes();
  return device.has.bulk_copy && (form.warps == kTileWarps || form.warps == kFewGemvWarps) &&
         product.splits <= form.warps && form.stages >= kMinGemvStages &&
         form.stages <= kMaxGemvStages && form.stage_bytes > 0 &&
         form.stage_bytes % step_bytes == 0 &&
         form.stage_bytes <= split_steps(product) * step_bytes;
}

}  // namespace

int64_t gemv_operand_limit(const DeviceDescription& device) {
  const int64_t pipelines = device.has.bulk_copy ? kMinPipelineBytes : 0;
  return device.max_shared_bytes - kOtherBytes - kMaxSumBytes - kTileTokens * kTileBytes -
         pipelines;
}

std::optional<GemvConfig> schedule_gemv(const GemvProduct& product, int64_t units,
                                        const DeviceDescription& device, const GemvForm* wanted) {
  const int64_t rows = product.rows, length = product.length, splits = product.splits;
  const int64_t tokens = product.tokens, element_bytes = whole_bytes(product.dtype);
  if (wanted && !is_possible(*wanted, product, device)) return std::nullopt;
  const GemvForm form = wanted ? *wanted : usual_form(product);
  const bool tiles = element_bytes == 2;  // of several tokens
  GemvConfig config;
  config.operand_bytes = gemv_operand_limit(device);
  config.warps = form.warps;
  config.stage_length = form.stage_bytes / product.step_bytes() * product.step_length();
  config.stages = form.stages;
  const int64_t results = rows / units;
  const auto sum_bytes = [&](int64_t blocks) {
    return ceil_div(results, blocks) * units * splits * tokens * int64_t{sizeof(float)};
  };
  config.blocks = std::min(device.multiprocessors, results);
  while (sum_bytes(config.blocks) > kMaxSumBytes && config.blocks < results)
    config.blocks = std::min(config.blocks + device.multiprocessors, results);
  if (sum_bytes(config.blocks) > kMaxSumBytes) return std::nullopt;
  // No more than is of use: the rest of a multiprocessor's memory lets the next kernel's blocks in.
  // The larger of the sizes for one token and for several: two blocks of one launch must not share
  // a multiprocessor.
  const bool pipelined = device.has.bulk_copy;
  const int64_t together = gemv_rows_at_once(1, product.codes.has_value());
  const int64_t one = config.warps * form.stages * form.stage_bytes * together;
  const int64_t several = kTileWarps * 2 * kTileRows * kTileStageLength * int64_t{2};
  config.pipeline_bytes = kBarrierBytes + (pipelined ? std::max(one, several) : 0);
  const int64_t operand_bytes = gemv_operand_bytes(
      static_cast<int>(length), static_cast<int>(element_bytes), product.codes.has_value(),
      static_cast<int>(tokens), static_cast<int>(config.operand_bytes));
  config.token_bytes = sum_bytes(config.blocks) / tokens + kTileBytes + operand_bytes;
  config.shared_bytes = device.max_shared_bytes - kOtherBytes;
  for (int64_t n = 1; pipelined && n <= tokens; ++n) {
    const GemvLayout layout =
        gemv_layout({.warps = static_cast<int>(config.warps),
                     .rows = static_cast<int>(ceil_div(results, config.blocks) * units),
                     .splits = static_cast<int>(splits),
                     .tokens = static_cast<int>(n),
                     .operand_bytes = static_cast<int>(
                         n * operand_bytes <= config.operand_bytes ? operand_bytes : 0),
                     .element_bytes = static_cast<int>(element_bytes),
                     .step_length = static_cast<int>(product.step_length()),
                     .step_bytes = static_cast<int>(product.step_bytes()),
                     .stage_length = static_cast<int>(config.stage_length),
                     .packed = product.codes.has_value(),
                     .tiles = n > 1 && tiles,
                     .pipelined = true,
                     .stages = static_cast<int>(config.stages)});
    const int64_t bytes =
        std::min(config.shared_bytes, config.pipeline_bytes + n * config.token_bytes);
    // A form that was asked for is what one token gets.
    const int64_t least = wanted && n == 1 ? form.stages : std::min(1, layout.max_stages);
    if (layout.stages(static_cast<int>(bytes), static_cast<int>(config.warps)) < least)
      return std::nullopt;
  }
  return config;
}

std::vector<GemvForm> gemv_form_candidates(const GemvProduct& product,
                                           const DeviceDescription& device) {
  const int64_t step_bytes = product.step_bytes();
  const int64_t split = split_steps(product);
  const GemvForm usual = usual_form(product);
  const auto times = [&](int64_t numerator, int64_t denominator) {
    const int64_t steps = usual.stage_bytes / step_bytes * numerator / denominator;
    return stage_steps(split, std::clamp<int64_t>(steps, 1, split)) * step_bytes;
  };
  const int64_t whole = usual.stage_bytes, twice = times(2, 1), half = times(1, 2);
  const GemvForm all[] = {
      usual,
      // other depths, 96 to 192 KiB of a multiprocessor in flight where a stage has 2 KiB
      {kTileWarps, whole, 3},
      {kTileWarps, whole, 5},
      {kTileWarps, whole, 6},
      // longer and shorter stages
      {kTileWarps, twice, 2},
      {kTileWarps, twice, 3},
      {kTileWarps, half, 6},
      {kTileWarps, half, 8},
      // half as many warps: fewer barriers, other rests of the division of rows
      {kFewGemvWarps, whole, 8},
      {kFewGemvWarps, twice, 3},
      {kFewGemvWarps, twice, 4},
      {kFewGemvWarps, twice, 5},
  };
  std::vector<GemvForm> fitting;
  for (const GemvForm& form : all)
    if (!llvm::is_contained(fitting, form) && schedule_gemv(product, 1, device, &form))
      fitting.push_back(form);
  if (fitting.empty() || !(fitting.front() == usual)) return {};
  return fitting;
}

}  // namespace sinter
