#include "codegen/emission/element_ports.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/Sequence.h>

#include "codegen/emission/emit_index.h"
#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/emit_scope.h"
#include "codegen/emission/emit_value.h"
#include "codegen/emission/kernel_body.h"
#include "codegen/emission/op_copier.h"

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
    return fail("neighbours of an anchor do not have its elements", {},
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

std::vector<bool> takes_result(const Graph& group, ValueId anchor) {
  std::vector<bool> takes(group.size(), false);
  takes[anchor.index] = true;
  for (uint32_t i = anchor.index + 1; i < group.size(); ++i)
    takes[i] = llvm::any_of(group.ops()[i].operands, [&](ValueId id) { return takes[id.index]; });
  return takes;
}

std::string port_memory(const EmitContext& context) {
  const Graph& group = context.group;
  std::string members;
  for (const auto& [k, id] : llvm::enumerate(group.inputs))
    members += fmt::format("  const {}* x{};\n", memory_type(group[id].type.dtype), k);
  for (const auto& [k, id] : llvm::enumerate(group.outputs))
    members += fmt::format("  {}* y{};\n", memory_type(group[id].type.dtype), k);
  for (size_t k = 0; k < context.parameters.size(); ++k)
    members += fmt::format("  long long n{};\n", k);
  return fmt::format("struct PortMemory {{\n{}}};\n", members);
}

std::string port_memory_value(const EmitContext& context) {
  const auto numbers = [](size_t count) {
    return llvm::to_vector(llvm::seq<uint32_t>(0, static_cast<uint32_t>(count)));
  };
  return fmt::format(
      "const PortMemory memory{{{}}};\n",
      arguments_of(numbers(context.group.inputs.size()), numbers(context.group.outputs.size()),
                   context.parameters.size()));
}

Result<std::string> operand_accessor(const EmitContext& context, ValueId anchor, size_t operand) {
  const Graph& group = context.group;
  const ValueId id = group[anchor].operands[operand];
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
             "struct PortOperand{0} : PortMemory {{\n"
             "  SINTER_DEVICE {1} operator()(long long at) const {{\n{2}  }}\n"
             "  SINTER_DEVICE void chunk({1} (&out)[8], long long at) const {{\n{3}  }}\n"
             "}};\n",
             operand, register_type(group[id].type.dtype),
             in_method(one.statements.empty() ? "return 0;\n" : one.statements),
             in_method(chunk.statements));
}

// Made of a graph of these outputs, whose last input is the result.
Result<std::string> result_accessor(const EmitContext& context, ValueId anchor) {
  const Graph& group = context.group;
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
             "struct PortResult : PortMemory {{\n"
             "  SINTER_DEVICE void set(long long at, {0} given) const {{\n"
             "    const PortElement<{0}> x{1}{{{2}}};\n{3}  }}\n"
             "  SINTER_DEVICE void set_chunk(long long at, const {0} (&given)[8]) const {{\n"
             "    PortChunk<{0}> x{1};\n"
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

Result<StoredElement> stored_outputs(const EmitContext& context, ValueId anchor, int64_t threads) {
  const Graph& group = context.group;
  const std::vector<bool> takes = takes_result(group, anchor);
  StoredElement all;
  for (size_t k = 0; k < group.outputs.size(); ++k) {
    const ValueId id = group.outputs[k];
    if (takes[id.index]) continue;
    SINTER_LET(stored, stored_element(context, k));
    all.globals += stored.globals;
    all.statements += fmt::format(
        "for (long long at = blockIdx.x * {0}ll + threadIdx.x; at < {1}; at += gridDim.x * "
        "{0}ll) {{\n{2}}}\n",
        threads, size_code(volume(group[id].type.dims), context.parameters),
        indented(stored.statements));
  }
  return all;
}

}  // namespace sinter
