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

std::optional<ValueId> anchor_of(const Graph& group, Families families) {
  for (uint32_t i = 0; i < group.size(); ++i)
    if (anchored_by(group.ops()[i], families)) return ValueId{i};
  return std::nullopt;
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
