#include "plan/lifetimes.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>

namespace sinter {
namespace {

std::vector<size_t> input_ends(const Program& program, const EntryPlan& entry) {
  std::vector<size_t> by_buffer(entry.buffers.size(), 0);
  for (size_t step = 0; step < entry.steps.size(); ++step)
    for (uint32_t id : step_facts(program, entry.steps[step]).reads) by_buffer[id] = step + 1;
  std::vector<size_t> ends;
  for (uint32_t id : entry.inputs) {
    const DType dtype = entry.buffers[id].type.dtype;
    const bool may_be_rows =
        !entry.row_checks.empty() && (dtype == DType::i32 || dtype == DType::i64);
    ends.push_back(may_be_rows || llvm::is_contained(entry.outputs, id) ? entry.steps.size()
                                                                        : by_buffer[id]);
  }
  return ends;
}

std::vector<size_t> output_begins(const EntryPlan& entry, const ArenaLayout& layout) {
  std::vector<size_t> by_buffer(entry.buffers.size(), entry.steps.size());
  for (size_t id = 0; id < entry.buffers.size(); ++id) {
    if (layout.outputs[id] == ArenaLayout::kInArena) continue;
    size_t& begin = by_buffer[entry.outputs[static_cast<size_t>(layout.outputs[id])]];
    begin = std::min<size_t>(begin, entry.buffers[id].first_step);
  }
  std::vector<size_t> begins;
  for (uint32_t id : entry.outputs) begins.push_back(by_buffer[id]);
  return begins;
}

}  // namespace

Lifetimes lifetimes(const Program& program, const EntryPlan& entry, const ArenaLayout& layout) {
  return {input_ends(program, entry), output_begins(entry, layout)};
}

}  // namespace sinter
