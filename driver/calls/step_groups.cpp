// Calls whose steps run in groups, between which memory changes hands.
#include "driver/calls/bound_call.h"

namespace sinter {

void BoundCall::allow_groups() {
  has_groups_ = true;
  is_prepared_ = false;
}

Result<size_t> BoundCall::step_count() {
  SINTER_TRY(prepare());
  return on_device_->step_count();
}

Result<const Lifetimes*> BoundCall::lifetimes() {
  SINTER_TRY(prepare());
  if (!lifetimes_) {
    SINTER_LET(found, on_device_->lifetimes());
    lifetimes_ = std::move(found);
  }
  return &*lifetimes_;
}

Status BoundCall::run_steps(size_t first, size_t last) {
  const CudaContextGuard guard(session_->plan().device().cuda_api());
  SINTER_LET(count, step_count());
  SINTER_TRY(check_order(first, last, count));
  SINTER_TRY(check_memory_of_steps(first, last, count));
  next_step_ = 0;  // where an error ends the call
  SINTER_TRY(run_prepared(first, last));
  next_step_ = last == count ? 0 : last;
  return {};
}

Status BoundCall::check_order(size_t first, size_t last, size_t count) const {
  const std::string place = entry_.place();
  if (!has_groups_)
    return fail("the call does not run in groups of steps", place,
                "allow groups before its tensors are bound", ExitCode::usage);
  const bool is_all = first == 0 && last == count;  // perhaps of none
  if ((first >= last && !is_all) || last > count)
    return fail(fmt::format("steps {} to {} are asked for, it has {}", first, last, count), place,
                "give a first step, and the one behind the last", ExitCode::usage);
  if (first != 0 && first != next_step_)
    return fail(
        fmt::format("steps {} to {} are asked for, the next one is {}", first, last, next_step_),
        place, "run the groups of a call in their order", ExitCode::usage);
  if (first != 0 && !on_device_->has_values())
    return fail("another call has run between two groups of steps", place,
                "let no other call of the session come between", ExitCode::usage);
  return {};
}

Status BoundCall::check_memory_of_steps(size_t first, size_t last, size_t count) {
  SINTER_LET(used, lifetimes());
  const auto check = [&](const BoundTensor& tensor, bool is_used) -> Status {
    if (!is_used || tensor.view->data != nullptr || tensor.bytes == 0) return {};
    return fail(fmt::format("{} has no memory, and steps {} to {} need it", to_string(*tensor.view),
                            first, last),
                tensor.place, "give its address", ExitCode::usage);
  };
  for (const BoundTensor& input : entry_.inputs)
    SINTER_TRY(check(input, used->input_ends[input.index] > first));
  for (const BoundTensor& output : entry_.outputs)
    SINTER_TRY(check(output, used->output_begins[output.index] < last || last == count));
  return {};
}

}  // namespace sinter
