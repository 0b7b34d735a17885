// The kernel families that there are.
#pragma once

#include "kernels/family.h"

namespace sinter {

/// In the order of families.def.
llvm::ArrayRef<const KernelFamily*> kernel_families();

/// The family whose anchor the op is; null: the op has none.
const KernelFamily* anchored_by(const Op& op, Families families = kernel_families());
/// The family that makes the kernel of ops with these facts, none of which is an anchor.
const KernelFamily& family_of_rows(llvm::ArrayRef<const OpFacts*> facts,
                                   Families families = kernel_families());
/// `other` may join a kernel of `anchor`, both of the family, as another result of it
/// (KernelFamily::is_companion).
bool is_companion(const KernelFamily& family, const Op& anchor, const Op& other);
/// The side result of this kind that the kernel of `op` stores (KernelFamily::side_result).
std::optional<SideResult> side_result(const Graph& graph, const Op& op, SideKind kind,
                                      Families families = kernel_families());
/// The op that the kernel of a group is built around; nullopt: the group is one of rows.
std::optional<ValueId> anchor_of(const Graph& group, Families families = kernel_families());
/// The family that makes the kernel of a group without an anchor.
const KernelFamily& family_of_rows(const Graph& group, llvm::ArrayRef<Symbol> symbols,
                                   Families families = kernel_families());

}  // namespace sinter
