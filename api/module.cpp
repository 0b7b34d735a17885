#include "api/module.h"

#include "ir/infer.h"
#include "ir/text.h"
#include "ir/text_cursor.h"
#include "ir/verifier.h"

namespace sinter {
namespace {

Entry& entry_of(const sinter_graph& graph) { return graph.module->module.entries[graph.entry]; }

/// A reader of `text`, which belongs to `where`, that knows the module's symbols.
Result<TextCursor> read_with_symbols(const Module& module, std::string_view text,
                                     std::string_view where) {
  TextCursor cursor(text, where);
  for (uint32_t i = 0; i < module.symbols.size(); ++i)
    cursor.declare_symbol(module.symbols[i].name, SymbolId{i});
  SINTER_TRY(cursor.start());
  return cursor;
}

/// The type that a text says, if it is valid for all values of the symbols.
Result<TensorType> read_type(const Module& module, const char* text, const std::string& name) {
  SINTER_TRY(require(text, "type"));
  const std::string where = "type of " + printable(name);
  SINTER_LET(cursor, read_with_symbols(module, text, where));
  SINTER_LET(type, cursor.type());
  if (!cursor.at(Token::Kind::end)) return cursor.expected("nothing more");
  Graph alone;
  alone.inputs.push_back(alone.add(Op{OpKind::input, type, {}, {}, name}));
  alone.outputs.push_back(alone.inputs[0]);
  if (const auto violation = find_violation(alone, module.symbols))
    return tl::make_unexpected(violation->error);
  return std::move(type);
}

Result<Attributes> read_attributes(const Module& module, const char* text, const std::string& op) {
  if (!text || !*text) return Attributes();
  const std::string braced = fmt::format("{{{}}}", text);
  const std::string where = "attributes of " + op;
  SINTER_LET(cursor, read_with_symbols(module, braced, where));
  SINTER_LET(attributes, cursor.attributes());
  if (!cursor.at(Token::Kind::end)) return cursor.expected("nothing more");
  return std::move(attributes);
}

Status check_value(const Graph& graph, sinter_value value) {
  if (value < graph.size()) return {};
  return fail(fmt::format("value {} of a graph that has {}", value, graph.size()), {}, {},
              ExitCode::usage);
}

Status take_name(sinter_graph& graph, const std::string& name) {
  if (graph.names.insert(name).second) return {};
  return fail(fmt::format("a second value is called \"{}\"", printable(name)),
              "entry " + printable(entry_of(graph).name), "give one of them another name");
}

/// A name that no op, weight or state has.
std::string fresh_name(sinter_graph& graph) {
  const Module& module = graph.module->module;
  for (;;) {
    std::string name = fmt::format("t{}", graph.next++);
    if (!module.find_weight(name) && !module.find_state(name) && graph.names.insert(name).second)
      return name;
  }
}

/// The weight's function: the tensor of the same name.
Graph tensor_named(const std::string& name, const TensorType& type) {
  Graph init;
  init.outputs.push_back(init.add(Op{OpKind::file,
                                     type,
                                     {},
                                     Attributes()
                                         .set(AttrName::dims, type.dims)
                                         .set(AttrName::dtype, type.dtype)
                                         .set(AttrName::tensor, name),
                                     name}));
  return init;
}

Status add_op(sinter_graph& graph, const char* name, llvm::ArrayRef<sinter_value> operands,
              const char* attributes, const char* result_name, sinter_value* value) {
  Entry& entry = entry_of(graph);
  const auto kind = parse_op_kind(name);
  if (!kind || op_info(*kind).op_class == OpClass::leaf)
    return fail(
        fmt::format("no op is called \"{}\"", printable(name)), {},
        kind ? "sinter_graph_input and sinter_graph_use make leaves" : "docs/sir.md lists the ops",
        ExitCode::usage);
  Op op{*kind, {}, {}, {}, {}};
  llvm::SmallVector<TensorType, 3> types;
  for (const sinter_value id : operands) {
    SINTER_TRY(check_value(entry.graph, id));
    op.operands.push_back(ValueId{id});
    types.push_back(entry.graph[ValueId{id}].type);
  }
  const Module& module = graph.module->module;
  SINTER_LET(attrs, read_attributes(module, attributes, name));
  op.attrs = std::move(attrs);
  const std::string called = result_name ? result_name : "";
  auto type = infer_type(*kind, types, op.attrs, module.symbols);
  if (!type) {
    Error error = std::move(type.error());
    error.where = fmt::format("entry {}, {}{}{}", printable(entry.name), name,
                              called.empty() ? "" : " %", printable(called));
    return tl::make_unexpected(std::move(error));
  }
  op.type = std::move(*type);
  if (!called.empty()) SINTER_TRY(take_name(graph, called));
  op.name = called.empty() ? fresh_name(graph) : called;
  *value = entry.graph.add(std::move(op)).index;
  return {};
}

Status add_symbol(Module& module, const char* name, int64_t low, int64_t high, int64_t multiple,
                  const char* at_most) {
  Symbol symbol{name, low, high, multiple, std::nullopt};
  if (at_most) {
    const auto bound =
        llvm::find_if(module.symbols, [&](const Symbol& other) { return other.name == at_most; });
    if (bound == module.symbols.end())
      return fail(fmt::format("no symbol is called \"{}\"", printable(at_most)),
                  "symbol " + printable(name), "add it first");
    symbol.at_most = SymbolId{static_cast<uint32_t>(bound - module.symbols.begin())};
  }
  Module symbols;
  symbols.name = "symbols";
  symbols.symbols = module.symbols;
  symbols.symbols.push_back(symbol);
  if (const auto violation = find_violation(symbols)) return tl::make_unexpected(violation->error);
  module.symbols.push_back(std::move(symbol));
  return {};
}

std::atomic<bool>& turn_of(const sinter_module& module) { return module.in_use; }
std::atomic<bool>& turn_of(const sinter_graph& graph) { return graph.module->in_use; }

/// A function of a module or of one of its graphs, none of which runs beside another.
template <typename Handle, typename Work>
sinter_error* with_module(Handle* handle, const char* parameter, Work&& work) {
  if (!handle) return border([&] { return require(nullptr, parameter); });
  return border_in_turn(turn_of(*handle), work);
}

}  // namespace
}  // namespace sinter

using namespace sinter;

sinter_error* sinter_module_create(const char* name, sinter_module** module) {
  return make_handle(module, [&]() -> Result<std::unique_ptr<sinter_module>> {
    SINTER_TRY(require(name, "name"));
    auto made = std::make_unique<sinter_module>();
    made->module.name = name;
    return made;
  });
}

sinter_error* sinter_module_symbol(sinter_module* module, const char* name, int64_t low,
                                   int64_t high, int64_t multiple, const char* at_most) {
  return with_module(module, "module", [&]() -> Status {
    SINTER_TRY(require(name, "name"));
    return add_symbol(module->module, name, low, high, multiple, at_most);
  });
}

sinter_error* sinter_module_weight(sinter_module* module, const char* name, const char* type) {
  return with_module(module, "module", [&]() -> Status {
    SINTER_TRY(require(name, "name"));
    SINTER_LET(read, read_type(module->module, type, name));
    module->module.weights.push_back({name, read, tensor_named(name, read)});
    return {};
  });
}

sinter_error* sinter_module_state(sinter_module* module, const char* name, const char* type) {
  return with_module(module, "module", [&]() -> Status {
    SINTER_TRY(require(name, "name"));
    SINTER_LET(read, read_type(module->module, type, name));
    module->module.states.push_back({name, std::move(read)});
    return {};
  });
}

sinter_error* sinter_module_entry(sinter_module* module, const char* name, sinter_graph** graph) {
  return with_module(module, "module", [&]() -> Status {
    SINTER_TRY(require(name, "name"));
    SINTER_TRY(require(graph, "graph"));
    *graph = nullptr;
    module->graphs.push_back(
        std::make_unique<sinter_graph>(sinter_graph{module, module->module.entries.size(), {}, 0}));
    module->module.entries.push_back({name, {}, {}});
    *graph = module->graphs.back().get();
    return {};
  });
}

sinter_error* sinter_module_text(const sinter_module* module, char** text) {
  return give_text(text, [&]() -> Result<std::string> {
    SINTER_TRY(require(module, "module"));
    return in_turn(module->in_use,
                   [&]() -> Result<std::string> { return print_module(module->module); });
  });
}

void sinter_module_free(sinter_module* module) { free_handle(module); }

sinter_error* sinter_graph_input(sinter_graph* graph, const char* name, const char* type,
                                 sinter_value* value) {
  return with_module(graph, "graph", [&]() -> Status {
    SINTER_TRY(require(name, "name"));
    SINTER_TRY(require(value, "value"));
    SINTER_LET(read, read_type(graph->module->module, type, name));
    SINTER_TRY(take_name(*graph, name));
    Graph& target = entry_of(*graph).graph;
    const ValueId id = target.add(Op{OpKind::input, std::move(read), {}, {}, name});
    target.inputs.push_back(id);
    *value = id.index;
    return {};
  });
}

sinter_error* sinter_graph_use(sinter_graph* graph, const char* name, sinter_value* value) {
  return with_module(graph, "graph", [&]() -> Status {
    SINTER_TRY(require(name, "name"));
    SINTER_TRY(require(value, "value"));
    Graph& target = entry_of(*graph).graph;
    const Module& module = graph->module->module;
    const Weight* weight = module.find_weight(name);
    const State* state = module.find_state(name);
    if (!weight && !state)
      return fail(fmt::format("the module has no weight and no state \"{}\"", printable(name)), {},
                  "add it first");
    ValueId id;
    for (const Op& op : target.ops())
      if (op.name == name && (op.kind == OpKind::weight || op.kind == OpKind::state))
        id = ValueId{static_cast<uint32_t>(&op - target.ops().data())};
    if (!id.valid()) {
      SINTER_TRY(take_name(*graph, name));
      id = target.add(Op{weight ? OpKind::weight : OpKind::state,
                         weight ? weight->type : state->type,
                         {},
                         {},
                         name});
    }
    *value = id.index;
    return {};
  });
}

sinter_error* sinter_graph_op(sinter_graph* graph, const char* op, const sinter_value* operands,
                              size_t operand_count, const char* attributes, const char* name,
                              sinter_value* value) {
  return with_module(graph, "graph", [&]() -> Status {
    SINTER_TRY(require(op, "op"));
    if (operand_count > 0) SINTER_TRY(require(operands, "operands"));
    SINTER_TRY(require(value, "value"));
    return add_op(*graph, op, {operands, operand_count}, attributes, name, value);
  });
}

sinter_error* sinter_graph_rename(sinter_graph* graph, sinter_value value, const char* name) {
  return with_module(graph, "graph", [&]() -> Status {
    SINTER_TRY(require(name, "name"));
    Graph& target = entry_of(*graph).graph;
    SINTER_TRY(check_value(target, value));
    Op& op = target[ValueId{value}];
    if (op_info(op.kind).op_class == OpClass::leaf)
      return fail(fmt::format("{} is an input, a weight or a state", printable(op.name)),
                  "entry " + printable(entry_of(*graph).name), "give it its name when it is added",
                  ExitCode::usage);
    if (op.name == name) return {};
    SINTER_TRY(take_name(*graph, name));
    graph->names.erase(graph->names.find(op.name));
    op.name = name;
    return {};
  });
}

sinter_error* sinter_graph_output(sinter_graph* graph, sinter_value value) {
  return with_module(graph, "graph", [&]() -> Status {
    Graph& target = entry_of(*graph).graph;
    SINTER_TRY(check_value(target, value));
    target.outputs.push_back(ValueId{value});
    return {};
  });
}

sinter_error* sinter_graph_type(const sinter_graph* graph, sinter_value value, char** type) {
  return give_text(type, [&]() -> Result<std::string> {
    SINTER_TRY(require(graph, "graph"));
    return in_turn(graph->module->in_use, [&]() -> Result<std::string> {
      const Graph& target = entry_of(*graph).graph;
      SINTER_TRY(check_value(target, value));
      return to_string(target[ValueId{value}].type, graph->module->module.symbols);
    });
  });
}
