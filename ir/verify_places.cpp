// V19: a value that parts are placed in is read when all its elements are there, and each of its
// versions by the next alone, so that all versions share one buffer. Parts follow one another,
// upwards or downwards.
#include "ir/op_roles.h"
#include "ir/verify_graph.h"

namespace sinter {

tl::expected<PlacedValues, Violation> placed_values(const Graph& graph, const GraphContext& context,
                                                    const PlacedValues* inputs) {
  const auto refuse = [&](ValueId id, const std::string& what, const std::string& hint) {
    Place place = context.place;
    place.op = id;
    return broken(19, fmt::format("%{} {}", printable(graph[id].name), what), place, hint);
  };
  const bool takes_any_base = context.role == GraphRole::alone && inputs == nullptr;
  PlacedValues placed(graph.size());
  if (inputs != nullptr)
    for (size_t i = 0; i < inputs->size(); ++i) placed[graph.inputs[i].index] = (*inputs)[i];
  std::vector<bool> taken(graph.size(), false);  // a place has the value's memory
  const auto name = [&](ValueId id) { return fmt::format("%{}", printable(graph[id].name)); };
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const ValueId id{i};
    const Op& op = graph[id];
    const ValueId base = places_part(op) ? operand_with(op, OperandRole::base) : ValueId();
    for (ValueId operand : op.operands) {
      if (taken[operand.index])
        return refuse(id, fmt::format("reads {}, whose memory another op has", name(operand)),
                      "read the value in which all parts are placed");
      if (operand != base && !is_complete(graph[operand].type, placed[operand.index]))
        return refuse(id, fmt::format("reads {}, of which parts are missing", name(operand)),
                      "place all parts first");
    }
    if (!places_part(op)) continue;
    const int64_t axis = op.attrs.get<int64_t>(AttrName::axis);
    const int64_t begin = op.attrs.get<int64_t>(AttrName::begin);
    const int64_t end = begin + graph[op.operands[0]].type.dims[axis].constant();
    placed[i] = {axis, begin, end};
    if (!base.valid()) continue;
    if (op.operands[0] == base)
      return refuse(id, "places its base in itself", "place another value");
    taken[base.index] = true;
    const Op& before = graph[base];
    const auto& old = placed[base.index];
    const bool is_place = places_part(before) && before.attrs.get<int64_t>(AttrName::axis) == axis;
    const bool is_any_input = takes_any_base && before.kind == OpKind::input;
    if (old ? old->axis != axis : !is_place && !is_any_input)
      return refuse(
          id, fmt::format("has the base {}, which is no place along axis {}", name(base), axis),
          "begin with a place without a base");
    if (!old) {
      placed[i] = std::nullopt;
      continue;
    }
    if (begin != old->high && end != old->low)
      return refuse(
          id,
          fmt::format("places elements {} to {} beside {} to {}", begin, end, old->low, old->high),
          "place each part next to those before it");
    placed[i] = {axis, std::min(begin, old->low), std::max(end, old->high)};
  }
  if (takes_any_base) return placed;
  for (ValueId output : graph.outputs) {
    if (taken[output.index])
      return refuse(output, "is an output, but another op has its memory", "return the last place");
    const bool may_go_on = context.role == GraphRole::alone && places_part(graph[output]);
    if (!may_go_on && !is_complete(graph[output].type, placed[output.index]))
      return refuse(output, "is an output, but parts of it are missing", "place all parts first");
  }
  return placed;
}

}  // namespace sinter
