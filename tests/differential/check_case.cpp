#include "differential/check_case.h"

#include "differential/ended_outside.h"
#include "differential/random.h"
#include "differential/source_module.h"
#include "ir/op_roles.h"
#include "ir/side_results.h"
#include "ir/state_reads.h"
#include "ir/variants.h"
#include "ir/verifier.h"
#include "kernels/registry.h"
#include "passes/passes.h"
#include "runtime/compare.h"
#include "runtime/host/executable.h"
#include "runtime/host/run.h"

namespace sinter {
namespace {

constexpr int kCalls = 2;  // in one session
constexpr std::string_view kSecondEntry = "again";

#ifdef SINTER_PLANT_FAULTS
/// Switches a fault on for its own life.
class Planted {
 public:
  explicit Planted(std::optional<Fault> fault) { planted_fault.active = fault; }
  ~Planted() { planted_fault.active.reset(); }
};
#else
class Planted {
 public:
  explicit Planted(std::optional<Fault> fault) {
    SINTER_CHECK(!fault, "this build plants no faults");
  }
};
#endif

tl::unexpected<Error> stage(std::string_view what, Error error) {
  error.where = error.where.empty() ? std::string(what) : fmt::format("{}: {}", what, error.where);
  return tl::make_unexpected(std::move(error));
}

Status compare(std::string_view what, const HostTensor& expected, const HostTensor& actual) {
  SINTER_LET(difference, compare_bits(expected, actual));
  if (!difference) return {};
  return fail(to_string(*difference), std::string(what), "", ExitCode::check_failed);
}

/// A third of the modules as a text may write them: with an entry for each of up to kMaxVariants
/// ranges of N, none of which is 0 alone, for which some ops have no kernel. Other modules have the
/// variants that the passes make.
Module with_variants(Module module, uint64_t seed) {
  constexpr SymbolId kTokens{0};
  if (module.symbols.empty()) return module;
  Random random(seed);
  const Symbol& tokens = module.symbols[kTokens.index];
  if (random.chance(67) || tokens.high <= std::max<int64_t>(tokens.low, 1)) return module;
  std::vector<Entry> variants;
  for (int64_t low = tokens.low; low <= tokens.high; low = variants.back().range->high + 1) {
    const bool is_last = variants.size() + 1 == kMaxVariants;
    int64_t high = is_last ? tokens.high : random.between(std::max<int64_t>(low, 1), tokens.high);
    if (variants.empty()) high = std::min(high, tokens.high - 1);
    variants.push_back(module.entries[0]);
    variants.back().range = SymbolRange{kTokens, low, high};
  }
  Module varied = module;
  varied.entries = std::move(variants);
  // The type of mask_tiles may differ from range to range.
  return verify(varied) ? varied : module;
}

/// The same ops in another order; leaves come first.
Graph reordered(const Graph& graph, Random& random) {
  Graph result;
  std::vector<ValueId> moved(graph.size());
  StateWriters writers(graph);
  const auto is_there = [&](ValueId id) { return moved[id.index].valid(); };
  // Readers of a version of a state come before the op that writes the next one.
  const auto has_late_reader = [&](uint32_t writer) {
    for (uint32_t i = 0; i < writer; ++i)
      if (!is_there({i}) && op_class(graph.ops()[i]) != OpClass::view &&
          llvm::any_of(graph.ops()[i].operands,
                       [&](ValueId read) { return writers.writer_of(read) == ValueId{writer}; }))
        return true;
    return false;
  };
  while (result.size() < graph.size()) {
    std::vector<uint32_t> ready;
    for (uint32_t i = 0; i < graph.size(); ++i)
      if (const Op& op = graph.ops()[i]; !is_there({i}) && llvm::all_of(op.operands, is_there) &&
                                         !(writes_state(op) && has_late_reader(i)))
        ready.push_back(i);
    const auto leaf =
        llvm::find_if(ready, [&](uint32_t i) { return op_class(graph.ops()[i]) == OpClass::leaf; });
    const uint32_t next = leaf == ready.end() ? random.pick(ready) : *leaf;
    Op op = graph.ops()[next];
    for (ValueId& operand : op.operands) operand = moved[operand.index];
    moved[next] = result.add(std::move(op));
  }
  for (ValueId id : graph.inputs) result.inputs.push_back(moved[id.index]);
  for (ValueId id : graph.outputs) result.outputs.push_back(moved[id.index]);
  return result;
}

/// A fifth of the modules with states get a second entry over these states, which computes the same
/// in another order. Every second call is one of it.
Module with_second_entry(Module module, uint64_t seed) {
  Random random(seed + 2);
  if (module.states.empty() || random.chance(80)) return module;
  Graph again = reordered(module.entries[0].graph, random);
  module.entries.push_back({std::string(kSecondEntry), std::move(again)});
  return module;
}

/// Half of the modules go through passes before the pipeline: one pass alone, or several in any
/// order. Each is followed by the verifier.
Module after_some_passes(Module module, uint64_t seed, const PassOptions& options) {
  Random random(~seed);
  if (random.chance(50)) return module;
  for (int64_t count = random.chance(50) ? 1 : random.between(2, 20); count > 0; --count)
    run_pass(random.pick(pipeline()), module, options);
  return module;
}

/// After all passes there is nothing to copy: none of them takes back what materialize made.
Status check_copies(Module frozen) {
  if (materialize(frozen))
    return fail("a frozen module needs copies", "", "", ExitCode::check_failed);
  return {};
}

/// The pipeline with options that may change numbers: its modules are verified, and not run.
Status run_other_choices(Module module, uint64_t seed) {
  Random random(seed + 1);
  PassOptions options;
  options.device_inputs = random.chance(50);
  const auto drawn = [&](auto& choice) {
    choice = static_cast<std::remove_reference_t<decltype(choice)>>(random.between(0, 2));
  };
  drawn(options.recipe.products);
  drawn(options.recipe.attention);
  drawn(options.recipe.codes);
  options.recipe.has_wgmma = random.chance(70);
  run_passes(module, {}, options);
  return check_copies(std::move(module));
}

Result<Module> frozen_case(Module module, uint64_t seed, const Recipe& recipe,
                           std::optional<Fault> fault) {
  const Planted planted(fault);
  PassOptions options;
  options.recipe = recipe;
  module = with_second_entry(with_variants(std::move(module), seed), seed);
  module = after_some_passes(std::move(module), seed, options);
  SINTER_LET(frozen, freeze(std::move(module), {}, {}, options));
  SINTER_TRY(check_copies(frozen));
  return std::move(frozen);
}

/// The pass block_sums has acted, which changes the order of additions.
bool sums_blocks(const Module& frozen) {
  return llvm::any_of(frozen.entries, [](const Entry& entry) {
    for (uint32_t i = 0; i < entry.graph.size(); ++i)
      if (as_block_sums(entry.graph, ValueId{i})) return true;
    return false;
  });
}

const EntryPlan& called_entry(const Program& program, const Case& test, int call) {
  const auto* second = variant_for(program.entries, kSecondEntry, test.symbol_values);
  return second && call % 2 == 1 ? *second
                                 : *variant_for(program.entries, "main", test.symbol_values);
}

/// A plan, its session, and what the last call gave.
struct Runner {
  HostExecutable model;
  HostSession session;
  RunResult result;
  const Program* program;
  int calls = 0;

  static Result<Runner> load(const Compiled& compiled, const Case& test, const CaseData& data) {
    const CaseFiles files(data);
    SINTER_LET(model, HostExecutable::load(compiled.program, &files));
    SINTER_LET(session, HostSession::create(model, test.symbol_values));
    return Runner{std::move(model), std::move(session), {}, compiled.program.get()};
  }
  Status call(const Case& test, const CaseData& data, std::vector<std::string> keep = {}) {
    CallOptions options;
    options.poison_freed = true;
    options.keep = std::move(keep);
    const std::string& entry = called_entry(*program, test, calls++).name;
    SINTER_LET(ran, session.run(entry, test.symbol_values, addresses_of(data.inputs), options));
    result = std::move(ran);
    return {};
  }
};

/// Names of the buffers that kernels of the plan read and that are no input or weight.
std::vector<std::string> read_values(const Program& program, const EntryPlan& entry) {
  std::vector<std::string> names;
  for (const Step& step : entry.steps)
    if (const StepFacts facts = step_facts(program, step); facts.kernel)
      for (uint32_t input : facts.reads) {
        const Buffer& buffer = entry.buffers[input];
        const bool kept =
            buffer.place == Buffer::Place::arena || buffer.place == Buffer::Place::state;
        if (kept && !llvm::is_contained(names, buffer.value)) names.push_back(buffer.value);
      }
  return names;
}

std::vector<CheckedCase::Launch> launches(const Program& program, const EntryPlan& entry,
                                          const HostExecutable& model, const CaseData& data,
                                          const RunResult& result) {
  const auto contents = [&](const Buffer& buffer) -> const HostTensor& {
    if (buffer.place == Buffer::Place::input) return data.inputs[buffer.index];
    if (buffer.place == Buffer::Place::weight) return model.weight(buffer.index);
    const auto kept =
        llvm::find_if(result.kept, [&](const auto& k) { return k.first == buffer.value; });
    SINTER_CHECK(kept != result.kept.end(), "{}", buffer.value);
    return kept->second;
  };
  std::vector<CheckedCase::Launch> result_launches;
  for (const Step& step : entry.steps)
    if (const StepFacts facts = step_facts(program, step); facts.kernel) {
      CheckedCase::Launch launch{static_cast<uint32_t>(facts.kernel - program.kernels.data()), {}};
      for (uint32_t input : facts.reads) launch.inputs.push_back(contents(entry.buffers[input]));
      result_launches.push_back(std::move(launch));
    }
  return result_launches;
}

/// The module that was generated, beside a plan that shows what its contractions gave.
class SourceComparison {
 public:
  /// `with_sums`: the passes may have changed the order of sums down columns.
  static Result<SourceComparison> create(const Case& test, const CaseData& data, uint64_t seed,
                                         bool with_sums) {
    ObservedModule observed = observe_contractions(test.module, with_sums);
    SourceModule source(test, data, observed.contractions);
    if (observed.contractions.empty()) return SourceComparison(std::move(source), {}, 0);
    SINTER_LET(frozen, frozen_case(std::move(observed.module), seed, test.recipe, {}));
    CompileOptions separate;
    separate.fusion.enabled = false;
    SINTER_LET(compiled, compile(std::move(frozen), separate));
    SINTER_LET(runner, Runner::load(compiled, test, data));
    return SourceComparison(std::move(source), std::move(runner), observed.contractions.size());
  }

  /// `runner` has made a call on this data.
  Status call(const Case& test, const CaseData& data, const Runner& runner, const Program& program,
              SourceCheck& check) {
    llvm::ArrayRef<HostTensor> contractions;
    if (observed_) {
      SINTER_TRY(observed_->call(test, data));
      contractions = llvm::ArrayRef(observed_->result.outputs).take_back(contractions_);
    }
    SINTER_LET(expected, source_.call(data.inputs, contractions, check.elements));
    check.contractions += static_cast<int64_t>(contractions.size());
    const Graph& entry = test.module.entries[0].graph;
    for (size_t i = 0; i < expected.size(); ++i)
      SINTER_TRY(compare(
          fmt::format("output {} (%{}), evaluated and fused", i, entry[entry.outputs[i]].name),
          expected[i], runner.result.outputs[i]));
    // A state that nothing needs is not in the plan.
    for (size_t i = 0; i < program.states.size(); ++i)
      SINTER_TRY(compare(fmt::format("state %{}, evaluated and fused", program.states[i].name),
                         source_.states().at(program.states[i].name), runner.session.states()[i]));
    return {};
  }

 private:
  SourceComparison(SourceModule source, std::optional<Runner> observed, size_t contractions)
      : source_(std::move(source)), observed_(std::move(observed)), contractions_(contractions) {}

  SourceModule source_;
  std::optional<Runner> observed_;  // of a module that has contractions
  size_t contractions_;
};

Result<Compiled> compile_fused(Module frozen, std::optional<Fault> fault, Numerics numerics) {
  const Planted planted(fault);
  CompileOptions options;
  options.fusion.numerics = numerics;
  return compile(std::move(frozen), options);
}

}  // namespace

Result<CheckedCase> check_plans(const Case& test, uint64_t data_seed, bool keep_launches,
                                std::optional<Fault> fault, Numerics numerics) {
  const bool strict = numerics == Numerics::strict;
  SINTER_TRY(run_other_choices(test.module, data_seed));
  auto frozen = frozen_case(test.module, data_seed, test.recipe, fault);
  if (!frozen) return stage("passes", std::move(frozen.error()));
  const bool with_sums = sums_blocks(*frozen);
  CompileOptions separate;
  separate.fusion.enabled = false;
  auto unfused = compile(*frozen, separate);
  if (!unfused) return stage("unfused plan", std::move(unfused.error()));
  auto fused = compile_fused(std::move(*frozen), fault, numerics);
  if (!fused) return stage("fused plan", std::move(fused.error()));

  std::vector<CaseData> data;
  for (int call = 0; call < kCalls; ++call) {
    SINTER_LET(made, random_data(test, data_seed + static_cast<uint64_t>(call)));
    data.push_back(std::move(made));
  }
  SINTER_LET(reference, Runner::load(*unfused, test, data[0]));
  SINTER_LET(runner, Runner::load(*fused, test, data[0]));
  std::optional<SourceComparison> source;
  if (strict) {
    auto made = SourceComparison::create(test, data[0], data_seed, with_sums);
    if (!made) return stage("plan with contractions as results", std::move(made.error()));
    source.emplace(std::move(*made));
  }
  CheckedCase checked{fused->program, test.symbol_values, {}, {}, {}, false};
  if (source) checked.source.emplace();
  for (const Fusion& fusion : fused->fusions)
    for (const LedgerEntry& entry : fusion.ledger)
      checked.verdicts.emplace_back(reason_id(entry.verdict.reason));
  const Program& program = *fused->program;
  for (int call = 0; call < kCalls; ++call) {
    const EntryPlan& entry = called_entry(program, test, call);
    const bool keep = keep_launches && call + 1 == kCalls;
    Status unfused_ran = reference.call(test, data[call]);
    Status fused_ran = runner.call(test, data[call],
                                   keep ? read_values(program, entry) : std::vector<std::string>());
    if (ended_outside(unfused_ran) && ended_outside(fused_ran)) {
      if (unfused_ran.error().message() != fused_ran.error().message())
        return stage("unfused run", std::move(unfused_ran.error()));
      for (size_t i = 0; strict && i < program.states.size(); ++i)
        SINTER_TRY(compare(fmt::format("call {}, state %{}, unfused and fused, after an error",
                                       call, program.states[i].name),
                           reference.session.states()[i], runner.session.states()[i]));
      checked.ended_outside = true;
      return checked;
    }
    if (!unfused_ran) return stage("unfused run", std::move(unfused_ran.error()));
    if (!fused_ran) return stage("fused run", std::move(fused_ran.error()));
    for (size_t i = 0; strict && i < reference.result.outputs.size(); ++i)
      SINTER_TRY(compare(fmt::format("call {}, output {} (%{}), unfused and fused", call, i,
                                     entry.output_names[i]),
                         reference.result.outputs[i], runner.result.outputs[i]));
    for (size_t i = 0; strict && i < program.states.size(); ++i)
      SINTER_TRY(compare(
          fmt::format("call {}, state %{}, unfused and fused", call, program.states[i].name),
          reference.session.states()[i], runner.session.states()[i]));
    if (source)
      if (Status same = source->call(test, data[call], runner, program, *checked.source); !same)
        return stage(fmt::format("call {}", call), std::move(same.error()));
  }
  if (keep_launches)
    checked.launches = launches(program, called_entry(program, test, kCalls - 1), runner.model,
                                data.back(), runner.result);
  return checked;
}

void check_kernels(llvm::ArrayRef<CheckedCase> cases, const std::function<void(size_t)>& before,
                   const std::function<void(size_t, const Status&)>& report) {
  const auto kernels_of = [&](llvm::ArrayRef<CheckedCase> some) {
    std::vector<const Kernel*> kernels;
    for (const CheckedCase& checked : some)
      for (const CheckedCase::Launch& launch : checked.launches)
        kernels.push_back(&checked.fused->kernels[launch.kernel]);
    return kernels;
  };
  auto all = KernelShim::compile(kernels_of(cases));
  for (size_t i = 0; i < cases.size(); ++i) {
    before(i);
    // Text that does not compile: one case at a time, to find whose it is.
    std::optional<Result<KernelShim>> own;
    if (!all) own = KernelShim::compile(kernels_of(cases[i]));
    Result<KernelShim>& shim = all ? all : *own;
    Status status;
    if (!shim) status = tl::make_unexpected(shim.error());
    for (const CheckedCase::Launch& launch : cases[i].launches) {
      if (!status) break;
      status = check_kernel(*shim, cases[i].fused->kernels[launch.kernel], cases[i].fused->symbols,
                            cases[i].symbol_values, addresses_of(launch.inputs));
    }
    report(i, status);
  }
}

}  // namespace sinter
