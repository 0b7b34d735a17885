// Invariants, by number; the number begins the error.
//   V1   symbols: 0 <= low <= high <= 2^31; multiple >= 1 and divides low and high; at_most names
//        an earlier symbol
//   V2   names and strings have 1 to 4096 bytes and are UTF-8; a symbol's name is
//        [A-Za-z_][A-Za-z0-9_.]*
//   V3   names are unique: among symbols, among weights and states, among entries, among the ops of
//        a graph; an entry's inputs and ops are not named like a weight or a state
//   V4   an op's operands stand before it
//   V5   an op has as many operands as it takes
//   V6   an op has its required attributes and none but these and its optional ones (their types
//        hold by construction)
//   V7   types and shapes: at most 8 axes, symbols that exist; at most 2^48 elements and bytes
//        for all values of the symbols
//   V8   an op's type is the inferred one, and the op keeps the constraints C1 ..
//   V9   a leaf `weight` or `state` has the name and the type of one of the module's and stands
//        once (V3); weight functions have none
//   V10  `inputs` lists every op of kind `input` once, and nothing else; weight functions have none
//   V11  outputs are ops of the graph; a weight function has one, of the weight's type
//   V12  `file` and `pack_codes` stand in weight functions only
//   V13  a weight's dims are constants; its function writes no state and holds no contraction and
//        no anchor but pack_codes
//   V14  the first operand of a kv_append or a store is a state or the result of such an op, not a
//        view of one; in a graph alone it may be an input
//   V15  every version of a state has at most one writer
//   V16  what reads a version that has a writer, through views too, stands before the writer and is
//        not the writer; no output is such a version
//   V17  an operand of role `stream` in an entry is a weight or an input as it stands in memory: a
//        kernel reads it before earlier kernels are complete
//   V18  variants of an entry are 2 to 4 entries of one name, one after the other, whose ranges
//        of one symbol ascend and cover its values, none twice; they have the same inputs, types of
//        outputs, tokens and written states. No other entry has a range
//   V19  the base of a `place` is a place along the same axis, whose elements the part follows or
//        precedes, and is read by nothing else; what parts are missing of is no output, and is read
//        as a base alone. In a graph alone a base may be an input
#include "ir/verifier.h"

#include <array>

#include "ir/op_roles.h"
#include "ir/variants.h"
#include "ir/verify_graph.h"

namespace sinter {
namespace {

constexpr int64_t kLargestSymbol = int64_t{1} << 31;

bool is_identifier(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && letter(name[0]) && llvm::all_of(name, [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '.';
  });
}

Checked check_symbol(const Symbol& symbol, size_t index, Place place) {
  const std::string name = printable(symbol.name);
  SINTER_TRY(check_text(
      symbol.name, [] { return "a symbol's name"; }, place));
  if (!is_identifier(symbol.name))
    return broken(2, fmt::format("symbol \"{}\" is not named by an identifier", name), place,
                  "use letters, digits, '_' and '.', a letter first");
  if (symbol.low < 0 || symbol.low > symbol.high || symbol.high > kLargestSymbol)
    return broken(1, fmt::format("symbol {} is in [{}, {}]", name, symbol.low, symbol.high), place,
                  fmt::format("bounds must ascend within 0 .. {}", kLargestSymbol));
  if (symbol.multiple < 1 || symbol.low % symbol.multiple != 0 ||
      symbol.high % symbol.multiple != 0)
    return broken(1,
                  fmt::format("symbol {} in [{}, {}] has step {}", name, symbol.low, symbol.high,
                              symbol.multiple),
                  place, "the step must be >= 1 and divide both bounds");
  if (symbol.at_most && symbol.at_most->index >= index)
    return broken(1,
                  fmt::format("symbol {} is bounded by symbol {}, which does not come before it",
                              name, symbol.at_most->index),
                  place, "declare the bound first");
  return {};
}

/// Names of one kind, each with the number of its part.
class UniqueNames {
 public:
  explicit UniqueNames(std::string_view what) : what_(what) {}
  Checked add(std::string_view name, Place place) {
    SINTER_TRY(check_text(
        name, [&] { return fmt::format("the name of one of the {}", what_); }, place));
    if (!seen_.try_emplace(name).second)
      return broken(3, fmt::format("two {} are named \"{}\"", what_, printable(name)), place,
                    "rename one of them");
    return {};
  }

 private:
  std::string_view what_;
  llvm::StringMap<char> seen_;
};

Checked check_weight(const Weight& weight, Place place, llvm::ArrayRef<Symbol> symbols) {
  const auto name = [&] { return "weight %" + printable(weight.name); };
  SINTER_TRY(check_type(weight.type, name, symbols, place));
  for (Dim dim : weight.type.dims)
    if (!dim.is_constant())
      return broken(13, fmt::format("{} is {}", name(), to_string(weight.type, symbols)), place,
                    "a weight is computed when the model is loaded; make its dims constants");
  SINTER_TRY(
      check_graph(weight.init, GraphContext{GraphRole::weight_function, place, symbols, nullptr}));
  if (weight.init.outputs.size() != 1)
    return broken(
        11, fmt::format("the function of {} has {} outputs", name(), weight.init.outputs.size()),
        place, "give it one output");
  const Op& result = weight.init[weight.init.outputs[0]];
  if (result.type != weight.type)
    return broken(11,
                  fmt::format("{} is {}, but its function gives {}", name(),
                              to_string(weight.type, symbols), to_string(result.type, symbols)),
                  place, "make the types equal, with a cast or a reshape if need be");
  return {};
}

/// The facts that variants share, in order. Names are any text: the lists are compared, not their
/// text.
using Listed = std::vector<std::string>;

/// Values with their types, and their names if wanted.
Listed listed(const Graph& graph, llvm::ArrayRef<ValueId> values, bool with_names,
              llvm::ArrayRef<Symbol> symbols) {
  Listed parts;
  for (ValueId id : values)
    parts.push_back((with_names ? "%" + graph[id].name + ": " : "") +
                    to_string(graph[id].type, symbols));
  return parts;
}

Listed written_states(const Graph& graph) {
  Listed names;  // sorted, since variants may write in another order
  for (const Op& op : graph.ops())
    if (writes_state(op))
      if (const Op& state = graph[operand_with(op, OperandRole::state)]; !writes_state(state))
        names.push_back(state.name);
  llvm::sort(names);
  return names;
}

bool is_first_variant(const Module& module, uint32_t index) {
  const Entry& entry = module.entries[index];
  return index == 0 || !entry.range || entry.name != module.entries[index - 1].name;
}

/// The range alone, so that the entry's graph can be looked at.
Checked check_range(const Entry& entry, llvm::ArrayRef<Symbol> symbols, Place place) {
  const SymbolRange& range = *entry.range;
  if (range.symbol.index < symbols.size()) {
    const Symbol& symbol = symbols[range.symbol.index];
    if (range.low >= symbol.low && range.low <= range.high && range.high <= symbol.high) return {};
  }
  return broken(18,
                fmt::format("entry @{} has a range that its symbol lacks", printable(entry.name)),
                place, "give it some of the symbol's values");
}

Checked check_variants(llvm::ArrayRef<Entry> variants, llvm::ArrayRef<Symbol> symbols,
                       Place place) {
  const auto refuse = [&](const std::string& what) {
    return broken(18, fmt::format("entry @{} {}", printable(variants[0].name), what), place,
                  "give it one variant for each of 2 to 4 ranges of a symbol, or one entry");
  };
  std::vector<std::optional<SymbolRange>> ranges;
  for (const Entry& entry : variants) ranges.push_back(entry.range);
  if (const auto fault = fault_of_ranges(ranges, symbols)) return refuse(*fault);
  const Entry& first = variants[0];
  const auto parts = [&](const Entry& entry) {
    const Graph& graph = entry.graph;
    return std::array{std::pair("inputs", listed(graph, graph.inputs, true, symbols)),
                      std::pair("outputs", listed(graph, graph.outputs, false, symbols)),
                      std::pair("tokens", Listed{std::string(to_string(entry.tokens))}),
                      std::pair("written states", written_states(graph))};
  };
  for (const Entry& other : variants.drop_front())
    for (const auto& [a, b] : llvm::zip(parts(first), parts(other)))
      if (a != b)
        return refuse(fmt::format("has a variant with the {} \"{}\" and one with \"{}\"", a.first,
                                  printable(fmt::format("{}", fmt::join(a.second, ", "))),
                                  printable(fmt::format("{}", fmt::join(b.second, ", ")))));
  return {};
}

Checked check_module(const Module& module) {
  SINTER_TRY(check_text(
      module.name, [] { return "the module's name"; }, Place{}));
  UniqueNames symbol_names("symbols"), leaf_names("weights and states"), entry_names("entries");
  for (uint32_t i = 0; i < module.symbols.size(); ++i) {
    const Place place{Place::Part::symbol, i, {}};
    SINTER_TRY(check_symbol(module.symbols[i], i, place));
    SINTER_TRY(symbol_names.add(module.symbols[i].name, place));
  }
  ModuleLeaves leaves;
  for (uint32_t i = 0; i < module.weights.size(); ++i) {
    const Weight& weight = module.weights[i];
    const Place place{Place::Part::weight, i, {}};
    SINTER_TRY(leaf_names.add(weight.name, place));
    SINTER_TRY(check_weight(weight, place, module.symbols));
    leaves[weight.name] = ModuleLeaf{OpKind::weight, &weight.type};
  }
  for (uint32_t i = 0; i < module.states.size(); ++i) {
    const State& state = module.states[i];
    const Place place{Place::Part::state, i, {}};
    SINTER_TRY(leaf_names.add(state.name, place));
    SINTER_TRY(check_type(
        state.type, [&] { return "state %" + printable(state.name); }, module.symbols, place));
    leaves[state.name] = ModuleLeaf{OpKind::state, &state.type};
  }
  for (uint32_t i = 0; i < module.entries.size(); ++i) {
    const Entry& entry = module.entries[i];
    const Place place{Place::Part::entry, i, {}};
    if (is_first_variant(module, i)) SINTER_TRY(entry_names.add(entry.name, place));
    if (entry.range) SINTER_TRY(check_range(entry, module.symbols, place));
    const std::vector<Symbol> symbols = narrowed(module.symbols, entry.range);
    SINTER_TRY(check_graph(entry.graph, GraphContext{GraphRole::entry, place, symbols, &leaves}));
  }
  for (uint32_t i = 0; i < module.entries.size(); ++i)
    if (is_first_variant(module, i))
      SINTER_TRY(check_variants(variants_of(module.entries, module.entries[i].name), module.symbols,
                                Place{Place::Part::entry, i, {}}));
  return {};
}

std::optional<Violation> violation_of(Checked checked) {
  if (checked) return std::nullopt;
  return std::move(checked.error());
}

std::string place_name(const Module& module, const Place& place) {
  const auto with_op = [&](std::string part, const Graph& graph) {
    if (place.op.valid()) part += fmt::format(", %{}", printable(graph[place.op].name));
    return part;
  };
  switch (place.part) {
    case Place::Part::module:
      break;
    case Place::Part::symbol:
      return "symbol " + printable(module.symbols[place.index].name);
    case Place::Part::state:
      return "state %" + printable(module.states[place.index].name);
    case Place::Part::weight: {
      const Weight& weight = module.weights[place.index];
      return with_op("weight %" + printable(weight.name), weight.init);
    }
    case Place::Part::entry: {
      const Entry& entry = module.entries[place.index];
      return with_op("entry @" + printable(entry.name), entry.graph);
    }
  }
  return "module @" + printable(module.name);
}

}  // namespace

std::optional<Violation> find_violation(const Module& module) {
  return violation_of(check_module(module));
}

std::optional<Violation> find_violation(const Graph& graph, llvm::ArrayRef<Symbol> symbols) {
  const Place place{Place::Part::entry, 0, {}};
  return violation_of(check_graph(graph, GraphContext{GraphRole::alone, place, symbols, nullptr}));
}

Status verify(const Module& module) {
  std::optional<Violation> violation = find_violation(module);
  if (!violation) return {};
  violation->error.where = place_name(module, violation->place);
  return tl::make_unexpected(std::move(violation->error));
}

}  // namespace sinter
