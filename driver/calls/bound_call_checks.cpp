// Checks of a call's tensors: their types and shapes, and that kernels can use their memory.
#include "driver/calls/bound_call.h"
#include "plan/shared_outputs.h"

namespace sinter {
Status BoundCall::check_type(const Tensor& tensor, const TensorView& view) const {
  const TensorType& type = type_of(tensor);
  bool fits = view.dtype == type.dtype && view.dims.size() == type.rank();
  for (size_t i = 0; fits && i < view.dims.size(); ++i)
    fits = !type.dims[i].is_constant() || type.dims[i].constant() == view.dims[i];
  if (fits) return {};
  return fail(
      fmt::format("{} is given, {} is wanted", to_string(view), to_string(type, program().symbols)),
      tensor.place, "check the tensor's type", ExitCode::usage);
}

Status BoundCall::check_strides(const Tensor& tensor, const TensorView& view) const {
  if (!may_overlap_itself(view)) return {};
  return fail(fmt::format("strides [{}] put several elements of {} at one address",
                          fmt::join(view.strides, ", "), to_string(view)),
              tensor.place, "check the strides", ExitCode::usage);
}

Status BoundCall::check_place(const Tensor& tensor, const TensorView& view) const {
  if (!on_gpu()) return {};
  if (!is_dense(view))
    return fail(fmt::format("strides [{}] of {}, device memory must be dense",
                            fmt::join(view.strides, ", "), to_string(view)),
                tensor.place, "copy the tensor", ExitCode::usage);
  return check_address(tensor, view, address_of(view));
}

Status BoundCall::check_address(const Tensor& tensor, const TensorView& view,
                                CudaAddress address) const {
  if (!on_gpu() || address % kPointerAlignment == 0 || volume(view) == 0) return {};
  return fail(fmt::format("address {:#x} is aligned to {} bytes, kernels need {}", address,
                          address & -address, kPointerAlignment),
              tensor.place, "copy the tensor to memory of its own", ExitCode::usage);
}

Status BoundCall::check_new_address(const Tensor& tensor, const void* address) const {
  if (!tensor.view)
    return fail("no tensor is bound yet, and an address has no extents", tensor.place,
                "bind a tensor first", ExitCode::usage);
  if (!address && volume(*tensor.view) != 0)
    return fail(fmt::format("{} has no memory", to_string(*tensor.view)), tensor.place,
                "give its address", ExitCode::usage);
  return check_address(tensor, *tensor.view, reinterpret_cast<CudaAddress>(address));
}

Status BoundCall::check_shapes(const CallSymbols& symbols) const {
  for (const auto* list : {&inputs_, &outputs_, &states_})
    for (const Tensor& tensor : *list) {
      if (!tensor.view && list == &states_) continue;
      if (!tensor.view)
        return fail(fmt::format("no tensor is bound, {} is wanted",
                                to_string(type_of(tensor), program().symbols)),
                    tensor.place, "bind one", ExitCode::usage);
      SINTER_LET(dims, symbols.dims(type_of(tensor)));
      if (dims == tensor.view->dims) continue;
      const TensorView wanted{nullptr, type_of(tensor).dtype, dims, {}};
      return fail(fmt::format("{} is given, {} is wanted, that is {}", to_string(*tensor.view),
                              to_string(wanted), to_string(type_of(tensor), program().symbols)),
                  tensor.place, "check the tensor's shape", ExitCode::usage);
    }
  return {};
}

bool BoundCall::may_share(const Tensor& output, const Tensor& input) const {
  const auto [known, is_new] = may_share_.try_emplace({output.index, input.index}, false);
  if (is_new)
    known->second = llvm::all_of(variants_, [&](const EntryPlan& entry) {
      return may_share_memory(program(), entry, output.index, input.index);
    });
  return known->second;
}

Result<std::vector<bool>> BoundCall::check_overlaps(llvm::ArrayRef<CudaAddress> inputs,
                                                    llvm::ArrayRef<CudaAddress> outputs) const {
  std::vector<bool> shared(entry_.outputs.size(), false);
  const auto range_of = [](const Tensor& tensor, CudaAddress address) {
    return Range{address, address + (is_dense(*tensor.view) ? bytes_of(*tensor.view) : 0)};
  };
  // The written places: outputs, then states.
  llvm::SmallVector<std::pair<const Tensor*, Range>, 16> written;
  for (size_t i = 0; i < outputs_.size(); ++i)
    written.emplace_back(&outputs_[i], range_of(outputs_[i], outputs[i]));
  for (const Tensor& state : states_)
    if (state.view) written.emplace_back(&state, range_of(state, address_of(*state.view)));
  Ranges given;
  if (on_gpu())
    for (size_t i = 0; i < inputs_.size(); ++i) given.push_back(range_of(inputs_[i], inputs[i]));
  const auto kind = [&](size_t i) { return i < outputs_.size() ? "output" : "state"; };
  for (size_t i = 0; i < written.size(); ++i) {
    const auto& [tensor, range] = written[i];
    const auto overlap = [&](std::string_view other_kind, const std::string& other) {
      return fail(fmt::format("its memory overlaps that of {} {}", other_kind, printable(other)),
                  tensor->place, fmt::format("give each {} memory of its own", kind(i)),
                  ExitCode::usage);
    };
    for (size_t k = 0; k < i; ++k)
      if (range.overlaps(written[k].second)) return overlap(kind(k), written[k].first->name);
    for (size_t k = 0; k < given.size(); ++k)
      if (range.overlaps(given[k])) {
        const bool is_same = range.begin == given[k].begin && range.end == given[k].end;
        if (i >= outputs_.size() || !is_same || !may_share(*tensor, inputs_[k]))
          return overlap("input", inputs_[k].name);
        shared[tensor->index] = true;
      }
    for (size_t k = 0; k < weights_.size(); ++k)
      if (range.overlaps(weights_[k])) return overlap("weight", program().weights[k].name);
  }
  return shared;
}

}  // namespace sinter
