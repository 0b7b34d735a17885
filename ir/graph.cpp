#include "ir/graph.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/ADT/StringSet.h>

#include "ir/never_destroyed.h"
#include "ir/op_roles.h"
#include "ir/verify_graph.h"

namespace sinter {
namespace {

/// The first bytes of a name that leave room for `more`, whole characters of UTF-8.
std::string_view cut_name(std::string_view name, size_t more) {
  if (name.size() + more <= kMaxNameBytes) return name;
  size_t end = kMaxNameBytes - more;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
  return name.substr(0, end);
}

constexpr int few = 0;  // of OpInfo::instructions

const llvm::SmallVector<OpInfo, 0>& op_table() {
  static const auto& table = never_destroyed([] {
    return llvm::SmallVector<OpInfo, 0>{
#define SINTER_OP(name, op_class, least, most, required, optional, ...) \
  OpInfo{#name,                                                         \
         OpClass::op_class,                                             \
         least,                                                         \
         most,                                                          \
         required,                                                      \
         optional,                                                      \
         "",                                                            \
         OpInfo::Result::same,                                          \
         OpInfo::Domain::real,                                          \
         few},
#define SINTER_ELEMENTWISE(name, operands, result, domain, formula, instructions) \
  OpInfo{#name,                                                                   \
         OpClass::elementwise,                                                    \
         operands,                                                                \
         operands,                                                                \
         {},                                                                      \
         {},                                                                      \
         #formula,                                                                \
         OpInfo::Result::result,                                                  \
         OpInfo::Domain::domain,                                                  \
         instructions},
#include "ir/ops.def"
    };
  });
  return table;
}

const llvm::SmallVector<OrderInfo, 0>& order_table() {
  static const auto& table = never_destroyed([] {
    return llvm::SmallVector<OrderInfo, 0>{
#define SINTER_ORDER(name, op, most, required, optional, ...) \
  OrderInfo{OpKind::op, most, required, optional},
#include "ir/orders.def"
    };
  });
  return table;
}

template <typename T>
const T* find_named(const std::vector<T>& items, std::string_view name) {
  for (const T& item : items)
    if (item.name == name) return &item;
  return nullptr;
}

}  // namespace

const OpInfo& op_info(OpKind kind) { return op_table()[static_cast<size_t>(kind)]; }

std::optional<OpKind> parse_op_kind(std::string_view name) {
  static const auto& kinds = never_destroyed([] {
    llvm::StringMap<OpKind> map;
    for (size_t i = 0; i < op_table().size(); ++i) map[op_table()[i].name] = static_cast<OpKind>(i);
    return map;
  });
  const auto at = kinds.find(name);
  if (at == kinds.end()) return std::nullopt;
  return at->second;
}

const OrderInfo& order_info(Order order) { return order_table()[static_cast<size_t>(order)]; }

std::optional<Order> order_of(const Attributes& attrs) {
  const AttrValue* value = attrs.find(AttrName::order);
  return value ? std::optional(std::get<Order>(*value)) : std::nullopt;
}

OpClass op_class(const Op& op) {
  return order_of(op) ? OpClass::anchor : op_info(op.kind).op_class;
}

std::string_view algorithm_name(const Op& op) {
  const std::optional<Order> order = order_of(op);
  return order ? to_string(*order) : op_info(op.kind).name;
}

bool is_without_order(const Op& op, OpKind kind) { return op.kind == kind && !order_of(op); }

int max_operands(OpKind kind, std::optional<Order> order) {
  return order ? order_info(*order).max_operands : op_info(kind).max_operands;
}

bool may_have(OpKind kind, const Attributes& attrs, AttrName name) {
  const auto listed = [&](const auto& info) {
    return llvm::is_contained(info.required, name) || llvm::is_contained(info.optional, name);
  };
  const std::optional<Order> order = order_of(attrs);
  if (name == AttrName::order) return order && order_info(*order).op == kind;
  return listed(op_info(kind)) || (order && listed(order_info(*order)));
}

std::optional<AttrName> missing_attribute(OpKind kind, const Attributes& attrs) {
  for (AttrName name : op_info(kind).required)
    if (!attrs.has(name)) return name;
  if (const std::optional<Order> order = order_of(attrs))
    for (AttrName name : order_info(*order).required)
      if (!attrs.has(name)) return name;
  return std::nullopt;
}

ValueId Graph::add(Op op) {
  ops_.push_back(std::move(op));
  return ValueId{static_cast<uint32_t>(ops_.size() - 1)};
}

std::vector<llvm::SmallVector<ValueId, 2>> Graph::users() const {
  std::vector<llvm::SmallVector<ValueId, 2>> result(ops_.size());
  for (uint32_t i = 0; i < ops_.size(); ++i)
    for (ValueId operand : ops_[i].operands) {
      auto& list = result[operand.index];
      if (list.empty() || list.back().index != i) list.push_back(ValueId{i});
    }
  return result;
}

ValueId Graph::find(std::string_view name) const {
  for (uint32_t i = 0; i < ops_.size(); ++i)
    if (ops_[i].name == name) return ValueId{i};
  return {};
}

const Weight* Module::find_weight(std::string_view name) const { return find_named(weights, name); }
const State* Module::find_state(std::string_view name) const { return find_named(states, name); }
const Entry* Module::find_entry(std::string_view name) const { return find_named(entries, name); }

namespace {
constexpr std::string_view kTokens[] = {"any", "invariant", "one_each"};
}  // namespace

std::string_view to_string(Tokens tokens) { return kTokens[static_cast<size_t>(tokens)]; }

std::optional<Tokens> parse_tokens(std::string_view text) {
  const auto at = llvm::find(kTokens, text);
  if (at == std::end(kTokens)) return std::nullopt;
  return static_cast<Tokens>(at - std::begin(kTokens));
}

ValueId root_of(const Graph& graph, ValueId id) {
  while (op_class(graph[id]) == OpClass::view) id = graph[id].operands[0];
  return id;
}

std::optional<uint32_t> input_of(const Graph& graph, ValueId id) {
  if (!id.valid()) return std::nullopt;
  const auto* at = llvm::find(graph.inputs, root_of(graph, id));
  if (at == graph.inputs.end()) return std::nullopt;
  return static_cast<uint32_t>(at - graph.inputs.begin());
}

std::vector<ValueId> remove_dead_ops(Graph& graph) {
  std::vector<bool> live(graph.size(), false);
  for (ValueId id : graph.outputs) live[id.index] = true;
  for (ValueId id : graph.inputs) live[id.index] = true;
  for (uint32_t i = static_cast<uint32_t>(graph.size()); i-- > 0;) {
    const Op& op = graph.ops()[i];
    if (writes_state(op)) live[i] = true;
    if (live[i])
      for (ValueId operand : op.operands) live[operand.index] = true;
  }
  std::vector<ValueId> renamed(graph.size());
  std::vector<Op> kept;
  std::vector<Op>& ops = graph.mutable_ops();
  for (uint32_t i = 0; i < ops.size(); ++i) {
    if (!live[i]) continue;
    renamed[i] = ValueId{static_cast<uint32_t>(kept.size())};
    for (ValueId& operand : ops[i].operands) operand = renamed[operand.index];
    kept.push_back(std::move(ops[i]));
  }
  ops = std::move(kept);
  for (ValueId& id : graph.inputs) id = renamed[id.index];
  for (ValueId& id : graph.outputs) id = renamed[id.index];
  return renamed;
}

void make_names_unique(Graph& graph) {
  llvm::StringSet<> taken;
  const auto is_leaf = [](const Op& op) { return op_class(op) == OpClass::leaf; };
  for (const Op& op : graph.ops())
    if (is_leaf(op)) taken.insert(op.name);
  for (Op& op : graph.mutable_ops()) {
    if (is_leaf(op)) continue;
    op.name = std::string(cut_name(op.name, 0));
    if (taken.insert(op.name).second) continue;
    for (int number = 2;; ++number) {
      const std::string suffix = fmt::format("_{}", number);
      std::string name = std::string(cut_name(op.name, suffix.size())) + suffix;
      if (!taken.insert(name).second) continue;
      op.name = std::move(name);
      break;
    }
  }
}

}  // namespace sinter
