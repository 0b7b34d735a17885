#include "ir/common_subexpressions.h"

#include <llvm/ADT/Hashing.h>

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "ir/op_roles.h"

namespace sinter {
namespace {

bool same_bits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

/// Equality; doubles are compared by their bits, since +0 and -0 are different constants.
bool same_value(const AttrValue& a, const AttrValue& b) {
  if (a.index() != b.index()) return false;
  if (const double* x = std::get_if<double>(&a)) return same_bits(*x, std::get<double>(b));
  if (const auto* x = std::get_if<std::vector<double>>(&a))
    return std::ranges::equal(*x, std::get<std::vector<double>>(b), same_bits);
  return a == b;
}

bool same(const Op& a, const Op& b) {
  return a.kind == b.kind && a.operands == b.operands && a.type == b.type &&
         std::equal(a.attrs.begin(), a.attrs.end(), b.attrs.begin(), b.attrs.end(),
                    [](const auto& x, const auto& y) {
                      return x.first == y.first && same_value(x.second, y.second);
                    });
}

// Hashes of the attributes' types; equal by same_value gives equal hashes.
llvm::hash_code hash_of(int64_t x) { return llvm::hash_value(x); }
llvm::hash_code hash_of(double x) { return llvm::hash_value(std::bit_cast<uint64_t>(x)); }
llvm::hash_code hash_of(const Number& x) { return llvm::hash_value(x.key()); }
llvm::hash_code hash_of(DType x) { return llvm::hash_value(x); }
llvm::hash_code hash_of(Order x) { return llvm::hash_value(x); }
llvm::hash_code hash_of(Dim x) { return llvm::hash_value(x.hash()); }
llvm::hash_code hash_of(const std::string& x) { return llvm::hash_value(x); }
template <typename List>
llvm::hash_code hash_of(const List& list) {
  llvm::hash_code code = llvm::hash_value(list.size());
  for (const auto& x : list) code = llvm::hash_combine(code, hash_of(x));
  return code;
}

uint64_t hash(const Op& op) {
  llvm::hash_code code = llvm::hash_combine(op.kind, op.operands.size(), hash_of(op.type.dims));
  for (ValueId operand : op.operands) code = llvm::hash_combine(code, operand.index);
  for (const auto& [name, value] : op.attrs)
    code =
        llvm::hash_combine(code, name, std::visit([](const auto& x) { return hash_of(x); }, value));
  return code;
}

}  // namespace

void merge_common_subexpressions(Graph& graph,
                                 llvm::function_ref<bool(std::string_view)> is_fresh) {
  std::unordered_map<uint64_t, llvm::SmallVector<ValueId, 1>> seen;  // by hash
  std::vector<ValueId> kept(graph.size());
  for (uint32_t i = 0; i < graph.size(); ++i) {
    Op& op = graph.mutable_ops()[i];
    kept[i] = ValueId{i};
    for (ValueId& operand : op.operands) operand = kept[operand.index];
    if (op_class(op) == OpClass::leaf || op_class(op) == OpClass::append) continue;
    auto& candidates = seen[hash(op)];
    const auto first =
        std::ranges::find_if(candidates, [&](ValueId id) { return same(graph[id], op); });
    if (first == candidates.end()) {
      candidates.push_back(ValueId{i});
      continue;
    }
    kept[i] = *first;
    Op& merged = graph[*first];
    if (is_fresh(merged.name) && !is_fresh(op.name)) std::swap(merged.name, op.name);
  }
  for (ValueId& id : graph.outputs) id = kept[id.index];
}

}  // namespace sinter
