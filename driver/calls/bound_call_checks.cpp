// Checks of a call's tensors: their types and shapes, and that kernels can use their memory.
#include "driver/calls/bound_call.h"
#include "plan/shared_outputs.h"

namespace sinter {

Status BoundCall::check_type(const BoundTensor& tensor, const TensorView& view) const {
  const TensorType& type = entry_.type_of(tensor);
  bool fits = view.dtype == type.dtype && view.dims.size() == type.rank();
  for (size_t i = 0; fits && i < view.dims.size(); ++i)
    fits = !type.dims[i].is_constant() || type.dims[i].constant() == view.dims[i];
  if (fits) return {};
  return fail(
      fmt::format("{} is given, {} is wanted", to_string(view), to_string(type, program().symbols)),
      tensor.place, "check the tensor's type", ExitCode::usage);
}

Status BoundCall::check_strides(const BoundTensor& tensor, const TensorView& view) const {
  if (!may_overlap_itself(view)) return {};
  return fail(fmt::format("strides [{}] put several elements of {} at one address",
                          fmt::join(view.strides, ", "), to_string(view)),
              tensor.place, "check the strides", ExitCode::usage);
}

Status BoundCall::check_new_address(const BoundTensor& tensor, const void* address) const {
  if (!tensor.view)
    return fail("no tensor is bound yet, and an address has no extents", tensor.place,
                "bind a tensor first", ExitCode::usage);
  if (!address && !has_groups_ && tensor.bytes != 0)
    return fail(fmt::format("{} has no memory", to_string(*tensor.view)), tensor.place,
                "give its address", ExitCode::usage);
  return on_device_->check_memory(tensor, *tensor.view, reinterpret_cast<TensorAddress>(address));
}

Status BoundCall::check_shapes(const CallSymbols& symbols) const {
  for (const auto* list : {&entry_.inputs, &entry_.outputs, &entry_.states})
    for (const BoundTensor& tensor : *list) {
      if (!tensor.view && list == &entry_.states) continue;
      if (!tensor.view)
        return fail(fmt::format("no tensor is bound, {} is wanted",
                                to_string(entry_.type_of(tensor), program().symbols)),
                    tensor.place, "bind one", ExitCode::usage);
      SINTER_LET(dims, symbols.dims(entry_.type_of(tensor)));
      if (dims == tensor.view->dims) continue;
      const TensorView wanted{nullptr, entry_.type_of(tensor).dtype, dims, {}};
      return fail(
          fmt::format("{} is given, {} is wanted, that is {}", to_string(*tensor.view),
                      to_string(wanted), to_string(entry_.type_of(tensor), program().symbols)),
          tensor.place, "check the tensor's shape", ExitCode::usage);
    }
  return {};
}

bool BoundCall::may_share(const BoundTensor& output, const BoundTensor& input) const {
  const auto [known, is_new] = may_share_.try_emplace({output.index, input.index}, false);
  if (is_new)
    known->second = llvm::all_of(entry_.variants, [&](const EntryPlan& entry) {
      return may_share_memory(program(), entry, output.index, input.index);
    });
  return known->second;
}

namespace {

/// The memory of a tensor or a weight. number: among the outputs and states, in this order; among
/// the inputs; among the weights.
struct Placed {
  enum class Kind : uint8_t { output, state, input, weight } kind;
  size_t number = 0;
  TensorAddress begin = 0, end = 0;

  bool is_written() const { return kind <= Kind::state; }
};

/// The pairs that share memory of which one is written at least, that one first. Both: the later.
std::vector<std::pair<Placed, Placed>> overlapping(std::vector<Placed> places) {
  llvm::stable_sort(places, [](const Placed& a, const Placed& b) { return a.begin < b.begin; });
  std::vector<std::pair<Placed, Placed>> pairs;
  std::vector<Placed> reaching;  // beyond where the next one begins
  for (const Placed& place : places) {
    llvm::erase_if(reaching, [&](const Placed& other) { return other.end <= place.begin; });
    for (const Placed& other : reaching) {
      if (!place.is_written() && !other.is_written()) continue;
      const bool is_first =
          place.is_written() && (!other.is_written() || place.number > other.number);
      pairs.push_back(is_first ? std::pair(place, other) : std::pair(other, place));
    }
    reaching.push_back(place);
  }
  llvm::sort(pairs, [](const auto& a, const auto& b) {
    return std::tuple(a.first.number, a.second.kind, a.second.number) <
           std::tuple(b.first.number, b.second.kind, b.second.number);
  });
  return pairs;
}

}  // namespace

Result<std::vector<bool>> BoundCall::check_overlaps(llvm::ArrayRef<TensorAddress> inputs,
                                                    llvm::ArrayRef<TensorAddress> outputs) const {
  using Kind = Placed::Kind;
  const auto& [own_inputs, own_outputs, own_states] =
      std::tie(entry_.inputs, entry_.outputs, entry_.states);
  std::vector<Placed> places;
  const auto add = [&](Kind kind, size_t number, const BoundTensor& tensor, TensorAddress address) {
    if (address != 0 && tensor.bytes != 0 && is_dense(*tensor.view))
      places.push_back({kind, number, address, address + tensor.bytes});
  };
  for (size_t i = 0; i < own_outputs.size(); ++i) add(Kind::output, i, own_outputs[i], outputs[i]);
  for (size_t i = 0; i < own_states.size(); ++i)
    if (own_states[i].view)
      add(Kind::state, own_outputs.size() + i, own_states[i], own_states[i].address());
  if (on_device_->reads_in_place())
    for (size_t i = 0; i < own_inputs.size(); ++i) add(Kind::input, i, own_inputs[i], inputs[i]);
  const auto weights = on_device_->weights();
  for (size_t i = 0; i < weights.size(); ++i)
    if (weights[i].begin != weights[i].end)
      places.push_back({Kind::weight, i, weights[i].begin, weights[i].end});

  std::vector<bool> shared(entry_.first().outputs.size(), has_groups_);
  const auto tensor_of = [&](const Placed& place) -> const BoundTensor& {
    return place.kind == Kind::output  ? own_outputs[place.number]
           : place.kind == Kind::state ? own_states[place.number - own_outputs.size()]
                                       : own_inputs[place.number];
  };
  for (const auto& [written, other] : overlapping(std::move(places))) {
    const BoundTensor& tensor = tensor_of(written);
    const bool is_same = written.begin == other.begin && written.end == other.end;
    if (written.kind == Kind::output && other.kind == Kind::input && is_same &&
        may_share(tensor, tensor_of(other))) {
      shared[tensor.index] = true;
      continue;
    }
    constexpr std::string_view kKinds[] = {"output", "state", "input", "weight"};
    const std::string& name =
        other.kind == Kind::weight ? program().weights[other.number].name : tensor_of(other).name;
    return fail(
        fmt::format("its memory overlaps that of {} {}", kKinds[static_cast<size_t>(other.kind)],
                    printable(name)),
        tensor.place,
        fmt::format("give each {} memory of its own", kKinds[static_cast<size_t>(written.kind)]),
        ExitCode::usage);
  }
  return shared;
}

}  // namespace sinter
