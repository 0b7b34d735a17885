// V14 to V16: a state is a chain of versions, each read only before the next is written, so that
// all versions share one buffer.
#include "ir/op_roles.h"
#include "ir/verify_graph.h"

namespace sinter {

Checked check_state_order(const Graph& graph, const GraphContext& context) {
  const auto at = [&](ValueId id) {
    Place place = context.place;
    place.op = id;
    return place;
  };
  const auto name = [&](ValueId id) { return fmt::format("%{}", printable(graph[id].name)); };

  std::vector<ValueId> writer(graph.size());  // of the version that an op is
  std::vector<ValueId> root(graph.size());  // what an op reads through views; itself if it is none
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const ValueId id{i};
    const Op& op = graph[id];
    root[i] = op_class(op) == OpClass::view ? root[op.operands[0].index] : id;
    if (op_class(op) == OpClass::view) continue;  // reads where its users read
    const bool append = writes_state(op);
    for (ValueId operand : op.operands) {
      const ValueId version = root[operand.index], by = writer[version.index];
      if (by.valid() && append && operand == operand_with(op, OperandRole::state))
        return broken(
            15,
            fmt::format("{} writes {}, which {} has written", name(id), name(version), name(by)),
            at(id), fmt::format("write {} instead", name(by)));
      if (by.valid())
        return broken(
            16,
            fmt::format("{} reads {}, which {} has overwritten", name(id), name(version), name(by)),
            at(id), fmt::format("put {} before {}, or read the new version", name(id), name(by)));
    }
    if (!append) continue;
    const ValueId version = operand_with(op, OperandRole::state);
    const bool is_version =
        is_state_version(graph[version]) ||
        (context.role == GraphRole::alone && graph[version].kind == OpKind::input);
    if (!is_version)
      return broken(14,
                    fmt::format("{} writes {}, which is of kind {}", name(id), name(version),
                                op_info(graph[version].kind).name),
                    at(id), "write a state or the result of an op that writes one");
    for (size_t i = 0; i < op.operands.size(); ++i)
      if (operand_role(op, i) != OperandRole::state && root[op.operands[i].index] == version)
        return broken(16, fmt::format("{} reads {} while it writes it", name(id), name(version)),
                      at(id), "write a copy");
    writer[version.index] = id;
  }
  for (ValueId output : graph.outputs) {
    const ValueId version = root[output.index];
    if (writer[version.index].valid())
      return broken(16,
                    fmt::format("output {} is {}, which {} overwrites", name(output), name(version),
                                name(writer[version.index])),
                    at(writer[version.index]), "return a copy, or the new version");
  }
  return {};
}

}  // namespace sinter
