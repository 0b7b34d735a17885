#include "runtime/host/run.h"

#include <cstring>
#include <deque>
#include <new>

#include "runtime/evaluate/evaluate.h"
#include "runtime/host/gemm.h"
#include "runtime/input_ranges.h"
#include "runtime/rank_group.h"

namespace sinter {
namespace {

struct ArenaDelete {
  void operator()(std::byte* arena) const {
    ::operator delete(arena, std::align_val_t(kArenaAlignment));
  }
};
using Arena = std::unique_ptr<std::byte, ArenaDelete>;

// Runs one entry once.
class Run {
 public:
  explicit Run(const HostCall& call) : call_(call) {}

  Result<RunResult> run() {
    SINTER_TRY(check_call_inputs(call_.program, entry_, call_.symbol_values, call_.inputs));
    SINTER_TRY(check_input_ranges(call_.program, entry_, call_.symbol_values, call_.inputs));
    SINTER_TRY(place_buffers());
    SINTER_TRY(prepare_kept());
    std::optional<FreedBuffers> freed;
    if (call_.options.poison_freed) freed.emplace(entry_);
    for (uint32_t i = 0; i < entry_.steps.size(); ++i) {
      SINTER_TRY(in_step(step(entry_.steps[i]), entry_, i));
      if (freed)
        for (uint32_t id : freed->take(i))
          std::memset(writable(id), kPoison, static_cast<size_t>(memory_[id].bytes));
    }
    for (size_t i = 0; i < entry_.row_checks.size(); ++i) SINTER_TRY(check_rows(i));
    for (uint32_t output : entry_.outputs) {
      SINTER_LET(tensor, copy_out(output));
      result_.outputs.push_back(std::move(tensor));
    }
    return std::move(result_);
  }

 private:
  // Where a buffer's bytes stand; `tensor` unless that is the arena.
  struct Memory {
    const std::byte* data = nullptr;
    const HostTensor* tensor = nullptr;
    int64_t bytes = 0;  // reserved
  };

  Status place_buffers() {
    const std::optional<ArenaLayout> arena = arena_layout(entry_, call_.symbol_values);
    if (!arena) return fail("the arena's size exceeds 63 bits");
    arena_.reset(static_cast<std::byte*>(::operator new(
        static_cast<size_t>(arena->bytes), std::align_val_t(kArenaAlignment), std::nothrow)));
    if (!arena_)
      return fail(fmt::format("no memory for an arena of {} bytes", arena->bytes), {},
                  "use smaller inputs", ExitCode::out_of_memory);
    if (call_.options.poison_freed)
      std::memset(arena_.get(), kPoison, static_cast<size_t>(arena->bytes));
    for (size_t i = 0; i < entry_.buffers.size(); ++i) {
      const Buffer& buffer = entry_.buffers[i];
      Memory& memory = memory_.emplace_back();
      switch (buffer.place) {
        case Buffer::Place::arena:
          memory.data = arena_.get() + arena->offsets[i];
          memory.bytes = *buffer.size_bytes.evaluate(call_.symbol_values);
          break;
        case Buffer::Place::input:
          memory.tensor = call_.inputs[buffer.index];
          break;
        case Buffer::Place::weight:
          memory.tensor = &call_.weights[buffer.index];
          break;
        case Buffer::Place::state:
          memory.tensor = &call_.states[buffer.index];
          break;
        case Buffer::Place::exchange: {
          SINTER_LET(tensor, make_tensor(buffer.type.dtype,
                                         concrete_dims(buffer.type, call_.symbol_values)));
          memory.tensor = &exchange_.emplace_back(std::move(tensor));
          break;
        }
      }
      if (memory.tensor) {
        memory.data = memory.tensor->bytes.data();
        memory.bytes = static_cast<int64_t>(memory.tensor->bytes.size());
      }
    }
    return {};
  }

  // The buffers of kept values; those that no step writes are copied now.
  Status prepare_kept() {
    result_.kept.resize(call_.options.keep.size());
    for (size_t i = 0; i < call_.options.keep.size(); ++i) {
      const std::string& name = call_.options.keep[i];
      SINTER_LET(id, find_stored(entry_, name));
      result_.kept[i].first = name;
      const Buffer& buffer = entry_.buffers[id];
      if (buffer.place == Buffer::Place::arena || buffer.version > 0) {
        kept_.emplace_back(id, i);
      } else {
        SINTER_LET(tensor, copy_out(id));
        result_.kept[i].second = std::move(tensor);
      }
    }
    return {};
  }

  Status check_rows(size_t index) const {
    SINTER_LET(numbers, copy_out(entry_.row_checks[index].buffer));
    const auto wide = [&](size_t i) -> Result<std::optional<int64_t>> {
      const auto input = wide_input(call_.program, entry_, index);
      if (!input) return std::nullopt;
      return call_.inputs[*input]->elements<int64_t>()[i];
    };
    return check_computed_rows(entry_, index, call_.symbol_values, numbers.elements<int32_t>(),
                               wide);
  }

  Status step(const Step& step) {
    SINTER_TRY(visit(
        step, [&](const KernelStep& run) { return kernel_step(run); },
        [&](const GemmStep& gemm) { return gemm_step(gemm); },
        [&](const CopyStep& copy) { return copy_step(copy.from, copy.to); },
        [&](const CollectiveStep& run) { return collective_step(run); }));
    if (kept_.empty()) return {};
    const StepFacts facts = step_facts(call_.program, step);
    for (const auto& [id, index] : kept_) {
      if (!llvm::is_contained(facts.writes, id)) continue;
      SINTER_LET(tensor, copy_out(id));
      result_.kept[index].second = std::move(tensor);
    }
    return {};
  }

  Result<HostTensor> copy_out(uint32_t id) const {
    const Buffer& buffer = entry_.buffers[id];
    SINTER_LET(tensor,
               make_tensor(buffer.type.dtype, concrete_dims(buffer.type, call_.symbol_values)));
    SINTER_TRY(fits(id, tensor));
    if (!tensor.bytes.empty())
      std::memcpy(tensor.bytes.data(), memory_[id].data, tensor.bytes.size());
    return std::move(tensor);
  }

  Status copy_in(uint32_t id, const HostTensor& tensor) {
    SINTER_TRY(fits(id, tensor));
    if (!tensor.bytes.empty()) std::memcpy(writable(id), tensor.bytes.data(), tensor.bytes.size());
    return {};
  }

  Status fits(uint32_t id, const HostTensor& tensor) const {
    if (static_cast<int64_t>(tensor.bytes.size()) <= memory_[id].bytes) return {};
    return fail(fmt::format("%{} has {} bytes, its buffer {}", printable(entry_.buffers[id].value),
                            tensor.bytes.size(), memory_[id].bytes),
                {}, {}, ExitCode::internal_error);
  }

  std::byte* writable(uint32_t id) const { return const_cast<std::byte*>(memory_[id].data); }

  Status kernel_step(const KernelStep& step) {
    const HostKernel& kernel = call_.kernels[step.kernel];
    std::vector<HostTensor> copies;
    copies.reserve(step.inputs.size());
    llvm::SmallVector<const HostTensor*, 8> arguments;
    for (uint32_t id : step.inputs) {
      if (memory_[id].tensor) {
        arguments.push_back(memory_[id].tensor);
        continue;
      }
      SINTER_LET(tensor, copy_out(id));
      arguments.push_back(&copies.emplace_back(std::move(tensor)));
    }
    EvalOptions options;
    if (call_.options.poison_freed) options.missing = std::byte{kPoison};
    SINTER_LET(results, evaluate(kernel.graph, call_.program.symbols, call_.symbol_values,
                                 arguments, options));
    for (size_t i = 0; i < kernel.results.size(); ++i) {
      const uint32_t id = step.outputs[kernel.results[i]];
      SINTER_TRY(copy_in(id, results[i]));
    }
    for (const HostKernel::Append& append : kernel.appends) {
      const uint32_t id = step.outputs[append.output];
      SINTER_TRY(write_rows(results[append.rows], results[append.slots], append.checked,
                            call_.states[entry_.buffers[id].index]));
    }
    return {};
  }

  Status gemm_step(const GemmStep& step) {
    const auto dtype = [&](uint32_t id) { return entry_.buffers[id].type.dtype; };
    GemmBuffers buffers;
    buffers.a = memory_[step.a.buffer].data;
    buffers.b = memory_[step.b.buffer].data;
    buffers.c = writable(step.c.buffer);
    buffers.a_dtype = dtype(step.a.buffer);
    buffers.b_dtype = dtype(step.b.buffer);
    buffers.c_dtype = dtype(step.c.buffer);
    if (step.bias >= 0) {
      buffers.bias = memory_[static_cast<size_t>(step.bias)].data;
      buffers.bias_dtype = dtype(static_cast<uint32_t>(step.bias));
    }
    if (step.residual >= 0) buffers.residual = memory_[static_cast<size_t>(step.residual)].data;
    return run_gemm(step, buffers, call_.program.symbols, call_.symbol_values);
  }

  Status copy_step(uint32_t from, uint32_t to) {
    SINTER_LET(tensor, copy_out(from));
    return copy_in(to, tensor);
  }

  /// One rank copies its value.
  Status collective_step(const CollectiveStep& step) {
    RankGroup* ranks = call_.options.ranks;
    if (!ranks) return copy_step(step.from, step.to);
    SINTER_TRY(copy_step(step.from, step.exchange));
    const HostTensor& value = *memory_[step.exchange].tensor;
    return ranks->all_reduce(call_.options.rank,
                             {fmt::format("entry {}, %{}", printable(entry_.name),
                                          printable(entry_.buffers[step.to].value)),
                              value.dtype, value.bytes.data(), value.bytes.size()},
                             writable(step.to));
  }

  const HostCall& call_;
  const EntryPlan& entry_ = call_.entry;
  Arena arena_;
  std::deque<HostTensor> exchange_;                         // of each exchange buffer
  std::vector<Memory> memory_;                              // of each buffer
  llvm::SmallVector<std::pair<uint32_t, size_t>, 4> kept_;  // buffer, index in RunResult::kept
  RunResult result_;
};

}  // namespace

Result<RunResult> run_entry(const HostCall& call) { return Run(call).run(); }

}  // namespace sinter
