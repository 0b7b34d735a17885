// V19: a value that parts are placed in is read when all its elements are there, and each of its
// versions by the next alone, so that all versions share one buffer.
#include "ir/op_roles.h"
#include "ir/verify_graph.h"

namespace sinter {
namespace {

/// The elements along the axis that are placed: low .. high - 1. Parts follow one another, upwards
/// or downwards.
struct Placed {
  int64_t low = 0, high = 0;
  bool known = true;  // false: the first base is an input of a graph alone
};

}  // namespace

Checked check_places(const Graph& graph, const GraphContext& context) {
  const auto refuse = [&](ValueId id, const std::string& what, const std::string& hint) {
    Place place = context.place;
    place.op = id;
    return broken(19, fmt::format("%{} {}", printable(graph[id].name), what), place, hint);
  };
  std::vector<Placed> placed(graph.size());
  std::vector<bool> taken(graph.size(), false);  // a place has the value's memory
  const auto is_complete = [&](ValueId id) {
    const Op& op = graph[id];
    const Placed& of = placed[id.index];
    return !of.known ||
           (of.low == 0 && Dim(of.high) == op.type.dims[op.attrs.get<int64_t>(AttrName::axis)]);
  };
  const auto name = [&](ValueId id) { return fmt::format("%{}", printable(graph[id].name)); };
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const ValueId id{i};
    const Op& op = graph[id];
    const ValueId base = places_part(op) ? operand_with(op, OperandRole::base) : ValueId();
    for (ValueId operand : op.operands) {
      if (taken[operand.index])
        return refuse(id, fmt::format("reads {}, whose memory another op has", name(operand)),
                      "read the value in which all parts are placed");
      if (places_part(graph[operand]) && operand != base && !is_complete(operand))
        return refuse(id, fmt::format("reads {}, of which parts are missing", name(operand)),
                      "place all parts first");
    }
    if (!places_part(op)) continue;
    const int64_t axis = op.attrs.get<int64_t>(AttrName::axis);
    const int64_t begin = op.attrs.get<int64_t>(AttrName::begin);
    const int64_t end = begin + graph[op.operands[0]].type.dims[axis].constant();
    Placed& own = placed[i];
    own = {begin, end};
    if (!base.valid()) continue;
    const Op& before = graph[base];
    const bool is_input = context.role == GraphRole::alone && before.kind == OpKind::input;
    if (!is_input && (!places_part(before) || before.attrs.get<int64_t>(AttrName::axis) != axis))
      return refuse(
          id, fmt::format("has the base {}, which is no place along axis {}", name(base), axis),
          "begin with a place without a base");
    if (op.operands[0] == base)
      return refuse(id, "places its base in itself", "place another value");
    taken[base.index] = true;
    const Placed& old = placed[base.index];
    own.known = !is_input && old.known;
    if (!own.known) continue;
    if (begin != old.high && end != old.low)
      return refuse(
          id,
          fmt::format("places elements {} to {} beside {} to {}", begin, end, old.low, old.high),
          "place each part next to those before it");
    own = {std::min(begin, old.low), std::max(end, old.high)};
  }
  if (context.role == GraphRole::alone) return {};
  for (ValueId output : graph.outputs) {
    if (taken[output.index])
      return refuse(output, "is an output, but another op has its memory", "return the last place");
    if (places_part(graph[output]) && !is_complete(output))
      return refuse(output, "is an output, but parts of it are missing", "place all parts first");
  }
  return {};
}

}  // namespace sinter
