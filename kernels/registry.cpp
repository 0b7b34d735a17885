#include "kernels/registry.h"

#include <llvm/ADT/STLExtras.h>

#include "ir/grouping.h"

namespace sinter {

#define SINTER_FAMILY(name) extern const KernelFamily name##_family;
#include "kernels/families.def"

llvm::ArrayRef<const KernelFamily*> kernel_families() {
  static constexpr const KernelFamily* kFamilies[] = {
#define SINTER_FAMILY(name) &name##_family,
#include "kernels/families.def"
  };
  return kFamilies;
}

const KernelFamily* anchored_by(const Op& op, Families families) {
  for (const KernelFamily* family : families)
    if (family->computes(op)) return family;
  return nullptr;
}

const KernelFamily& family_of_rows(llvm::ArrayRef<const OpFacts*> facts, Families families) {
  for (const KernelFamily* family : families)
    if (family->claims && family->claims(facts)) return *family;
  SINTER_CHECK(false, "no kernel family claims a group of {} ops", facts.size());
}

std::optional<SideResult> side_result(const Graph& graph, const Op& op, SideKind kind,
                                      Families families) {
  const KernelFamily* own = anchored_by(op, families);
  for (const KernelFamily* family : own ? Families(own) : families)
    if (family->side_result && (own || family->kind == KernelFamily::Kind::rows))
      if (auto result = family->side_result(graph, op, kind)) return result;
  return std::nullopt;
}

bool is_companion(const KernelFamily& family, const Op& anchor, const Op& other) {
  return family.is_companion != nullptr && family.is_companion(anchor, other) &&
         llvm::all_of(other.operands, [&](ValueId operand) {
           return llvm::is_contained(anchor.operands, operand);
         });
}

std::optional<ValueId> anchor_of(const Graph& group, Families families) {
  std::optional<ValueId> anchor;
  for (uint32_t i = 0; i < group.size(); ++i) {
    const KernelFamily* family = anchored_by(group.ops()[i], families);
    if (family == nullptr) continue;
    // The anchor may come after its companions.
    if (!anchor || is_companion(*family, group.ops()[i], group[*anchor])) anchor = ValueId{i};
  }
  return anchor;
}

const KernelFamily& family_of_rows(const Graph& group, llvm::ArrayRef<Symbol> symbols,
                                   Families families) {
  std::vector<OpFacts> facts;
  for (uint32_t i = 0; i < group.size(); ++i)
    if (computes(group.ops()[i])) facts.push_back(op_facts(group, {i}, symbols));
  return family_of_rows(
      llvm::to_vector(llvm::map_range(facts, [](const OpFacts& one) { return &one; })), families);
}

}  // namespace sinter
