#include "kernels/custom/accessors.h"

#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/emit_value.h"
#include "codegen/emission/op_copier.h"
#include "kernels/custom/parts.h"

namespace sinter {
namespace {

enum class Accessed : uint8_t { element, chunk };

/// Statements for element `i` of a graph's outputs, or for the 8 elements from there on, `e` of
/// them in each turn; and the definitions before the kernel that they need.
struct AccessText {
  std::string statements, globals;
};

/// `write` adds the statements.
template <typename Write>
Result<AccessText> access_text(const EmitContext& context, const Graph& graph, Accessed accessed,
                               std::string table_name, std::vector<std::string> output_names,
                               Write&& write) {
  SINTER_LET(form, analyze_group(graph, 0, context.symbols));
  form.table_name = std::move(table_name);
  form.output_names = std::move(output_names);
  if (form.reduces || form.stages.size() != 1)
    return fail("neighbours of a custom op do not have its elements", {},
                "compute the ops in separate kernels", ExitCode::internal_error);
  // A value of one element stands in the row's scope, and is no part of a chunk.
  const bool lone = form.stages[0].axes.empty();
  if (form.stages[0].width.is(0) || (lone && accessed == Accessed::chunk)) return AccessText{};
  LoopSpace space(form, context.symbols, context.parameters);
  ValueEmitter values(form, space);
  CodeScope row;
  values.open(0, 0, row, false, accessed == Accessed::element);
  write(values, form);
  if (values.error()) return tl::make_unexpected(*values.error());
  const std::string elements = values.close();
  const std::string index =
      fmt::format("const {0} i = static_cast<{0}>(at);\n", space.index_type(form.stages[0]));
  return AccessText{index + row.text + (lone ? "" : elements), values.globals()};
}

void store_outputs(ValueEmitter& values, const GroupForm& form) {
  for (const Task& task : form.tasks) values.store(task, "");
}

std::string in_method(const std::string& statements) { return indented(indented(statements)); }

}  // namespace

Result<std::string> operand_accessor(const EmitContext& context, size_t operand) {
  const Graph& group = context.group;
  const ValueId id = group[custom_anchor(group)].operands[operand];
  Graph graph;
  OpCopier copy(group, graph);
  graph.outputs.push_back(copy(id));
  const auto give = [](ValueEmitter& values, const GroupForm& form) {
    values.statement("return " + values.element(form.graph.outputs[0]) + ";");
  };
  const auto write = [](ValueEmitter& values, const GroupForm& form) {
    values.statement("out[e] = " + values.element(form.graph.outputs[0]) + ";");
  };
  SINTER_LET(one, access_text(context, graph, Accessed::element,
                              fmt::format("operand{}_table", operand), {}, give));
  SINTER_LET(chunk, access_text(context, graph, Accessed::chunk,
                                fmt::format("chunk{}_table", operand), {}, write));
  return one.globals + chunk.globals +
         fmt::format(
             "struct CustomOperand{0} : CustomMemory {{\n"
             "  SINTER_DEVICE {1} operator()(long long at) const {{\n{2}  }}\n"
             "  SINTER_DEVICE void chunk({1} (&out)[8], long long at) const {{\n{3}  }}\n"
             "}};\n",
             operand, register_type(group[id].type.dtype),
             in_method(one.statements.empty() ? "return 0;\n" : one.statements),
             in_method(chunk.statements));
}

/// Made of a graph of these outputs, whose last input is the result.
Result<std::string> result_accessor(const EmitContext& context) {
  const Graph& group = context.group;
  const ValueId anchor = custom_anchor(group);
  const TensorType& type = group[anchor].type;
  Graph graph;
  OpCopier copy(group, graph);
  const ValueId given = graph.add(Op{OpKind::input, type, {}, {}, "given"});
  graph.inputs.push_back(given);
  copy.define(anchor, given);
  const std::vector<bool> takes = takes_result(group, anchor);
  std::vector<std::string> names;
  for (size_t k = 0; k < group.outputs.size(); ++k) {
    if (!takes[group.outputs[k].index]) continue;
    names.push_back(fmt::format("y{}", k));
    graph.outputs.push_back(copy(group.outputs[k]));
  }
  SINTER_LET(one,
             access_text(context, graph, Accessed::element, "result_table", names, store_outputs));
  SINTER_LET(chunk, access_text(context, graph, Accessed::chunk, "result_chunk_table", names,
                                store_outputs));
  return one.globals + chunk.globals +
         fmt::format(
             "struct CustomResult : CustomMemory {{\n"
             "  SINTER_DEVICE void set(long long at, {0} given) const {{\n"
             "    const CustomElement<{0}> x{1}{{{2}}};\n{3}  }}\n"
             "  SINTER_DEVICE void set_chunk(long long at, const {0} (&given)[8]) const {{\n"
             "    CustomChunk<{0}> x{1};\n"
             "    x{1}.first = at;\n"
             "#pragma unroll\n"
             "    for (int e = 0; e < 8; ++e) x{1}.values[e] = {4};\n{5}  }}\n"
             "}};\n",
             register_type(type.dtype), group.inputs.size(), rounded_code("given", type.dtype),
             in_method(one.statements), rounded_code("given[e]", type.dtype),
             in_method(chunk.statements));
}

Result<StoredElement> stored_element(const EmitContext& context, size_t output) {
  const Graph& group = context.group;
  Graph graph;
  OpCopier copy(group, graph);
  graph.outputs.push_back(copy(group.outputs[output]));
  SINTER_LET(text,
             access_text(context, graph, Accessed::element, fmt::format("stored{}_table", output),
                         {fmt::format("y{}", output)}, store_outputs));
  return StoredElement{std::move(text.globals), std::move(text.statements)};
}

}  // namespace sinter
