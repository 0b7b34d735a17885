// Strict numerics of a module: its entries are called in one session, fused beside unfused and,
// where that takes no time, beside float64.
#include <xxhash.h>

#include "driver/verify/error_bound.h"
#include "driver/verify/parts.h"
#include "driver/verify/precise_session.h"
#include "ir/op_flops.h"

namespace sinter {
namespace {

// Floating-point operations in float64, on the host, that are still worth waiting for.
constexpr double kMaxPreciseFlops = 4e10;

bool is_small(const EntryCalls& calls, llvm::ArrayRef<Symbol> symbols) {
  double total = 0;
  for (size_t i = 0; i < calls.list_size(); ++i)
    for (const Op& op : calls[i].entry->graph.ops())
      total += flops(calls[i].entry->graph, op, {symbols, calls[i].symbol_values});
  return total * static_cast<double>(calls.count() / calls.list_size()) < kMaxPreciseFlops;
}

/// The three runs of a session.
class ModuleCheck {
 public:
  ModuleCheck(const Plans& plans, const EntryCalls& calls, const CallsOptions& options,
              DTypeReport& report)
      : plans_(plans), calls_(calls), options_(options), report_(report) {}

  Status start(bool on_gpu) {
    check_kernels_ = on_gpu;
    SINTER_LET(fused, plans_.fused->new_session(calls_.session_values()));
    SINTER_LET(unfused, plans_.unfused->new_session(calls_.session_values()));
    fused_ = std::move(fused);
    unfused_ = std::move(unfused);
    if (options_.ranks || !is_small(calls_, plans_.module.symbols)) return {};
    SINTER_LET(precise, PreciseSession::create(plans_.module, *plans_.unfused));
    precise_.emplace(std::move(precise));
    return {};
  }

  /// Call `number` of the session; `reference`: compare its outputs with this file, or null.
  Status call(size_t number, const TensorFile* reference) {
    const auto& [entry, values] = calls_[number];
    SINTER_LET(inputs, calls_.inputs(number));
    const CallOptions run{.poison_freed = true,
                          .keep = plans_.common_values(entry->name),
                          .check_kernels = check_kernels_,
                          .ranks = options_.ranks,
                          .rank = options_.rank};
    SINTER_LET(fused, fused_->run(entry->name, values, addresses_of(inputs), run));
    SINTER_LET(unfused, unfused_->run(entry->name, values, addresses_of(inputs), run));
    SINTER_TRY(compare_runs(entry->name, fused, unfused, report_));
    if (options_.ranks) add_reduced(*plans_.module.find_entry(entry->name), fused);
    SINTER_TRY(compare_states(*fused_, *unfused_, plans_.fused->program(), report_));
    if (check_kernels_) report_.host_checked_calls += 2;
    const EntryPlan& plan = *plans_.fused->program().find_entry(entry->name);
    if (precise_) {
      SINTER_LET(exact, precise_->run(entry->name, values, inputs));
      for (size_t i = 0; i < exact.size(); ++i)
        if (is_float(fused.outputs[i].dtype))
          SINTER_TRY(add_errors(fmt::format("{} %{}", entry->name, plan.output_names[i]),
                                fused.outputs[i], unfused.outputs[i], exact[i], errors_));
    }
    return reference
               ? compare_outputs(*reference, *entry, plan.output_names, fused.outputs, report_)
               : Status();
  }

  /// The output that is farthest from float64, over all calls.
  void report_errors() {
    const ErrorBound* worst = nullptr;
    for (const ErrorBound& one : errors_)
      if (!worst || one.fused.max > worst->fused.max) worst = &one;
    if (!worst) return;
    report_.float64_value = worst->value;
    report_.fused_error = Accuracy{worst->fused.rms(), worst->fused.max};
    report_.unfused_error = Accuracy{worst->unfused.rms(), worst->unfused.max};
  }

 private:
  /// The results of all_reduce are the same for all ranks.
  void add_reduced(const Entry& entry, const RunResult& run) {
    for (const auto& [name, tensor] : run.kept) {
      const auto is_sum = [&name = name](const Op& op) {
        return op.kind == OpKind::all_reduce && op.name == name;
      };
      if (llvm::none_of(entry.graph.ops(), is_sum)) continue;
      ++report_.reduced_values;
      report_.reduced_hash =
          XXH3_64bits_withSeed(tensor.bytes.data(), tensor.bytes.size(), report_.reduced_hash);
    }
  }

  const Plans& plans_;
  const EntryCalls& calls_;
  const CallsOptions& options_;
  DTypeReport& report_;
  bool check_kernels_ = false;
  std::unique_ptr<Session> fused_, unfused_;
  std::optional<PreciseSession> precise_;
  std::vector<ErrorBound> errors_;
};

std::set<std::string> output_names(const EntryCalls& calls) {
  std::set<std::string> names;
  for (size_t i = 0; i < calls.list_size(); ++i)
    for (const ValueId id : calls[i].entry->graph.outputs)
      names.insert(calls[i].entry->graph[id].name);
  return names;
}

}  // namespace

Status verify_module(const Plans& plans, const Model& model, const VerifyOptions& options,
                     DTypeReport& report) {
  SINTER_LET(calls, module_calls(model, options));
  std::optional<TensorFile> reference;
  if (!options.reference.empty()) {
    SINTER_LET(file, open_tensor_file(options.reference));
    SINTER_TRY(name_only_tensor(file, output_names(calls), "output"));
    SINTER_TRY(refuse_unknown_tensors(file, model.module));
    reference.emplace(std::move(file));
  }
  ModuleCheck check(plans, calls, options.calls, report);
  SINTER_TRY(check.start(options.backend->on_gpu()));
  for (size_t i = 0; i < calls.count(); ++i)
    SINTER_TRY(check.call(i, reference && calls.is_last(i) ? &*reference : nullptr));
  check.report_errors();
  if (reference && report.reference.empty())
    return fail(
        "the file has no tensor of an output", reference->path(),
        fmt::format(
            "name them as `sinter run --out` does, for example {}.{}",
            printable(calls[0].entry->name),
            printable(
                plans.fused->program().find_entry(calls[0].entry->name)->output_names.front())));
  return {};
}

Result<EntryCalls> module_calls(const Model& model, const VerifyOptions& options) {
  CallsOptions calls = options.calls;
  if (!calls.seed) calls.seed = options.seed;
  return EntryCalls::open(model, calls);
}

}  // namespace sinter
