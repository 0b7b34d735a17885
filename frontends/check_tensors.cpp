#include "frontends/check_tensors.h"

namespace sinter {

namespace {

constexpr size_t kNamedTensors = 3;  // of those that no weight reads

Status check_tensor(const Weight& weight, const Op& op, const TensorSource& source,
                    const std::string& place) {
  const auto& name = op.attrs.get<std::string>(AttrName::tensor);
  const std::optional<TensorType> found = source.find(name);
  if (!found) {
    Error error = source.missing(name);
    if (error.where.empty()) error.where = place;
    error.what += fmt::format(", which weight %{} needs as {}", printable(weight.name),
                              to_string(op.type, {}));
    return tl::make_unexpected(std::move(error));
  }
  if (!reads_as(*found, op.type))
    return fail(fmt::format("tensor {} is {}, weight %{} needs it as {}", printable(name),
                            to_string(*found, {}), printable(weight.name), to_string(op.type, {})),
                place, "give the weights that belong to the module");
  return {};
}

Status refuse_unused(const Module& module, const TensorSource& source, const std::string& place) {
  const auto used = file_tensors(module);
  std::vector<std::string> unused;
  for (std::string& name : source.names())
    if (!used.contains(name)) unused.push_back(std::move(name));
  if (unused.empty()) return {};
  std::string names;
  for (size_t i = 0; i < std::min(unused.size(), kNamedTensors); ++i)
    names += fmt::format("{}{}", i == 0 ? "" : ", ", printable(unused[i]));
  if (unused.size() > kNamedTensors)
    names += fmt::format(" and {} more", unused.size() - kNamedTensors);
  return fail(
      fmt::format("no weight of the module reads {} of the tensors: {}", unused.size(), names),
      place, "give the weights that belong to the module, and no others");
}

}  // namespace

std::map<std::string, TensorType, std::less<>> file_tensors(const Module& module) {
  std::map<std::string, TensorType, std::less<>> types;
  for (const Weight& weight : module.weights)
    for (const Op& op : weight.init.ops())
      if (op.kind == OpKind::file) types[op.attrs.get<std::string>(AttrName::tensor)] = op.type;
  return types;
}

Status check_tensors(const Module& module, const TensorSource& source, const std::string& place) {
  for (const Weight& weight : module.weights)
    for (const Op& op : weight.init.ops())
      if (op.kind == OpKind::file) SINTER_TRY(check_tensor(weight, op, source, place));
  return refuse_unused(module, source, place);
}

}  // namespace sinter
