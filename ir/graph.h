// Ops, graphs and modules: plain data with typed 32-bit ids.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/SmallVector.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/attributes.h"
#include "ir/types.h"

namespace sinter {

enum class OpKind : uint8_t {
#define SINTER_OP(name, op_class, least, most, required, optional, ...) name,
#define SINTER_ELEMENTWISE(name, ...) name,
#include "ir/ops.def"
};

enum class OpClass : uint8_t {
  leaf,         // a value from outside the graph
  generator,    // computed from attributes alone
  view,         // an index map on a read
  elementwise,  // a formula per element
  pointwise,    // per element, without a row of its own in the formula table (copy, cast, ...)
  gather,       // rows chosen by a value
  append,       // writes into memory that is there
  reduce,
  run_sums,   // a reduction down columns, stopped before its last joins
  composite,  // decomposes into primitives
  contraction,
  anchor,  // a kernel family of its own computes it (kernels/families.def)
};

/// Static facts of an op: its row of ops.def.
struct OpInfo {
  std::string_view name;
  OpClass op_class;
  int min_operands, max_operands;
  llvm::SmallVector<AttrName, 4> required, optional;
  std::string_view formula;  // elementwise only
  enum class Result : uint8_t { same, truth } result;
  enum class Domain : uint8_t { real, number, integer, truth } domain;
  int instructions;  // of an element's formula; 0: few, or there is no formula
};
const OpInfo& op_info(OpKind kind);
std::optional<OpKind> parse_op_kind(std::string_view name);

/// Static facts of an order: its row of orders.def.
struct OrderInfo {
  OpKind op;  // that it computes
  int max_operands;
  llvm::SmallVector<AttrName, 2> required, optional;  // beside the op's
};
const OrderInfo& order_info(Order order);

/// An op and its only result: index into Graph::ops().
struct ValueId {
  uint32_t index = UINT32_MAX;
  bool valid() const { return index != UINT32_MAX; }
  friend auto operator<=>(ValueId, ValueId) = default;
};

struct Op {
  OpKind kind;
  TensorType type;
  llvm::SmallVector<ValueId, 3> operands;
  Attributes attrs;
  std::string name;  // unique in its graph, without the '%'; of a leaf: the module's name
};

/// The attribute `order`; nullopt: none.
std::optional<Order> order_of(const Attributes& attrs);
inline std::optional<Order> order_of(const Op& op) { return order_of(op.attrs); }

/// An op with an order is an anchor.
OpClass op_class(const Op& op);
/// The name of the algorithm: of the op's order, where it has one, or of the op.
std::string_view algorithm_name(const Op& op);
/// An op of that kind for which no order has been chosen.
bool is_without_order(const Op& op, OpKind kind);
int max_operands(OpKind kind, std::optional<Order> order);
/// Whether an op of that kind, with the order that `attrs` name, can have the attribute.
bool may_have(OpKind kind, const Attributes& attrs, AttrName name);
/// A required attribute that is not among `attrs`.
std::optional<AttrName> missing_attribute(OpKind kind, const Attributes& attrs);

/// Ops in topological order: an op's operands have smaller ids. Leaves (`input` in the order of the
/// parameters) may stand anywhere before their first use.
class Graph {
 public:
  ValueId add(Op op);
  size_t size() const { return ops_.size(); }
  const Op& operator[](ValueId id) const { return ops_[id.index]; }
  Op& operator[](ValueId id) { return ops_[id.index]; }
  llvm::ArrayRef<Op> ops() const { return ops_; }
  std::vector<Op>& mutable_ops() { return ops_; }

  /// Users of each value in ascending order, an operand used twice listed once.
  std::vector<llvm::SmallVector<ValueId, 2>> users() const;
  /// The value of that name, or an invalid id. Linear.
  ValueId find(std::string_view name) const;

  llvm::SmallVector<ValueId, 4> inputs;   // ops of kind `input`, in parameter order
  llvm::SmallVector<ValueId, 4> outputs;  // may repeat, may name any value

 private:
  std::vector<Op> ops_;
};

/// A load-time constant: `init` has no inputs and one output of type `type`; its leaves are `file`
/// ops (tensors of the model's files) and generators.
struct Weight {
  std::string name;
  TensorType type;
  Graph init;
};

/// Memory that outlives a call, all zeros at first.
struct State {
  std::string name;
  TensorType type;
};

/// The tokens of an entry's calls, which decide the orders of its ops
/// (passes/products/choose_kernels.h).
enum class Tokens : uint8_t {
  any,        // orders may differ by how many there are
  invariant,  // one order for every number; a library's products may still depend on it
  one_each,   // one token of each sequence
};

struct Entry {
  std::string name;  // prefill, decode, ...
  Graph graph;
  /// The names of a run's results: the outputs' names before any pass replaced the outputs. Set
  /// before the first pass (run_pass); empty: the outputs' own names.
  std::vector<std::string> output_names = {};
  Tokens tokens = Tokens::any;
  /// The entry's calls have these values of a symbol alone. Entries of the same name are its
  /// variants: they stand one after the other, and their ranges cover the symbol.
  std::optional<SymbolRange> range = {};
};
inline constexpr size_t kMaxVariants = 4;  // of an entry

/// Weights, state and the entry points that share them. Leaves `weight` and `state` of an entry's
/// graph refer to them by name.
struct Module {
  std::string name;
  std::vector<Symbol> symbols;
  std::vector<Weight> weights;
  std::vector<State> states;
  std::vector<Entry> entries;

  const Weight* find_weight(std::string_view name) const;
  const State* find_state(std::string_view name) const;
  /// The entry of that name; of variants, the first.
  const Entry* find_entry(std::string_view name) const;
};

/// "any", "invariant" or "one_each".
std::string_view to_string(Tokens tokens);
std::optional<Tokens> parse_tokens(std::string_view text);

/// The value that `id` reads through views (itself if it is none).
ValueId root_of(const Graph& graph, ValueId id);
/// The index of the input that `id` reads through views; nullopt: another value, or `id` is
/// invalid.
std::optional<uint32_t> input_of(const Graph& graph, ValueId id);

/// Removes ops that no output and no effect needs, keeps `inputs`; ids change. Returns old -> new
/// (invalid id: removed).
std::vector<ValueId> remove_dead_ops(Graph& graph);

/// Gives every op whose name an earlier op or a leaf has a name of its own: the old one and a
/// number.
void make_names_unique(Graph& graph);

}  // namespace sinter
