// The forms of the kernels of a language model's decode step, chosen on the device: by the time of
// a whole token through recorded graphs, at a given context.
#pragma once

#include "driver/compile/compile.h"
#include "driver/tune/form_search.h"
#include "runtime/cuda/executable.h"

namespace sinter {

/// A plan on the device, and how it was compiled.
struct TunedPlan {
  Compiled* compiled = nullptr;  // its program becomes the one with the chosen forms
  CompileOptions options;
  std::shared_ptr<const CudaExecutable> executable;
};

struct FormTuning {
  FormSearch search;
  // With the chosen forms, in the order of the plans given.
  std::vector<std::shared_ptr<const CudaExecutable>> executables;
  double seconds = 0;     // that it took, without
  double products_s = 0;  // what the library's products took that were tuned on the way
};

/// Tunes the kernels of `plans[0]`'s entry decode whose families have forms (KernelFamily::tuning)
/// and that its options name none for. A form must fit all plans; the first one's token is timed.
/// Every run's tokens are compared with the usual forms' tokens, since no form may change a bit.
/// `prompts`: run before a sample's steps, as in bench_decode; `tokens`: the most steps of a
/// sample. Nothing to choose (a device without forms, all decided): no decisions, and the models as
/// they are.
Result<FormTuning> tune_forms(llvm::ArrayRef<TunedPlan> plans,
                              llvm::ArrayRef<std::vector<int32_t>> prompts, int64_t tokens,
                              const std::function<void(const std::string&)>& on_stage);

}  // namespace sinter
