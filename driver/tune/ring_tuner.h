// The rings of a language model's decode step, chosen on the device: by the time of a whole token
// through recorded graphs, at a given context.
#pragma once

#include "driver/compile/compile.h"
#include "driver/tune/ring_search.h"
#include "runtime/cuda/executor.h"

namespace sinter {

/// A plan on the device, and how it was compiled.
struct TunedPlan {
  Compiled* compiled = nullptr;  // its program becomes the one with the chosen forms
  CompileOptions options;
  std::shared_ptr<const CudaModel> model;
};

struct RingTuning {
  RingSearch search;
  // With the chosen forms, in the order of the plans given.
  std::vector<std::shared_ptr<const CudaModel>> models;
  double seconds = 0;     // that it took, without
  double products_s = 0;  // what the library's products took that were tuned on the way
};

/// Tunes the products of `plans[0]`'s entry decode that its options name no form for. A form must
/// fit all plans; the first one's token is timed. Every run's tokens are compared with those of the
/// usual forms, since no form may change a bit. `prompts`: run before a sample's steps, as in
/// bench_decode; `tokens`: the most steps of a sample. Nothing to choose (a device without rings,
/// all decided): no decisions, and the models as they are.
Result<RingTuning> tune_rings(llvm::ArrayRef<TunedPlan> plans,
                              llvm::ArrayRef<std::vector<int32_t>> prompts, int64_t tokens,
                              const std::function<void(const std::string&)>& on_stage);

}  // namespace sinter
