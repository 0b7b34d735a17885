// The comments beside tables of the sources, for the pages that are made of them.
#pragma once

#include <map>
#include <set>
#include <string>

#include "ir/op_roles.h"
#include "support/algorithms.h"

namespace sinter::test {

/// The comment of each attribute in ir/attributes.h.
std::map<AttrName, std::string> attribute_texts();
/// The meaning of each role of an operand, by its name (ir/ops.def).
std::map<std::string, std::string> role_texts();
/// The texts of constraints C1 .. (ir/infer.cpp, kernels/*/op.cpp).
std::map<int, std::string> constraint_texts();
/// The texts of invariants V1 .. (ir/verifier.cpp).
std::map<int, std::string> invariant_texts();
/// The constraints that the op's rule of inference, its order's and what they call can name in an
/// error. Constraints of all ops (C1, C20) are left out.
std::set<int> constraints_of(const Algorithm& algorithm);

}  // namespace sinter::test
