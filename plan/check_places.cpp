// A value whose parts several steps place is read when all its elements are there: V19 of the
// verifier, along the buffers of an entry.
#include <llvm/ADT/STLExtras.h>

#include "ir/op_roles.h"
#include "ir/verify_graph.h"
#include "plan/check_parts.h"

namespace sinter::checker {
namespace {

class PlacesWalk {
 public:
  PlacesWalk(const Program& program, const EntryPlan& entry)
      : program_(program), entry_(entry), placed_(entry.buffers.size()) {}

  Status run() {
    for (size_t step = 0; step < entry_.steps.size(); ++step) {
      const StepFacts facts = step_facts(program_, entry_.steps[step]);
      if (facts.kernel)
        SINTER_TRY(kernel_step(facts, place(entry_, step)));
      else
        for (uint32_t id : facts.reads) SINTER_TRY(complete(id, place(entry_, step)));
    }
    const std::string end = place(entry_, entry_.steps.size());
    for (uint32_t id : entry_.outputs) SINTER_TRY(complete(id, end));
    for (const RowCheck& check : entry_.row_checks) SINTER_TRY(complete(check.buffer, end));
    return {};
  }

 private:
  Status kernel_step(const StepFacts& step, const std::string& where) {
    const Graph& group = step.kernel->group;
    const auto is_part = [&](uint32_t id) { return placed_[id].has_value(); };
    if (llvm::none_of(group.ops(), places_part) && llvm::none_of(step.reads, is_part)) return {};
    PlacedValues inputs;
    for (uint32_t id : step.reads) inputs.push_back(placed_[id]);
    const GraphContext context{GraphRole::alone, {}, program_.symbols, nullptr};
    const auto values = placed_values(group, context, &inputs);
    if (!values) return violation(values.error().error.what, where);
    for (size_t k = 0; k < step.writes.size(); ++k)
      placed_[step.writes[k]] = (*values)[group.outputs[k].index];
    return {};
  }

  Status complete(uint32_t id, const std::string& where) const {
    const Buffer& buffer = entry_.buffers[id];
    if (is_complete(buffer.type, placed_[id])) return {};
    return violation(fmt::format("%{} is read before all of its parts are placed: only elements "
                                 "[{}, {}) of axis {} are",
                                 printable(buffer.value), placed_[id]->low, placed_[id]->high,
                                 placed_[id]->axis),
                     where);
  }

  const Program& program_;
  const EntryPlan& entry_;
  PlacedValues placed_;  // by buffer
};

}  // namespace

Status check_places(const Program& program, const EntryPlan& entry) {
  return PlacesWalk(program, entry).run();
}

}  // namespace sinter::checker
