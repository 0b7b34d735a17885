#include "codegen/emission/element_ports.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/Sequence.h>

#include "codegen/emission/emit_index.h"
#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/emit_scope.h"
#include "codegen/emission/emit_value.h"
#include "codegen/emission/kernel_body.h"
#include "ir/graph_copier.h"
#include "ir/side_results.h"

namespace sinter {
namespace {

enum class Accessed : uint8_t { element, chunk };

/// Statements for element `i` of a graph's outputs, or for the 8 elements from there on, `e` of
/// them in each turn; and the definitions before the kernel that they need.
struct AccessText {
  std::string statements, globals;
};

/// A part of the group that is computed element by element. It is analyzed once for all its text.
class AccessedPart {
 public:
  static Result<AccessedPart> create(const EmitContext& context, const Graph& part,
                                     std::vector<std::string> output_names = {}) {
    SINTER_LET(form, analyze_group(part, 0, context.symbols));
    form.output_names = std::move(output_names);
    if (form.reduces || form.stages.size() != 1)
      return fail("neighbours of an anchor do not have its elements", {},
                  "compute the ops in separate kernels", ExitCode::internal_error);
    return AccessedPart(context, std::move(form));
  }

  /// `write` adds the statements.
  template <typename Write>
  Result<AccessText> text(Accessed accessed, std::string table_name, Write&& write) {
    form_.table_name = std::move(table_name);
    // A value of one element stands in the row's scope, and is no part of a chunk.
    const bool lone = form_.stages[0].axes.empty();
    if (form_.stages[0].width.is(0) || (lone && accessed == Accessed::chunk)) return AccessText{};
    LoopSpace space(form_, context_.symbols, context_.parameters);
    ValueEmitter values(form_, space);
    CodeScope row;
    values.open(0, 0, row, false, accessed == Accessed::element);
    write(values, form_);
    if (values.error()) return tl::make_unexpected(*values.error());
    const std::string elements = values.close();
    const std::string index =
        fmt::format("const {0} i = static_cast<{0}>(at);\n", space.index_type(form_.stages[0]));
    return AccessText{index + row.text + (lone ? "" : elements), values.globals()};
  }

 private:
  AccessedPart(const EmitContext& context, GroupForm form)
      : context_(context), form_(std::move(form)) {}

  const EmitContext& context_;
  GroupForm form_;
};

void store_outputs(ValueEmitter& values, const GroupForm& form) {
  for (const Task& task : form.tasks) values.store(task, "");
}

std::string in_method(const std::string& statements) { return indented(indented(statements)); }

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

/// The definition of PortOperandK, where K is `operand`.
Result<std::string> operand_accessor(const EmitContext& context, size_t operand) {
  const Graph& group = context.group;
  const ValueId id = context.anchor_op().operands[operand];
  Graph graph;
  GraphCopier copy(group, graph);
  graph.outputs.push_back(copy(id));
  const auto give = [](ValueEmitter& values, const GroupForm& form) {
    values.statement("return " + values.element(form.graph.outputs[0]) + ";");
  };
  const auto write = [](ValueEmitter& values, const GroupForm& form) {
    values.statement("out[e] = " + values.element(form.graph.outputs[0]) + ";");
  };
  SINTER_LET(part, AccessedPart::create(context, graph));
  SINTER_LET(one, part.text(Accessed::element, fmt::format("operand{}_table", operand), give));
  SINTER_LET(chunk, part.text(Accessed::chunk, fmt::format("chunk{}_table", operand), write));
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

/// Statements that replace the members of PortMemory by what `loads` gives.
std::string loaded_memory(const Graph& group) {
  std::string text;
  const auto add = [&](char name, size_t count) {
    for (size_t k = 0; k < count; ++k)
      text += fmt::format("    const auto {0}{1} = loads.of(PortMemory::{0}{1});\n", name, k);
  };
  add('x', group.inputs.size());
  add('y', group.outputs.size());
  return text;
}

/// The output is `given`, perhaps with other axes.
bool is_reshape_of(const Graph& graph, ValueId output, ValueId given) {
  while (graph[output].kind == OpKind::reshape) output = graph[output].operands[0];
  return output == given;
}

/// The output that is the sums of blocks of rows of `source`, a value of PortResult's graph.
struct SummedOutput {
  size_t output = 0;
  ValueId source;  // invalid: there is none

  std::string loaded(const Graph& graph) const {
    if (!source.valid()) return {};
    return fmt::format("    const auto sums = loads.template summed<{}>();\n",
                       memory_type(graph[source].type.dtype));
  }
  std::string method() const {
    if (!source.valid()) return {};
    return fmt::format("  SINTER_DEVICE float* sums_of_blocks() const {{ return y{}; }}\n", output);
  }
};

/// The definition of PortResult. It is made of a graph of the outputs that take the result, which
/// is the graph's last input.
Result<std::string> result_accessor(const EmitContext& context, const std::vector<bool>& takes,
                                    bool loads_ahead) {
  const Graph& group = context.group;
  const TensorType& type = context.anchor_op().type;
  Graph graph;
  GraphCopier copy(group, graph);
  const ValueId given = graph.add(Op{OpKind::input, type, {}, {}, "given"});
  graph.inputs.push_back(given);
  copy.define(context.anchor->id, given);
  std::vector<std::string> names;
  SummedOutput summed;
  for (size_t k = 0; k < group.outputs.size(); ++k) {
    const ValueId id = group.outputs[k];
    if (!takes[id.index]) continue;
    if (const auto sums = as_block_sums(group, id)) {
      SINTER_CHECK(loads_ahead && !summed.source.valid(), "a kernel makes one value of sums");
      summed = {k, copy(sums->source)};
      continue;
    }
    names.push_back(fmt::format("y{}", k));
    graph.outputs.push_back(copy(id));
  }
  std::vector<std::string> chunk_names = names;
  Graph of_chunks = graph;
  if (summed.source.valid()) {
    chunk_names.emplace_back("sums");
    of_chunks.outputs.push_back(summed.source);
  }
  AccessText one;
  if (!names.empty()) {
    SINTER_LET(part, AccessedPart::create(context, graph, std::move(names)));
    SINTER_LET(text, part.text(Accessed::element, "result_table", store_outputs));
    one = std::move(text);
  }
  SINTER_LET(part, AccessedPart::create(context, of_chunks, std::move(chunk_names)));
  SINTER_LET(chunk, part.text(Accessed::chunk, "result_chunk_table", store_outputs));
  std::string set_words;
  if (!loads_ahead && graph.outputs.size() == 1 && dtype_info(type.dtype).bits == 16 &&
      is_reshape_of(graph, graph.outputs[0], given)) {
    const auto store = [&](ValueEmitter& values, const GroupForm& form) {
      values.statement(fmt::format("st_global_v4({} + i, words);", form.output_names[0]));
    };
    SINTER_LET(words, part.text(Accessed::element, "result_words_table", store));
    set_words =
        fmt::format("  SINTER_DEVICE void set_words(long long at, uint4 words) const {{\n{}  }}\n",
                    in_method(words.statements));
  }
  const std::string_view type_code = register_type(type.dtype);
  const std::string of_chunk = fmt::format(
      "    PortChunk<{0}> x{1};\n"
      "    x{1}.first = at;\n"
      "#pragma unroll\n"
      "    for (int e = 0; e < 8; ++e) x{1}.values[e] = {2};\n{3}",
      type_code, group.inputs.size(),
      loads_ahead ? "given[e]" : rounded_code("given[e]", type.dtype), in_method(chunk.statements));
  const std::string set_chunk =
      loads_ahead
          ? fmt::format(
                "  template <typename Loads>\n"
                "  SINTER_DEVICE void set_chunk(long long at, const {0} (&given)[8], Loads loads) "
                "const {{\n{1}{2}  }}\n"
                "  SINTER_DEVICE void issue_loads(long long at, AheadWords& words) const {{\n"
                "    const {0} given[8] = {{}};\n"
                "    set_chunk(at, given, IssuedLoads(words));\n"
                "  }}\n"
                "  SINTER_DEVICE void prefetch(long long at) const {{\n"
                "    const {0} given[8] = {{}};\n"
                "    set_chunk(at, given, PrefetchedLoads());\n"
                "  }}\n{3}",
                type_code, loaded_memory(group) + summed.loaded(graph), of_chunk, summed.method())
          : fmt::format(
                "  SINTER_DEVICE void set_chunk(long long at, const {} (&given)[8]) const {{\n"
                "{}  }}\n",
                type_code, of_chunk);
  return one.globals + chunk.globals +
         fmt::format(
             "struct PortResult : PortMemory {{\n"
             "  SINTER_DEVICE void set(long long at, {0} given) const {{\n"
             "    const PortElement<{0}> x{1}{{{2}}};\n{3}  }}\n",
             type_code, group.inputs.size(), rounded_code("given", type.dtype),
             in_method(one.statements)) +
         set_chunk + set_words + "};\n";
}

/// Adds the statements that store an output which does not take the result.
Status add_store(const EmitContext& context, size_t output, int64_t threads, PortText& text) {
  const Graph& group = context.group;
  const ValueId id = group.outputs[output];
  Graph graph;
  GraphCopier copy(group, graph);
  graph.outputs.push_back(copy(id));
  SINTER_LET(part, AccessedPart::create(context, graph, {fmt::format("y{}", output)}));
  SINTER_LET(stored,
             part.text(Accessed::element, fmt::format("stored{}_table", output), store_outputs));
  text.store_globals += stored.globals;
  text.stores += fmt::format(
      "for (long long at = blockIdx.x * {0}ll + threadIdx.x; at < {1}; at += gridDim.x * "
      "{0}ll) {{\n{2}}}\n",
      threads, size_code(volume(group[id].type.dims), context.parameters),
      indented(stored.statements));
  return {};
}

}  // namespace

namespace {

/// By value of the group: whether it is one of `results`, or depends on one.
std::vector<bool> takes_some(const Graph& group, llvm::ArrayRef<ValueId> results) {
  std::vector<bool> takes(group.size(), false);
  for (uint32_t i = 0; i < group.size(); ++i)
    takes[i] = llvm::is_contained(results, ValueId{i}) ||
               llvm::any_of(group.ops()[i].operands, [&](ValueId id) { return takes[id.index]; });
  return takes;
}

}  // namespace

std::vector<bool> takes_result(const EmitContext& context) {
  return takes_some(context.group, context.anchor->id);
}

Result<PortText> emit_operand_ports(const EmitContext& context, int64_t threads) {
  PortText text{"#include \"kernels/common/element_ports.cuh\"\n",
                port_memory(context),
                port_memory_value(context),
                {},
                {},
                {}};
  for (uint32_t operand : context.anchor->element_operands) {
    SINTER_LET(accessor, operand_accessor(context, operand));
    text.accessors += accessor;
  }
  llvm::SmallVector<ValueId, 2> results = {context.anchor->id};
  llvm::append_range(results, context.anchor->companions);
  const std::vector<bool> takes = takes_some(context.group, results);
  for (size_t k = 0; k < context.group.outputs.size(); ++k)
    if (!takes[context.group.outputs[k].index]) SINTER_TRY(add_store(context, k, threads, text));
  return text;
}

Result<PortText> emit_ports(const EmitContext& context, int64_t threads, bool loads_ahead) {
  SINTER_LET(text, emit_operand_ports(context, threads));
  if (loads_ahead) text.includes += "#include \"kernels/common/ahead_loads.cuh\"\n";
  SINTER_LET(result, result_accessor(context, takes_result(context), loads_ahead));
  text.accessors += result;
  return std::move(text);
}

}  // namespace sinter
