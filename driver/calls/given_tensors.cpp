#include "driver/calls/given_tensors.h"

#include <llvm/ADT/STLExtras.h>

#include "ir/truth_values.h"

namespace sinter {
namespace {

const TensorView* find_view(const std::map<std::string, TensorView>& views, std::string_view name) {
  const auto at = views.find(std::string(name));
  return at == views.end() ? nullptr : &at->second;
}

TensorType type_of(const TensorView& view) {
  return {view.dtype, Dims(view.dims.begin(), view.dims.end())};
}

std::string tensor_place(std::string_view name) {
  return fmt::format("weight tensor {}", printable(name));
}

Status check_elements(DType dtype, std::span<const std::byte> bytes, std::string_view name) {
  if (dtype != DType::i1) return {};
  if (const auto bad = find_no_truth(bytes))
    return fail(fmt::format("element {} is {}, a truth value (i1) is 0 or 1", *bad,
                            static_cast<unsigned>(bytes[*bad])),
                tensor_place(name), "write 1 for true");
  return {};
}

/// The name that the weight's function reads if it does nothing else.
const std::string* only_tensor(const Weight& weight) {
  if (weight.init.size() != 1 || weight.init.ops()[0].kind != OpKind::file ||
      weight.init.ops()[0].type != weight.type)
    return nullptr;
  return &weight.init.ops()[0].attrs.get<std::string>(AttrName::tensor);
}

}  // namespace

Result<std::unique_ptr<GivenTensors>> GivenTensors::create(const Device& device,
                                                           const Program& program,
                                                           const LoadPlanOptions& options) {
  std::unique_ptr<GivenTensors> tensors(new GivenTensors(options));
  if (!device.on_gpu() && !options.device_weights.empty())
    return fail(
        fmt::format("{} tensors in device memory for the CPU", options.device_weights.size()),
        tensor_place(options.device_weights.begin()->first), "give them in host memory",
        ExitCode::usage);
  SINTER_TRY(tensors->check(program));
  if (!options.device_weights.empty()) {
    SINTER_LET(stream, CudaStream::create(device.cuda()));
    tensors->stream_ = std::move(stream);
  }
  return tensors;
}

Status GivenTensors::check(const Program& program) const {
  std::map<std::string, const TensorType*> read;
  for (const Weight& weight : program.weights)
    for (const Op& op : weight.init.ops()) {
      if (op.kind != OpKind::file) continue;
      const std::string& name = op.attrs.get<std::string>(AttrName::tensor);
      read[name] = &op.type;
      const std::optional<TensorType> found = find(name);
      if (!found) {
        Error error = missing(name);
        if (error.where.empty()) error.where = "weight " + printable(weight.name);
        return tl::make_unexpected(std::move(error));
      }
      if (!reads_as(*found, op.type))
        return fail(fmt::format("the tensor is {}, the plan reads {}", to_string(*found, {}),
                                to_string(op.type, {})),
                    tensor_place(name), "give the weights that belong to the model");
    }
  for (const auto* views : {&options_.host_weights, &options_.device_weights})
    for (const auto& [name, view] : *views) {
      const bool on_device = views == &options_.device_weights;
      const auto use = read.find(name);
      if (use == read.end())
        return fail("no weight of the plan is made of this tensor", tensor_place(name),
                    "give it the name that the model's files use", ExitCode::usage);
      SINTER_TRY(check_tensor(name, view, *use->second, on_device));
    }
  return {};
}

Status GivenTensors::check_tensor(const std::string& name, const TensorView& view,
                                  const TensorType& type, bool on_device) const {
  const std::string place = tensor_place(name);
  SINTER_TRY(check_view(view, place));
  if (type_of(view) != type)
    return fail(
        fmt::format("the tensor is {}, the plan reads {}", to_string(view), to_string(type, {})),
        place, "give the weights that belong to the model");
  if (!on_device) return {};
  if (options_.host_weights.contains(name))
    return fail("the tensor is given in host memory and in device memory", place, "give it once",
                ExitCode::usage);
  if (is_dense(view)) return {};
  return fail(fmt::format("strides [{}] of {} in device memory, must be dense",
                          fmt::join(view.strides, ", "), to_string(view)),
              place, "copy the tensor, or give it in host memory", ExitCode::usage);
}

std::optional<TensorType> GivenTensors::find(std::string_view name) const {
  for (const auto* views : {&options_.host_weights, &options_.device_weights})
    if (const TensorView* view = find_view(*views, name)) {
      if (!check_view(*view, {})) return std::nullopt;
      return type_of(*view);
    }
  return options_.source ? options_.source->find(name) : std::nullopt;
}

Error GivenTensors::missing(std::string_view name) const {
  for (const auto* views : {&options_.host_weights, &options_.device_weights})
    if (const TensorView* view = find_view(*views, name))
      if (Status valid = check_view(*view, tensor_place(name)); !valid) return valid.error();
  if (options_.source) return options_.source->missing(name);
  return Error{fmt::format("no tensor \"{}\" is given", printable(name)),
               {},
               "give it in host or device memory, or the model's files"};
}

Status GivenTensors::read(std::string_view name, std::span<std::byte> out) const {
  if (const TensorView* view = find_view(options_.host_weights, name)) {
    copy_from(*view, out);
    return check_elements(view->dtype, out, name);
  }
  const TensorView* view = find_view(options_.device_weights, name);
  if (view == nullptr) return options_.source->read(name, out);
  const std::lock_guard lock(mutex_);
  SINTER_TRY(stream_.copy_to_host(out, reinterpret_cast<CudaAddress>(view->data)));
  SINTER_TRY(stream_.synchronize(tensor_place(name)));
  return check_elements(view->dtype, out, name);
}

std::vector<CudaAddress> GivenTensors::places(const Program& program) const {
  std::vector<CudaAddress> places;
  for (const Weight& weight : program.weights) {
    const std::string* name = only_tensor(weight);
    const TensorView* view = name ? find_view(options_.device_weights, *name) : nullptr;
    const auto address = view ? reinterpret_cast<CudaAddress>(view->data) : 0;
    places.push_back(address % kPointerAlignment == 0 ? address : 0);
  }
  return places;
}

}  // namespace sinter
