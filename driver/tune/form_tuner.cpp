#include "driver/tune/form_tuner.h"

#include <algorithm>

#include "driver/measure/decode_runs.h"
#include "kernels/library.h"
#include "kernels/registry.h"

namespace sinter {
namespace {

// Timed steps of a sample: enough that a sample's noise stays below kFormMargin.
constexpr int64_t kTimedSteps = 24;

/// The kernels of the entry decode that have forms, in the order in which they run, each with its
/// candidates.
std::vector<FormQuestion> questions_of_decode(const Program& program,
                                              const DeviceDescription& device) {
  std::vector<FormQuestion> questions;
  const EntryPlan* decode = program.find_entry("decode");
  if (!decode) return questions;
  for (const Step& step : decode->steps) {
    const Kernel* kernel = step_facts(program, step).kernel;
    if (!kernel) continue;
    const Graph& group = kernel->group;
    for (const Op& op : group.ops()) {
      const KernelFamily* family = anchored_by(op);
      if (!family || !family->tuning) continue;
      FormQuestion question{
          std::string(family->name), family->tuning->key(group, op, program.symbols), {}};
      if (llvm::any_of(questions, [&](const FormQuestion& known) {
            return known.family == question.family && known.key == question.key;
          }))
        continue;
      question.candidates = family->tuning->candidates(group, op, program.symbols, device);
      questions.push_back(std::move(question));
    }
  }
  return questions;
}

class FormTuner {
 public:
  FormTuner(llvm::ArrayRef<TunedPlan> plans, llvm::ArrayRef<std::vector<int32_t>> prompts,
            int64_t tokens)
      : plans_(plans),
        prompts_(prompts),
        tokens_(std::min(tokens, kTimedSteps)),
        kernels_(plans[0].executable->cuda_device(), kernel_library(), KernelCache::of_user()) {}

  /// The kernels without a form, and of their candidates those that fit all plans. Their kernels
  /// are compiled at once.
  Result<std::vector<FormQuestion>> questions() {
    SINTER_LET(device, find_device(plans_[0].options.target));
    std::vector<FormQuestion> all = questions_of_decode(plans_[0].executable->program(), device);
    llvm::erase_if(all, [&](const FormQuestion& question) {
      const auto decided = plans_[0].options.forms.find(question.family);
      return question.candidates.size() < 2 ||
             (decided != plans_[0].options.forms.end() && decided->second.contains(question.key));
    });
    std::vector<std::shared_ptr<const Program>> programs;
    std::vector<const Kernel*> kernels;
    for (FormQuestion& question : all) {
      std::vector<TunedForm> fitting;
      for (const TunedForm& form : question.candidates) {
        SINTER_LET(program, plan_if_fits({{question.family, {{question.key, form}}}}));
        if (!program && fitting.empty()) break;  // not even as a recorded form does the usual one
        if (!program) continue;
        fitting.push_back(form);
        for (const Kernel& kernel : program->kernels) kernels.push_back(&kernel);
        programs.push_back(std::move(program));
      }
      question.candidates = std::move(fitting);
    }
    llvm::erase_if(all, [](const FormQuestion& q) { return q.candidates.size() < 2; });
    SINTER_TRY(kernels_.add(kernels));
    return all;
  }

  /// Seconds of a token of the first plan.
  Result<double> time(const TunedForms& forms) {
    SINTER_LET(runs, runs_of(forms));
    SINTER_LET(run, runs->run());
    if (expected_.empty()) expected_ = run.tokens;
    if (run.tokens != expected_)
      return fail("another form changes the tokens", name_of(forms), "this is a bug of the kernels",
                  ExitCode::internal_error);
    return run.times.device_s / static_cast<double>(tokens_);
  }

  Result<std::shared_ptr<const CudaExecutable>> executable_of(size_t plan,
                                                              const TunedForms& forms) {
    if (forms.empty()) return plans_[plan].executable;
    auto& executable = executables_[{plan, name_of(forms)}];
    if (executable) return executable;
    SINTER_LET(program, plan_with(plan, forms));
    SINTER_LET(made, plans_[plan].executable->with_program(std::move(program), kernels_));
    executable = std::move(made);
    return executable;
  }

 private:
  /// After the prompts; they run for two sets of forms in turns, whose caches are kept.
  Result<DecodeRuns*> runs_of(const TunedForms& forms) {
    const std::string name = name_of(forms);
    const auto kept = llvm::find_if(runs_, [&](const auto& runs) { return runs.first == name; });
    if (kept == runs_.end()) {
      if (runs_.size() == 2) runs_.erase(runs_.begin());
      SINTER_LET(executable, executable_of(0, forms));
      SINTER_LET(runs, DecodeRuns::create(std::move(executable), prompts_, tokens_));
      runs_.emplace_back(name, std::move(runs));
      SINTER_TRY(runs_.back().second.run());  // what comes just after a prompt is slower
    } else {
      std::rotate(kept, kept + 1, runs_.end());
    }
    return &runs_.back().second;
  }

  Result<std::shared_ptr<const Program>> plan_with(size_t plan, const TunedForms& forms) const {
    CompileOptions options = plans_[plan].options;
    for (const auto& [family, own] : forms)
      for (const auto& [key, form] : own) options.forms[family][key] = form;
    return plan_with_forms(*plans_[plan].compiled, options);
  }

  /// The first plan; null where a plan's kernel has no room for the forms.
  Result<std::shared_ptr<const Program>> plan_if_fits(const TunedForms& forms) const {
    std::shared_ptr<const Program> first;
    for (size_t i = plans_.size(); i-- > 0;) {
      auto program = plan_with(i, forms);
      if (!program && program.error().code == ExitCode::bad_input)
        return std::shared_ptr<const Program>();
      if (!program) return tl::make_unexpected(std::move(program.error()));
      first = std::move(*program);
    }
    return first;
  }

  static std::string name_of(const TunedForms& forms) {
    std::string name;
    for (const auto& [family, own] : forms)
      for (const auto& [key, form] : own)
        name += fmt::format("{}{} {}: {}", name.empty() ? "" : "; ", family, key, to_string(form));
    return name;
  }

  llvm::ArrayRef<TunedPlan> plans_;
  llvm::ArrayRef<std::vector<int32_t>> prompts_;
  int64_t tokens_;
  CudaKernels kernels_;
  std::map<std::pair<size_t, std::string>, std::shared_ptr<const CudaExecutable>> executables_;
  std::vector<std::pair<std::string, DecodeRuns>> runs_;  // by forms, the last used last
  std::vector<int32_t> expected_;                         // tokens of every run
};

}  // namespace

Result<FormTuning> tune_forms(llvm::ArrayRef<TunedPlan> plans,
                              llvm::ArrayRef<std::vector<int32_t>> prompts, int64_t tokens,
                              const std::function<void(const std::string&)>& on_stage) {
  const auto begin = Clock::now();
  const CudaGemm& gemm = plans[0].executable->gemm();
  FormTuning tuning;
  tuning.products_s = -gemm.tuning_seconds();
  FormTuner tuner(plans, prompts, tokens);
  SINTER_LET(questions, tuner.questions());
  if (!questions.empty()) {
    SINTER_TRY(tuner.time({}));  // the library's products are decided, code is loaded
    int runs = 0;
    SINTER_LET(search, search_forms(questions, [&](const TunedForms& forms) {
                 if (on_stage) on_stage(fmt::format("tuning forms, run {}", ++runs));
                 return tuner.time(forms);
               }));
    tuning.search = std::move(search);
  }
  const TunedForms chosen = forms_of(tuning.search.decisions);
  for (size_t i = 0; i < plans.size(); ++i) {
    SINTER_LET(executable, tuner.executable_of(i, chosen));
    plans[i].compiled->program = {executable, &executable->program()};
    tuning.executables.push_back(std::move(executable));
  }
  tuning.products_s += gemm.tuning_seconds();
  tuning.seconds = seconds_since(begin) - tuning.products_s;
  return tuning;
}

}  // namespace sinter
