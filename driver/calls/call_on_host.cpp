#include "driver/calls/call_on_device.h"

namespace sinter {
namespace {

Result<HostTensor> copy_of(const TensorView& view) {
  SINTER_LET(tensor, make_tensor(view.dtype, view.dims));
  copy_from(view, tensor.bytes);
  return std::move(tensor);
}

/// Tensors have any strides and addresses. A call is one step.
class CallOnHost final : public CallOnDevice {
 public:
  CallOnHost(const BoundEntry& entry, CallSession& session) : entry_(entry), session_(session) {}

  Status check_memory(const BoundTensor&, const TensorView&, TensorAddress) const override {
    return {};
  }
  bool reads_in_place() const override { return false; }
  size_t step_count() const override { return 1; }
  Result<Lifetimes> lifetimes() const override {
    const EntryPlan& entry = *entry_.prepared;
    return Lifetimes{std::vector<size_t>(entry.inputs.size(), 1),
                     std::vector<size_t>(entry.outputs.size(), 0)};
  }
  Status run(size_t first, size_t last) override;

 private:
  const BoundEntry& entry_;
  CallSession& session_;
};

Status CallOnHost::run(size_t, size_t) {
  std::vector<HostTensor> inputs;
  for (const BoundTensor& input : entry_.inputs) {
    SINTER_LET(tensor, copy_of(*input.view));
    inputs.push_back(std::move(tensor));
  }
  std::vector<std::pair<const BoundTensor*, HostTensor>> states;  // the caller's
  for (const BoundTensor& state : entry_.states) {
    if (!state.view) continue;
    SINTER_LET(tensor, copy_of(*state.view));
    states.emplace_back(&state, std::move(tensor));
  }
  CallOptions options;
  for (auto& [state, tensor] : states) options.states.emplace_back(state->index, &tensor);
  SINTER_LET(result, session_.session().run(entry_.first().name, entry_.symbol_values,
                                            addresses_of(inputs), options));
  for (const auto& [state, tensor] : states) copy_to(*state->view, tensor.bytes);
  for (const BoundTensor& output : entry_.outputs)
    copy_to(*output.view, result.outputs[output.index].bytes);
  return {};
}

}  // namespace

std::unique_ptr<CallOnDevice> call_on_host(const BoundEntry& entry, CallSession& session) {
  return std::make_unique<CallOnHost>(entry, session);
}

}  // namespace sinter
