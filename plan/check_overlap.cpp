// Proves that what kernels read before they wait is complete when they begin: that between its last
// writer and its reader stands a kernel which triggers the next one when all before itself are
// complete (kernels/common/launch.cuh). Products of the library and copies write and never trigger:
// the chain of kernels that overlap ends at them. check_steps() has proved the rest: a step reads
// nothing that it writes, what it reads has been written, and what it reads of a state is the
// newest version.
#include <llvm/ADT/STLExtras.h>

#include "ir/attention_operands.h"
#include "ir/contraction.h"
#include "ir/op_roles.h"
#include "plan/check_parts.h"

namespace sinter::checker {
namespace {

/// The kernel is launched whatever the symbols' values.
bool is_always_launched(const Launch& launch, llvm::ArrayRef<Symbol> symbols) {
  const SymExpr items =
      launch.symbolic_items.is(0) ? SymExpr(launch.items_per_row) : launch.symbolic_items;
  return never_less(launch.rows, 1, symbols) && never_less(items, 1, symbols);
}

/// The op that reads a cache.
struct CacheReader {
  // Inputs from which `first` and `last` are computed: they say which of its rows it reads.
  // nullopt: it has no such operands.
  std::optional<std::vector<uint32_t>> numbers;
  // The input `last`. It has all its own numbers, and a row's number says where the row lies in the
  // cache; else nullopt.
  std::optional<uint32_t> last;
};

/// Row i of the view `id` is a part of row i of the value it is a view of.
bool keeps_rows(const Graph& group, ValueId id) {
  const Dims& dims = group[root_of(group, id)].type.dims;
  const auto rows = strided_rows(group, id);
  if (!rows || group[id].type.dims[0] != dims[0]) return false;
  return rows->row_stride == volume(DimsRef(dims).drop_front());
}

/// Nothing if `cache` is not a cache of exactly one op.
std::optional<CacheReader> cache_reader(const Graph& group, uint32_t cache) {
  std::optional<CacheReader> reader;
  for (const Op& op : group.ops()) {
    const auto caches = operands_with(op, OperandRole::cache);
    const auto is_cache = [&](ValueId id) { return input_of(group, id) == cache; };
    if (llvm::none_of(caches, is_cache)) continue;
    if (reader) return std::nullopt;
    reader.emplace();
    const ValueId first = operand_with(op, OperandRole::first);
    const ValueId last = operand_with(op, OperandRole::last);
    if (!first.valid() || !last.valid()) continue;
    reader->numbers.emplace();
    for (ValueId rows : {first, last})
      llvm::append_range(*reader->numbers, row_number_inputs(group, rows));
    const bool whole =
        volume(group[last].type.dims) == volume(group[root_of(group, last)].type.dims);
    if (whole && llvm::all_of(caches, [&](ValueId rows) {
          return !is_cache(rows) || keeps_rows(group, rows);
        }))
      reader->last = input_of(group, last);
  }
  return reader;
}

class EarlyReads {
 public:
  EarlyReads(const Program& program, const EntryPlan& entry)
      : program_(program),
        entry_(entry),
        written_(entry.buffers.size(), -1),
        appends_(program.states.size()) {}

  Status run() {
    for (step_ = 0; step_ < entry_.steps.size(); ++step_) {
      const StepFacts step = step_facts(program_, entry_.steps[step_]);
      if (step.kernel != nullptr) SINTER_TRY(kernel_step(step));
      note_writes(step);
    }
    return {};
  }

 private:
  /// An append and the buffer that names its rows; -1: a value that is in no buffer.
  struct Append {
    int64_t step, slots;
    int64_t other;  // the last earlier step that appends by another buffer; -1: there is none
  };

  int64_t now() const { return static_cast<int64_t>(step_); }

  Status kernel_step(const StepFacts& step) {
    const Overlap& overlap = step.kernel->overlap;
    for (uint32_t input : overlap.early_inputs)
      SINTER_TRY(complete(step.reads[input], writer(step.reads[input])));
    for (uint32_t input : overlap.early_caches)
      SINTER_TRY(complete(step.reads[input], writer_of_rows(step, input)));
    if (overlap.triggers_after_wait && is_always_launched(step.kernel->launch, program_.symbols))
      last_trigger_ = now();
    return {};
  }

  /// Only kernel steps write states.
  void note_writes(const StepFacts& step) {
    for (uint32_t k = 0; k < step.writes.size(); ++k) {
      const Buffer& buffer = entry_.buffers[step.writes[k]];
      if (buffer.place != Buffer::Place::state) {
        written_[step.writes[k]] = now();
        continue;
      }
      const Graph& group = step.kernel->group;
      const Op& append = group[group.outputs[k]];
      const auto slots = input_of(group, operand_with(append, OperandRole::slot));
      note_append(buffer.index, slots ? int64_t{step.reads[*slots]} : -1);
    }
  }

  void note_append(uint32_t state, int64_t slots) {
    auto& appends = appends_[state];
    int64_t other = -1;
    if (!appends.empty())
      other = appends.back().slots == slots ? appends.back().other : appends.back().step;
    appends.push_back({now(), slots, other});
  }

  /// The last step that wrote a buffer; -1: none of this call.
  int64_t writer(uint32_t id) const {
    const Buffer& buffer = entry_.buffers[id];
    if (buffer.place != Buffer::Place::state) return written_[id];
    const auto& appends = appends_[buffer.index];
    return appends.empty() ? -1 : appends.back().step;
  }

  /// The last step that wrote rows of a cache other than the rows of the call's tokens. The kernel
  /// handles the tokens' rows itself: its attention reads the row numbers by which they were
  /// appended.
  int64_t writer_of_rows(const StepFacts& step, uint32_t input) const {
    const Buffer& buffer = entry_.buffers[step.reads[input]];
    if (buffer.place != Buffer::Place::state) return writer(step.reads[input]);
    const CacheReader reader = *cache_reader(step.kernel->group, input);
    const auto& appends = appends_[buffer.index];
    if (appends.empty()) return -1;
    const bool own = reader.last && appends.back().slots == int64_t{step.reads[*reader.last]};
    return own ? appends.back().other : appends.back().step;
  }

  Status complete(uint32_t id, int64_t writer) const {
    if (last_trigger_ > writer) return {};
    return violation(
        fmt::format("reads %{} before it waits, while {} may still write it: no kernel between "
                    "them triggers after its wait and is launched for all symbol values",
                    printable(entry_.buffers[id].value),
                    writer < 0 ? "an earlier call" : fmt::format("step {}", writer)),
        place(entry_, step_));
  }

  const Program& program_;
  const EntryPlan& entry_;
  size_t step_ = 0;
  int64_t last_trigger_ = -1;                 // the last step that triggers after its wait
  std::vector<int64_t> written_;              // by buffer, of those in the arena
  std::vector<std::vector<Append>> appends_;  // by state, in order
};

}  // namespace

Status check_overlap(const Kernel& kernel) {
  const Overlap& overlap = kernel.overlap;
  const auto bad = [&](std::string what) {
    return violation(std::move(what), "kernel " + kernel.name);
  };
  if (!overlap.waits && overlap.triggers_after_wait)
    return bad("triggers the next kernel after its wait, but does not wait");
  if (!overlap.waits && overlap.reads_early())
    return bad("reads inputs before it waits, but does not wait");
  const size_t count = kernel.group.inputs.size();
  std::vector<bool> listed(count, false);
  for (const auto* list : {&overlap.early_inputs, &overlap.early_caches})
    for (uint32_t input : *list) {
      if (input >= count)
        return bad(fmt::format("reads input {} of {} before it waits", input, count));
      if (listed[input]) return bad(fmt::format("lists input {} twice", input));
      listed[input] = true;
    }
  for (uint32_t input : overlap.early_caches) {
    const std::string name = printable(kernel.group[kernel.group.inputs[input]].name);
    const auto reader = cache_reader(kernel.group, input);
    if (!reader)
      return bad(
          fmt::format("reads rows of %{} before it waits, which is no attention's cache", name));
    const auto is_early = [&](uint32_t input) {
      return llvm::is_contained(overlap.early_inputs, input);
    };
    if (!reader->numbers || !llvm::all_of(*reader->numbers, is_early))
      return bad(fmt::format("reads rows of %{} before it waits, but not the inputs that say which",
                             name));
  }
  return {};
}

Status check_early_reads(const Program& program, const EntryPlan& entry) {
  return EarlyReads(program, entry).run();
}

}  // namespace sinter::checker
