// Every entry of a module. A call is short, and its operands may fit in the second-level cache: so
// many calls, each on memory of its own, are recorded in one graph, and its launches are timed.
#include <algorithm>

#include "driver/bench_parts.h"
#include "driver/decoder.h"
#include "driver/plan_summary.h"
#include "runtime/compare.h"
#include "runtime/random_inputs.h"

namespace sinter {
namespace {

constexpr int64_t kLeastSets = 3, kMostSets = 32768;
constexpr size_t kTimesCache = 4;     // all sets take this many times the second-level cache
constexpr int64_t kLeastCalls = 8;    // of one graph
constexpr int64_t kWarmLaunches = 3;  // of each graph
constexpr unsigned char kPoison = 0xFF;
constexpr size_t kLeastCopy = 32;     // bytes; see CudaCeilings::copy

size_t aligned(size_t bytes) {
  return (std::max<size_t>(bytes, 1) + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

/// The same inputs at many places.
class InputSets {
 public:
  static Result<InputSets> create(CudaDevicePtr device, llvm::ArrayRef<HostTensor> inputs, int64_t count) {
    InputSets sets;
    for (const HostTensor& input : inputs) {
      sets.offsets_.push_back(sets.stride_);
      sets.stride_ += aligned(input.bytes.size());
    }
    SINTER_LET(memory, CudaMemory::allocate(device, sets.stride_ * static_cast<size_t>(count), "the inputs"));
    sets.memory_ = std::move(memory);
    SINTER_LET(stream, CudaStream::create(std::move(device)));
    for (size_t i = 0; i < inputs.size(); ++i)
      SINTER_TRY(stream.copy_to_device(sets.memory_.address() + sets.offsets_[i], inputs[i].bytes));
    if (sets.stride_ > 0)
      for (size_t done = 1, more = 0, all = static_cast<size_t>(count); done < all; done += more) {
        more = std::min(done, all - done);
        SINTER_TRY(stream.copy_on_device(sets.memory_.address() + done * sets.stride_, sets.memory_.address(), more * sets.stride_));
      }
    SINTER_TRY(stream.synchronize("uploading the inputs"));
    return sets;
  }

  std::vector<CudaAddress> addresses(size_t set) const {
    std::vector<CudaAddress> result;
    for (size_t offset : offsets_) result.push_back(memory_.address() + set * stride_ + offset);
    return result;
  }

 private:
  CudaMemory memory_;
  size_t stride_ = 0;
  std::vector<size_t> offsets_;
};

/// What is measured: an entry at given sizes.
struct EntryCall {
  std::string name;
  std::vector<int64_t> sizes;  // of all symbols
  int64_t sets = 1;
  int64_t rounds = 1;  // over the sets, in one graph
  uint64_t seed = 1;
  int64_t calls() const { return sets * rounds; }
};

/// Calls of one plan's entry, one after the other in a graph; each set has its arena and, where the
/// module has states, its states.
class RecordedCalls {
 public:
  static Result<RecordedCalls> create(const std::shared_ptr<const CudaModel>& model, const EntryCall& call,
                                      const InputSets& inputs) {
    RecordedCalls recorded;
    SINTER_TRY(recorded.place(model, call, inputs));
    const CudaStream& stream = recorded.stream();
    SINTER_TRY(stream.synchronize("filling the arenas and states"));
    SINTER_LET(graph, CudaGraph::record(stream, [&]() -> Status {
      for (int64_t round = 0; round < call.rounds; ++round)
        for (size_t set = 0; set < recorded.calls_.size(); ++set)
          SINTER_TRY(recorded.session(set).enqueue(recorded.calls_[set], stream));
      return {};
    }));
    recorded.graph_ = std::move(graph);
    SINTER_LET(watch, Stopwatch::create(model->cuda_device()));
    recorded.watch_ = std::move(watch);
    return recorded;
  }

  Result<Stopwatch::Times> run() {
    SINTER_TRY(watch_.start(stream()));
    SINTER_TRY(graph_.launch(stream()));
    return watch_.stop(stream());
  }

  /// Of the last set.
  Result<HostTensor> output(size_t index) const {
    const CudaCall& call = calls_.back();
    const TensorType& type = call.entry->buffers[call.entry->outputs[index]].type;
    SINTER_LET(tensor, make_tensor(type.dtype, concrete_dims(type, call.symbol_values)));
    SINTER_TRY(stream().copy_to_host(tensor.bytes, call.output(index)));
    SINTER_TRY(stream().synchronize("reading an output"));
    return std::move(tensor);
  }
  size_t outputs() const { return calls_.back().entry->outputs.size(); }

 private:
  const CudaSession& session(size_t set) const { return *sessions_[std::min(set, sessions_.size() - 1)]; }
  const CudaStream& stream() const { return sessions_[0]->stream(); }

  Status place(const std::shared_ptr<const CudaModel>& model, const EntryCall& call, const InputSets& inputs) {
    const auto sets = static_cast<size_t>(call.sets);
    for (size_t i = 0; i < (model->program().states.empty() ? 1 : sets); ++i) {
      SINTER_LET(session, CudaSession::create(model, call.sizes));
      sessions_.push_back(std::move(session));
    }
    SINTER_LET(arena_bytes, sessions_[0]->arena_bytes(call.name, call.sizes));
    SINTER_LET(arenas, CudaMemory::allocate(model->cuda_device(), aligned(arena_bytes) * sets, "the arenas"));
    arenas_ = std::move(arenas);
    SINTER_TRY(stream().fill(arenas_.address(), kPoison, arenas_.bytes()));
    for (size_t set = 0; set < sets; ++set) {
      SINTER_LET(placed, session(set).place(call.name, call.sizes, inputs.addresses(set),
                                            arenas_.address() + set * aligned(arena_bytes)));
      SINTER_TRY(session(set).prepare(placed));
      SINTER_TRY(fill_states(placed, call.seed));
      calls_.push_back(std::move(placed));
    }
    return {};
  }

  /// With random numbers: zeros would be no measure.
  Status fill_states(const CudaCall& call, uint64_t seed) const {
    for (size_t id = 0; id < call.entry->buffers.size(); ++id) {
      const Buffer& buffer = call.entry->buffers[id];
      if (buffer.place != Buffer::Place::state || buffer.version > 0) continue;
      SINTER_LET(tensor, random_tensor(buffer.type.dtype, concrete_dims(buffer.type, call.symbol_values), seed + buffer.index));
      SINTER_TRY(stream().copy_to_device(call.addresses[id], tensor.bytes));
      SINTER_TRY(stream().synchronize("filling a state"));
    }
    return {};
  }

  std::vector<std::unique_ptr<CudaSession>> sessions_;  // one, or one a set
  CudaMemory arenas_;
  std::vector<CudaCall> calls_;  // one a set
  CudaGraph graph_;
  Stopwatch watch_;
};

Result<std::vector<int64_t>> sizes_of(const BenchPlans& plans, const BenchOptions& options) {
  const llvm::ArrayRef<Symbol> symbols = plans.frozen.symbols;
  std::vector<int64_t> sizes = least_symbol_values(symbols);
  std::string names;
  for (const Symbol& symbol : symbols) names += (names.empty() ? "" : ", ") + printable(symbol.name);
  for (const auto& [name, value] : options.symbols) {
    const int symbol = find_symbol(symbols, name);
    if (symbol < 0)
      return fail(fmt::format("the module has no symbol {}", printable(name)), "--symbol",
                  names.empty() ? "its sizes are constants" : "it has " + names, ExitCode::usage);
    sizes[static_cast<size_t>(symbol)] = value;
  }
  if (Status valid = check_symbol_values(symbols, sizes); !valid) {
    valid.error().hint = "give sizes with --symbol NAME=VALUE";
    return tl::make_unexpected(std::move(valid.error()));
  }
  return sizes;
}

/// Sets that take at least kTimesCache times the cache, inputs, states and the smaller arena counted.
Result<int64_t> count_sets(const BenchPlans& plans, const EntryPlan& fused, const EntryPlan& unfused,
                           llvm::ArrayRef<HostTensor> inputs, llvm::ArrayRef<int64_t> sizes) {
  const auto a = fused.arena_bytes.evaluate(sizes), b = unfused.arena_bytes.evaluate(sizes);
  if (!a || !b) return fail("the arena's size exceeds 63 bits", "entry " + printable(fused.name));
  size_t bytes = static_cast<size_t>(std::min(*a, *b));
  for (const HostTensor& input : inputs) bytes += input.bytes.size();
  for (const State& state : plans.frozen.states)
    bytes += static_cast<size_t>(storage_bytes(state.type, plans.frozen.symbols).evaluate(sizes).value_or(0));
  const size_t wanted = kTimesCache * plans.device()->l2_bytes() / std::max<size_t>(bytes, 1) + 1;
  return std::clamp(static_cast<int64_t>(std::min<size_t>(wanted, kMostSets)), kLeastSets, kMostSets);
}

/// Runs both plans in turns; leaves nothing on the device.
Status measure(BenchPlans& plans, const EntryCall& call, llvm::ArrayRef<HostTensor> inputs, int64_t repeat,
               BenchCase& result) {
  const auto begin = std::chrono::steady_clock::now();
  SINTER_LET(sets, InputSets::create(plans.device(), inputs, call.sets));
  SINTER_LET(fused, RecordedCalls::create(plans.fused, call, sets));
  SINTER_LET(unfused, RecordedCalls::create(plans.unfused, call, sets));
  for (int64_t i = 0; i < kWarmLaunches; ++i) {
    SINTER_TRY(fused.run());
    SINTER_TRY(unfused.run());
  }
  for (size_t i = 0; i < fused.outputs(); ++i) {
    SINTER_LET(a, fused.output(i));
    SINTER_LET(b, unfused.output(i));
    SINTER_TRY(require_equal(a, b, fmt::format("entry {}, output {}", printable(call.name), i)));
  }
  plans.first_calls_s += seconds_since(begin);
  for (int64_t i = 0; i < repeat; ++i) {
    SINTER_LET(a, fused.run());
    add_sample(result.fused, a, call.calls());
    SINTER_LET(b, unfused.run());
    add_sample(result.unfused, b, call.calls());
  }
  return {};
}

}  // namespace

Result<std::vector<BenchCase>> bench_entries(BenchPlans& plans, const BenchOptions& options,
                                             const CudaCeilings& ceilings) {
  SINTER_LET(sizes, sizes_of(plans, options));
  std::vector<BenchCase> cases;
  for (const Entry& entry : plans.original.entries) {
    if (options.on_stage) options.on_stage("entry " + printable(entry.name));
    const EntryPlan& fused = *plans.fused->program().find_entry(entry.name);
    const EntryPlan& unfused = *plans.unfused->program().find_entry(entry.name);
    SINTER_LET(inputs, random_inputs(entry.graph, plans.frozen.symbols, sizes, options.seed));
    SINTER_LET(sets, count_sets(plans, fused, unfused, inputs, sizes));
    const EntryCall call{entry.name, sizes, sets, (kLeastCalls + sets - 1) / sets, options.seed};
    const PlanCosts costs = plan_costs(plans.fused->program(), fused, sizes);
    BenchCase result;
    result.name = entry.name;
    for (size_t i = 0; i < sizes.size(); ++i) result.sizes.emplace_back(plans.frozen.symbols[i].name, sizes[i]);
    result.sizes.insert(result.sizes.end(), {{"sets", sets}, {"calls", call.calls()}});
    result.amount = costs.bytes;
    result.fused.launches = costs.launches;
    result.unfused.launches = plan_costs(plans.unfused->program(), unfused, sizes).launches;
    SINTER_TRY(measure(plans, call, inputs, options.repeat, result));
    result.ceiling_name = "copy";
    SINTER_LET(copy, ceilings.copy(std::max(static_cast<size_t>(costs.bytes), kLeastCopy)));
    result.ceiling = copy;
    cases.push_back(std::move(result));
  }
  return cases;
}

}  // namespace sinter
