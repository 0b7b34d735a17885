#include <llvm/ADT/STLExtras.h>

#include <charconv>
#include <cmath>

#include "ir/text.h"
#include "ir/variants.h"

namespace sinter {
namespace {

/// A name as it stands after '%' or '@'.
std::string quoted_name(std::string_view name) {
  const bool plain = !name.empty() && llvm::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
  });
  if (plain) return std::string(name);
  return '"' + printable(name, SIZE_MAX) + '"';
}

std::string hex_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char digits[64];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, std::abs(value), std::chars_format::hex);
  return fmt::format("{}0x{}", std::signbit(value) ? "-" : "",
                     std::string_view(digits, end.ptr - digits));
}

std::string number_text(const Number& number) {
  const std::optional<int64_t> integer = number.beyond_double();
  return integer ? fmt::format("{}", *integer) : hex_float(number.to_double());
}

class Printer {
 public:
  explicit Printer(llvm::ArrayRef<Symbol> symbols) : symbols_(symbols) {}

  void module(const Module& module);
  void graph(const Graph& graph);
  std::string take() { return std::move(out_); }

 private:
  template <typename... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }
  template <typename T, typename Show>
  void list(const T& items, Show show) {
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += ", ";
      show(items[i]);
    }
  }

  std::string type(const TensorType& type) const { return to_string(type, symbols_); }
  void symbol(const Symbol& symbol);
  void weight(const Weight& weight);
  void signature(const Graph& graph);
  void ops(const Graph& graph, std::string_view indent, bool with_leaves);
  void expression(const Graph& graph, const Op& op);
  void attributes(const Op& op);
  void value(const AttrValue& value);

  llvm::ArrayRef<Symbol> symbols_;
  std::string out_;
};

void Printer::value(const AttrValue& value) {
  const auto brackets = [&](const auto& items, auto show) {
    out_ += '[';
    list(items, [&](const auto& item) { out_ += show(item); });
    out_ += ']';
  };
  const auto show_dim = [&](Dim dim) { return to_string(dim, symbols_); };
  const auto show_integer = [](int64_t integer) { return fmt::format("{}", integer); };
  if (const auto* integer = std::get_if<int64_t>(&value)) out_ += show_integer(*integer);
  if (const auto* real = std::get_if<double>(&value)) out_ += hex_float(*real);
  if (const auto* dtype = std::get_if<DType>(&value)) out_ += to_string(*dtype);
  if (const auto* order = std::get_if<Order>(&value)) out_ += to_string(*order);
  if (const auto* dim = std::get_if<Dim>(&value)) out_ += show_dim(*dim);
  if (const auto* dims = std::get_if<Dims>(&value)) brackets(*dims, show_dim);
  if (const auto* integers = std::get_if<std::vector<int64_t>>(&value))
    brackets(*integers, show_integer);
  if (const auto* reals = std::get_if<std::vector<double>>(&value)) brackets(*reals, hex_float);
  if (const auto* number = std::get_if<Number>(&value)) out_ += number_text(*number);
  if (const auto* numbers = std::get_if<std::vector<Number>>(&value))
    brackets(*numbers, number_text);
  if (const auto* text = std::get_if<std::string>(&value))
    put("\"{}\"", printable(*text, SIZE_MAX));
}

/// Whether the op's type says what the attribute says.
bool stated_by_type(const Op& op, AttrName name, const AttrValue& value) {
  if (!llvm::is_contained(op_info(op.kind).required, name)) return false;
  return (name == AttrName::dims && value == AttrValue(op.type.dims)) ||
         (name == AttrName::dtype && value == AttrValue(op.type.dtype));
}

void Printer::attributes(const Op& op) {
  std::string_view separator = " {";
  for (const auto& [name, attr] : op.attrs) {
    if (stated_by_type(op, name, attr)) continue;
    put("{}{} = ", separator, to_string(name));
    value(attr);
    separator = ", ";
  }
  if (separator == ", ") out_ += '}';
}

void Printer::expression(const Graph& graph, const Op& op) {
  out_ += op_info(op.kind).name;
  if (!op.operands.empty()) out_ += ' ';
  list(op.operands, [&](ValueId operand) { put("%{}", quoted_name(graph[operand].name)); });
  attributes(op);
}

void Printer::ops(const Graph& graph, std::string_view indent, bool with_leaves) {
  for (const Op& op : graph.ops()) {
    if (op.kind == OpKind::input || (op_class(op) == OpClass::leaf && !with_leaves)) continue;
    put("{}%{} = ", indent, quoted_name(op.name));
    expression(graph, op);
    put(" : {}\n", type(op.type));
  }
}

void Printer::signature(const Graph& graph) {
  out_ += '(';
  list(graph.inputs,
       [&](ValueId id) { put("%{}: {}", quoted_name(graph[id].name), type(graph[id].type)); });
  out_ += ") -> (";
  list(graph.outputs, [&](ValueId id) { put("%{}", quoted_name(graph[id].name)); });
  out_ += ')';
}

void Printer::symbol(const Symbol& symbol) {
  put("  symbol {} in [{}, {}]", symbol.name, symbol.low, symbol.high);
  if (symbol.multiple != 1) put(" step {}", symbol.multiple);
  if (symbol.at_most) put(" at_most {}", symbols_[symbol.at_most->index].name);
  out_ += '\n';
}

void Printer::weight(const Weight& weight) {
  put("  weight %{} : {} = ", quoted_name(weight.name), type(weight.type));
  const Graph& init = weight.init;
  const bool one_op = init.size() == 1 && init.ops()[0].name == weight.name &&
                      init.ops()[0].type == weight.type && init.outputs.size() == 1;
  if (one_op) {
    expression(init, init.ops()[0]);
    out_ += '\n';
    return;
  }
  out_ += "{\n";
  ops(init, "    ", true);
  out_ += "    return ";
  list(init.outputs, [&](ValueId id) { put("%{}", quoted_name(init[id].name)); });
  out_ += "\n  }\n";
}

void Printer::module(const Module& module) {
  put("module @{} {{\n", quoted_name(module.name));
  for (const Symbol& s : module.symbols) symbol(s);
  for (const Weight& w : module.weights) weight(w);
  for (const State& state : module.states)
    put("  state %{} : {}\n", quoted_name(state.name), type(state.type));
  for (const Entry& entry : module.entries) {
    put("  entry @{}", quoted_name(entry.name));
    signature(entry.graph);
    if (entry.tokens != Tokens::any) put(" tokens {}", to_string(entry.tokens));
    if (entry.range) put(" where {}", to_string(*entry.range, symbols_));
    out_ += " {\n";
    ops(entry.graph, "    ", false);
    out_ += "  }\n";
  }
  out_ += "}\n";
}

void Printer::graph(const Graph& graph) {
  out_ += "graph";
  signature(graph);
  out_ += " {\n";
  ops(graph, "  ", true);
  out_ += "}\n";
}

}  // namespace

std::string print_module(const Module& module) {
  Printer printer(module.symbols);
  printer.module(module);
  return printer.take();
}

std::string print_graph(const Graph& graph, llvm::ArrayRef<Symbol> symbols) {
  Printer printer(symbols);
  printer.graph(graph);
  return printer.take();
}

}  // namespace sinter
