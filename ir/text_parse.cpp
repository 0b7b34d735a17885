// One pass over the tokens, without recursion. The grammar and the resolution of names are here, in
// one file because every rule shares the scope; everything else that can be wrong with a module is
// the verifier's to say.
#include <llvm/ADT/StringMap.h>

#include "ir/infer.h"
#include "ir/text.h"
#include "ir/text_cursor.h"
#include "ir/verifier.h"

namespace sinter {
namespace {

/// Where the ops of a graph stand in the text.
using OpPositions = std::vector<TextPosition>;

class Parser {
 public:
  Parser(std::string_view text, std::string_view file) : cursor_(text, file) {}

  Result<Module> module();
  Result<Graph> graph_alone(llvm::ArrayRef<Symbol> symbols);

 private:
  /// A weight or a state, as leaf of a graph.
  struct Named {
    OpKind kind;
    TensorType type;
    TextPosition at;
  };
  /// The graph that is being read.
  struct Scope {
    Graph graph;
    llvm::StringMap<ValueId> values;
    OpPositions positions;
    bool sees_module = false;
  };

  Status symbol();
  /// "in [low, high]".
  Status bounds(int64_t& low, int64_t& high);
  Status weight();
  Status state();
  Status entry();
  Status tokens(Entry& entry);
  Status range(Entry& entry);
  Status inputs(Scope& scope);
  Result<std::vector<Token>> output_names();
  /// Ops up to the word or brace `end`, which stays.
  Status ops(Scope& scope, std::string_view end);
  /// Ops in braces, then the graph's outputs.
  Status body(Scope& scope, llvm::ArrayRef<Token> outputs);
  Result<Op> expression(Scope& scope);
  /// The type of an op whose text states none.
  Result<TensorType> inferred(const Scope& scope, const Op& op, const Token& name) const;
  Status define(Scope& scope, Op op, const Token& name);
  Result<ValueId> use(Scope& scope, const Token& name);
  Status declare(const Token& name, OpKind kind, const TensorType& type);
  Status end_of_text();
  tl::unexpected<Error> redefinition(const Token& name, TextPosition first) const;
  tl::unexpected<Error> unknown_op(const Token& word) const;
  tl::unexpected<Error> located(const Violation& violation) const;

  TextCursor cursor_;
  Module module_;
  llvm::StringMap<Named> named_;
  llvm::StringMap<TextPosition> entries_, symbols_;
  TextPosition start_;
  std::vector<TextPosition> symbol_positions_, state_positions_;
  std::vector<OpPositions> weight_ops_, entry_ops_;  // the part itself last
};

tl::unexpected<Error> Parser::redefinition(const Token& name, TextPosition first) const {
  return cursor_.error(
      fmt::format("redefinition of {}, first defined at {}", describe(name), cursor_.where(first)),
      name.at, "give one of them another name");
}

tl::unexpected<Error> Parser::unknown_op(const Token& word) const {
  std::string_view nearest;
  unsigned least = 4;  // letters to change; more is another word
  const auto consider = [&](std::string_view name) {
    const unsigned distance = llvm::StringRef(word.text).edit_distance(name, true, least);
    if (distance < least) least = distance, nearest = name;
  };
#define SINTER_OP(name, op_class, least, most, required, optional, ...) consider(#name);
#define SINTER_ELEMENTWISE(name, ...) consider(#name);
#include "ir/ops.def"
  if (const auto order = parse_order(word.text))
    return cursor_.error(fmt::format("no op {}", describe(word)), word.at,
                         fmt::format("write '{} ... {{order = {}}}'",
                                     op_info(order_info(*order).op).name, word.text));
  return cursor_.error(
      fmt::format("no op {}", describe(word)), word.at,
      nearest.empty() ? "docs/sir.md lists the ops" : fmt::format("is '{}' meant?", nearest));
}

Status Parser::declare(const Token& name, OpKind kind, const TensorType& type) {
  const auto [at, fresh] = named_.try_emplace(name.text, Named{kind, type, name.at});
  if (!fresh) return redefinition(name, at->second.at);
  return {};
}

Status Parser::define(Scope& scope, Op op, const Token& name) {
  op.name = name.text;
  const ValueId id{static_cast<uint32_t>(scope.graph.size())};
  const auto [at, fresh] = scope.values.try_emplace(name.text, id);
  if (!fresh) return redefinition(name, scope.positions[at->second.index]);
  const auto outer = named_.find(name.text);
  if (scope.sees_module && outer != named_.end()) return redefinition(name, outer->second.at);
  scope.graph.add(std::move(op));
  scope.positions.push_back(name.at);
  return {};
}

Result<ValueId> Parser::use(Scope& scope, const Token& name) {
  const auto local = scope.values.find(name.text);
  if (local != scope.values.end()) return local->second;
  const auto outer = named_.find(name.text);
  if (scope.sees_module && outer != named_.end()) {
    const ValueId id =
        scope.graph.add(Op{outer->second.kind, outer->second.type, {}, {}, name.text});
    scope.values[name.text] = id;
    scope.positions.push_back(name.at);
    return id;
  }
  if (const auto later = cursor_.find_definition(name.text))
    return cursor_.error(fmt::format("{} is used before its definition at {}", describe(name),
                                     cursor_.where(*later)),
                         name.at, "write an op after the ops that it reads; cycles have no order");
  return cursor_.error(fmt::format("no value {}", describe(name)), name.at,
                       "define it above, or declare it as input, weight or state");
}

Result<Op> Parser::expression(Scope& scope) {
  SINTER_LET(word, cursor_.take(Token::Kind::word, "an op"));
  const auto kind = parse_op_kind(word.text);
  if (!kind) return unknown_op(word);
  Op op{*kind, {}, {}, {}, {}};
  while (cursor_.at(Token::Kind::value)) {
    SINTER_LET(name, cursor_.take(Token::Kind::value, "an operand"));
    SINTER_LET(operand, use(scope, name));
    op.operands.push_back(operand);
    SINTER_LET(more, cursor_.accept(","));
    if (!more) break;
    if (!cursor_.at(Token::Kind::value)) return cursor_.expected("another operand, %name");
  }
  SINTER_LET(attrs, cursor_.attributes());
  op.attrs = std::move(attrs);
  return op;
}

/// Gives the op its type and the attributes that the type states.
void set_type(Op& op, TensorType type) {
  for (AttrName name : op_info(op.kind).required) {
    if (op.attrs.has(name)) continue;
    if (name == AttrName::dims) op.attrs.set(name, type.dims);
    if (name == AttrName::dtype) op.attrs.set(name, type.dtype);
  }
  op.type = std::move(type);
}

Result<TensorType> Parser::inferred(const Scope& scope, const Op& op, const Token& name) const {
  for (AttrName required : op_info(op.kind).required)
    if (!op.attrs.has(required) && (required == AttrName::dims || required == AttrName::dtype))
      return cursor_.error(
          fmt::format("{} has no type, and the op '{}' no attribute {} to infer it from",
                      describe(name), op_info(op.kind).name, to_string(required)),
          name.at,
          fmt::format("write ': TYPE' behind the op, or the attribute {}", to_string(required)));
  llvm::SmallVector<TensorType, 3> operands;
  for (ValueId operand : op.operands) operands.push_back(scope.graph[operand].type);
  auto type = infer_type(op.kind, operands, op.attrs, module_.symbols);
  if (!type) {
    const Error& error = type.error();
    return cursor_.error(fmt::format("{}: {}", describe(name), error.what), name.at,
                         error.hint.empty() ? "change the op or its operands" : error.hint);
  }
  return std::move(*type);
}

Status Parser::ops(Scope& scope, std::string_view end) {
  while (!cursor_.at(end)) {
    SINTER_LET(name,
               cursor_.take(Token::Kind::value, fmt::format("an op, %name = ..., or '{}'", end)));
    SINTER_TRY(cursor_.expect("="));
    SINTER_LET(op, expression(scope));
    if (op_class(op) == OpClass::leaf || cursor_.at(":")) {
      SINTER_TRY(cursor_.expect(":"));
      SINTER_LET(type, cursor_.type());
      set_type(op, type);
    } else {
      SINTER_LET(type, inferred(scope, op, name));
      op.type = type;
    }
    SINTER_TRY(define(scope, std::move(op), name));
  }
  return {};
}

Status Parser::bounds(int64_t& low, int64_t& high) {
  SINTER_TRY(cursor_.expect("in"));
  SINTER_TRY(cursor_.expect("["));
  SINTER_LET(smallest, cursor_.integer("the smallest value"));
  SINTER_TRY(cursor_.expect(","));
  SINTER_LET(largest, cursor_.integer("the largest value"));
  SINTER_TRY(cursor_.expect("]"));
  low = smallest;
  high = largest;
  return {};
}

Status Parser::symbol() {
  SINTER_LET(name, cursor_.take(Token::Kind::word, "a symbol's name"));
  const SymbolId id{static_cast<uint32_t>(module_.symbols.size())};
  const auto [at, fresh] = symbols_.try_emplace(name.text, name.at);
  if (!fresh) return redefinition(name, at->second);
  Symbol symbol;
  symbol.name = name.text;
  SINTER_TRY(bounds(symbol.low, symbol.high));
  SINTER_LET(step, cursor_.accept("step"));
  if (step) {
    SINTER_LET(multiple, cursor_.integer("what divides every value"));
    symbol.multiple = multiple;
  }
  SINTER_LET(bounded, cursor_.accept("at_most"));
  if (bounded) {
    SINTER_LET(bound, cursor_.dim());
    if (bound.is_constant())
      return cursor_.error("a constant stands after at_most", name.at, "name an earlier symbol");
    symbol.at_most = bound.symbol();
  }
  if (cursor_.at("device"))
    return cursor_.error(
        fmt::format(
            "symbol {} is marked `device`: no plan can have sizes that only the device knows",
            symbol.name),
        name.at, "leave `device` out: the host gives every symbol its value");
  cursor_.declare_symbol(name.text, id);
  symbol_positions_.push_back(name.at);
  module_.symbols.push_back(std::move(symbol));
  return {};
}

Status Parser::weight() {
  SINTER_LET(name, cursor_.take(Token::Kind::value, "a weight's name, %name"));
  SINTER_TRY(cursor_.expect(":"));
  SINTER_LET(type, cursor_.type());
  SINTER_TRY(cursor_.expect("="));
  Scope scope;
  SINTER_LET(block, cursor_.accept("{"));
  if (block) {
    SINTER_TRY(ops(scope, "return"));
    SINTER_TRY(cursor_.advance());
    SINTER_LET(result, cursor_.take(Token::Kind::value, "the function's result, %name"));
    SINTER_LET(id, use(scope, result));
    scope.graph.outputs.push_back(id);
    SINTER_TRY(cursor_.expect("}"));
  } else {
    SINTER_LET(op, expression(scope));
    set_type(op, type);
    SINTER_TRY(define(scope, std::move(op), name));
    scope.graph.outputs.push_back(ValueId{0});
  }
  SINTER_TRY(declare(name, OpKind::weight, type));
  scope.positions.push_back(name.at);
  weight_ops_.push_back(std::move(scope.positions));
  module_.weights.push_back(Weight{name.text, type, std::move(scope.graph)});
  return {};
}

Status Parser::state() {
  SINTER_LET(name, cursor_.take(Token::Kind::value, "a state's name, %name"));
  SINTER_TRY(cursor_.expect(":"));
  SINTER_LET(type, cursor_.type());
  SINTER_TRY(declare(name, OpKind::state, type));
  state_positions_.push_back(name.at);
  module_.states.push_back(State{name.text, type});
  return {};
}

Status Parser::inputs(Scope& scope) {
  SINTER_TRY(cursor_.expect("("));
  while (!cursor_.at(")")) {
    if (!scope.graph.inputs.empty()) SINTER_TRY(cursor_.expect(","));
    SINTER_LET(name, cursor_.take(Token::Kind::value, "an input, %name: type"));
    SINTER_TRY(cursor_.expect(":"));
    SINTER_LET(type, cursor_.type());
    scope.graph.inputs.push_back(ValueId{static_cast<uint32_t>(scope.graph.size())});
    SINTER_TRY(define(scope, Op{OpKind::input, type, {}, {}, {}}, name));
  }
  return cursor_.advance();
}

Result<std::vector<Token>> Parser::output_names() {
  std::vector<Token> names;
  SINTER_TRY(cursor_.expect("->"));
  SINTER_TRY(cursor_.expect("("));
  while (!cursor_.at(")")) {
    if (!names.empty()) SINTER_TRY(cursor_.expect(","));
    SINTER_LET(name, cursor_.take(Token::Kind::value, "an output, %name"));
    names.push_back(std::move(name));
  }
  SINTER_TRY(cursor_.advance());
  return names;
}

Status Parser::body(Scope& scope, llvm::ArrayRef<Token> outputs) {
  SINTER_TRY(cursor_.expect("{"));
  SINTER_TRY(ops(scope, "}"));
  for (const Token& name : outputs) {
    SINTER_LET(id, use(scope, name));
    scope.graph.outputs.push_back(id);
  }
  return cursor_.advance();
}

Status Parser::tokens(Entry& entry) {
  SINTER_LET(stated, cursor_.accept("tokens"));
  if (!stated) return {};
  SINTER_LET(word, cursor_.take(Token::Kind::word, "any, invariant or one_each"));
  const std::optional<Tokens> tokens = parse_tokens(word.text);
  if (!tokens)
    return cursor_.error(fmt::format("an entry has no tokens '{}'", printable(word.text)), word.at,
                         "any, invariant or one_each");
  entry.tokens = *tokens;
  return {};
}

Status Parser::range(Entry& entry) {
  SINTER_LET(stated, cursor_.accept("where"));
  if (!stated) return {};
  const TextPosition at = cursor_.token().at;
  SINTER_LET(symbol, cursor_.dim());
  if (symbol.is_constant())
    return cursor_.error("a constant stands after where", at, "name a symbol");
  SymbolRange range{symbol.symbol()};
  SINTER_TRY(bounds(range.low, range.high));
  entry.range = range;
  return {};
}

Status Parser::entry() {
  SINTER_LET(name, cursor_.take(Token::Kind::global, "an entry's name, @name"));
  const auto [at, fresh] = entries_.try_emplace(name.text, name.at);
  Scope scope;
  scope.sees_module = true;
  Entry entry{name.text, {}};
  SINTER_TRY(inputs(scope));
  SINTER_LET(outputs, output_names());
  SINTER_TRY(tokens(entry));
  SINTER_TRY(range(entry));
  if (!fresh && !entry.range) return redefinition(name, at->second);
  SINTER_TRY(body(scope, outputs));
  entry.graph = std::move(scope.graph);
  scope.positions.push_back(name.at);
  entry_ops_.push_back(std::move(scope.positions));
  module_.entries.push_back(std::move(entry));
  return {};
}

Status Parser::end_of_text() {
  if (!cursor_.at(Token::Kind::end)) return cursor_.expected("the end of the text");
  return {};
}

tl::unexpected<Error> Parser::located(const Violation& violation) const {
  const Place& place = violation.place;
  const auto in_graph = [&](const OpPositions& ops) {
    return place.op.valid() ? ops[place.op.index] : ops.back();
  };
  Error error = violation.error;
  TextPosition at = start_;
  switch (place.part) {
    case Place::Part::module:
      break;
    case Place::Part::symbol:
      at = symbol_positions_[place.index];
      break;
    case Place::Part::weight:
      at = in_graph(weight_ops_[place.index]);
      break;
    case Place::Part::state:
      at = state_positions_[place.index];
      break;
    case Place::Part::entry:
      at = in_graph(entry_ops_[place.index]);
      break;
  }
  error.where = cursor_.where(at);
  return tl::make_unexpected(std::move(error));
}

Result<Module> Parser::module() {
  SINTER_TRY(cursor_.start());
  SINTER_TRY(cursor_.expect("module"));
  SINTER_LET(name, cursor_.take(Token::Kind::global, "the module's name, @name"));
  module_.name = name.text;
  start_ = name.at;
  SINTER_TRY(cursor_.expect("{"));
  while (!cursor_.at("}")) {
    const Token word = cursor_.token();
    const auto part = word.is("symbol")   ? &Parser::symbol
                      : word.is("weight") ? &Parser::weight
                      : word.is("state")  ? &Parser::state
                      : word.is("entry")  ? &Parser::entry
                                          : nullptr;
    if (!part) return cursor_.expected("symbol, weight, state, entry or '}'");
    SINTER_TRY(cursor_.advance());
    SINTER_TRY((this->*part)());
  }
  SINTER_TRY(cursor_.advance());
  SINTER_TRY(end_of_text());
  if (const auto violation = find_violation(module_)) return located(*violation);
  return std::move(module_);
}

Result<Graph> Parser::graph_alone(llvm::ArrayRef<Symbol> symbols) {
  module_.symbols.assign(symbols.begin(), symbols.end());
  for (size_t i = 0; i < symbols.size(); ++i)
    cursor_.declare_symbol(symbols[i].name, SymbolId{static_cast<uint32_t>(i)});
  SINTER_TRY(cursor_.start());
  start_ = cursor_.token().at;
  SINTER_TRY(cursor_.expect("graph"));
  Scope scope;
  SINTER_TRY(inputs(scope));
  SINTER_LET(outputs, output_names());
  SINTER_TRY(body(scope, outputs));
  SINTER_TRY(end_of_text());
  scope.positions.push_back(start_);
  entry_ops_.push_back(std::move(scope.positions));
  if (const auto violation = find_violation(scope.graph, symbols)) return located(*violation);
  return std::move(scope.graph);
}

}  // namespace

Result<Module> parse_module(std::string_view text, std::string_view file) {
  return Parser(text, file).module();
}

Result<Graph> parse_graph(std::string_view text, std::string_view file,
                          llvm::ArrayRef<Symbol> symbols) {
  return Parser(text, file).graph_alone(symbols);
}

}  // namespace sinter
