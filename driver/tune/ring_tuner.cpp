#include "driver/tune/ring_tuner.h"

#include <algorithm>

#include "device/schedule.h"
#include "driver/measure/decode_runs.h"
#include "ir/op_roles.h"
#include "kernels/library.h"

namespace sinter {
namespace {

// Timed steps of a sample: enough that a sample's noise stays below kRingMargin.
constexpr int64_t kTimedSteps = 24;

/// The distinct products of the entry decode, in the order in which they run.
std::vector<MatvecProduct> products_of_decode(const Program& program) {
  std::vector<MatvecProduct> products;
  const EntryPlan* decode = program.find_entry("decode");
  if (!decode) return products;
  for (const Step& step : decode->steps) {
    const Kernel* kernel = step_facts(program, step).kernel;
    if (!kernel) continue;
    const Graph& group = kernel->group;
    for (const Op& op : group.ops()) {
      if (!has_role(op.kind, OperandRole::stream)) continue;
      const MatvecProduct product = matvec_product(group, op, program.symbols);
      if (llvm::none_of(products, [&](const auto& p) { return p.key() == product.key(); }))
        products.push_back(product);
    }
  }
  return products;
}

class RingTuner {
 public:
  RingTuner(llvm::ArrayRef<TunedPlan> plans, llvm::ArrayRef<std::vector<int32_t>> prompts,
            int64_t tokens)
      : plans_(plans),
        prompts_(prompts),
        tokens_(std::min(tokens, kTimedSteps)),
        kernels_(plans[0].model->cuda_device(), kernel_library(), KernelCache::of_user()) {}

  /// The products without a form, and of their candidates those that fit all plans. Their kernels
  /// are compiled at once.
  Result<std::vector<RingQuestion>> questions() {
    SINTER_LET(device, find_device(plans_[0].options.target));
    std::vector<RingQuestion> all;
    for (const MatvecProduct& product : products_of_decode(plans_[0].model->program()))
      if (!plans_[0].options.rings.contains(product.key()))
        if (auto rings = matvec_ring_candidates(product, device); rings.size() > 1)
          all.push_back({product.key(), std::move(rings)});
    std::vector<std::shared_ptr<const Program>> programs;
    std::vector<const Kernel*> kernels;
    for (RingQuestion& question : all) {
      std::vector<MatvecRing> fitting;
      for (const MatvecRing& ring : question.candidates) {
        SINTER_LET(program, plan_if_fits({{question.product, {ring, 0}}}));
        if (!program && fitting.empty()) break;  // not even as a recorded form does the usual one
        if (!program) continue;
        fitting.push_back(ring);
        for (const Kernel& kernel : program->kernels) kernels.push_back(&kernel);
        programs.push_back(std::move(program));
      }
      question.candidates = std::move(fitting);
    }
    llvm::erase_if(all, [](const RingQuestion& q) { return q.candidates.size() < 2; });
    SINTER_TRY(kernels_.add(kernels));
    return all;
  }

  /// Seconds of a token of the first plan.
  Result<double> time(const MatvecRings& rings) {
    SINTER_LET(runs, runs_of(rings));
    SINTER_LET(run, runs->run());
    if (expected_.empty()) expected_ = run.tokens;
    if (run.tokens != expected_)
      return fail("another form of rings changes the tokens", name_of(rings),
                  "this is a bug of the kernels", ExitCode::internal_error);
    return run.times.device_s / static_cast<double>(tokens_);
  }

  Result<std::shared_ptr<const CudaModel>> model_of(size_t plan, const MatvecRings& rings) {
    if (rings.empty()) return plans_[plan].model;
    auto& model = models_[{plan, name_of(rings)}];
    if (model) return model;
    SINTER_LET(program, plan_with(plan, rings));
    SINTER_LET(made, plans_[plan].model->with_program(std::move(program), kernels_));
    model = std::move(made);
    return model;
  }

 private:
  /// Behind the prompts; they run for two sets of forms in turns, whose caches are kept.
  Result<DecodeRuns*> runs_of(const MatvecRings& rings) {
    const std::string name = name_of(rings);
    const auto kept = llvm::find_if(runs_, [&](const auto& runs) { return runs.first == name; });
    if (kept == runs_.end()) {
      if (runs_.size() == 2) runs_.erase(runs_.begin());
      SINTER_LET(model, model_of(0, rings));
      SINTER_LET(runs, DecodeRuns::create(std::move(model), prompts_, tokens_));
      runs_.emplace_back(name, std::move(runs));
      SINTER_TRY(runs_.back().second.run());  // what comes just behind a prompt is slower
    } else {
      std::rotate(kept, kept + 1, runs_.end());
    }
    return &runs_.back().second;
  }

  Result<std::shared_ptr<const Program>> plan_with(size_t plan, const MatvecRings& rings) const {
    CompileOptions options = plans_[plan].options;
    for (const auto& [product, ring] : rings) options.rings[product] = ring;
    return plan_with_rings(*plans_[plan].compiled, options);
  }

  /// The first plan; null where a plan's kernel has no room for the rings.
  Result<std::shared_ptr<const Program>> plan_if_fits(const MatvecRings& rings) const {
    std::shared_ptr<const Program> first;
    for (size_t i = plans_.size(); i-- > 0;) {
      auto program = plan_with(i, rings);
      if (!program && program.error().code == ExitCode::bad_input)
        return std::shared_ptr<const Program>();
      if (!program) return tl::make_unexpected(std::move(program.error()));
      first = std::move(*program);
    }
    return first;
  }

  static std::string name_of(const MatvecRings& rings) {
    std::string name;
    for (const auto& [product, measured] : rings)
      name += fmt::format("{}{}: {}", name.empty() ? "" : ", ", product, to_string(measured.ring));
    return name;
  }

  llvm::ArrayRef<TunedPlan> plans_;
  llvm::ArrayRef<std::vector<int32_t>> prompts_;
  int64_t tokens_;
  CudaKernels kernels_;
  std::map<std::pair<size_t, std::string>, std::shared_ptr<const CudaModel>> models_;
  std::vector<std::pair<std::string, DecodeRuns>> runs_;  // by forms, the last used last
  std::vector<int32_t> expected_;                         // tokens of every run
};

}  // namespace

Result<RingTuning> tune_rings(llvm::ArrayRef<TunedPlan> plans,
                              llvm::ArrayRef<std::vector<int32_t>> prompts, int64_t tokens,
                              const std::function<void(const std::string&)>& on_stage) {
  const auto begin = Clock::now();
  const CudaGemm& gemm = plans[0].model->gemm();
  RingTuning tuning;
  tuning.products_s = -gemm.tuning_seconds();
  RingTuner tuner(plans, prompts, tokens);
  SINTER_LET(questions, tuner.questions());
  if (!questions.empty()) {
    SINTER_TRY(tuner.time({}));  // the library's products are decided, code is loaded
    int runs = 0;
    SINTER_LET(search, search_rings(questions, [&](const MatvecRings& rings) {
                 if (on_stage) on_stage(fmt::format("tuning rings, run {}", ++runs));
                 return tuner.time(rings);
               }));
    tuning.search = std::move(search);
  }
  const MatvecRings chosen = rings_of(tuning.search.decisions);
  for (size_t i = 0; i < plans.size(); ++i) {
    SINTER_LET(model, tuner.model_of(i, chosen));
    plans[i].compiled->program = {model, &model->program()};
    tuning.models.push_back(std::move(model));
  }
  tuning.products_s += gemm.tuning_seconds();
  tuning.seconds = seconds_since(begin) - tuning.products_s;
  return tuning;
}

}  // namespace sinter
