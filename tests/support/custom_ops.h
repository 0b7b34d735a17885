// Callers' ops for tests, registered once in a process.
#pragma once

#include "ir/custom_op.h"

namespace sinter::test {

/// test.rms_norm      x float [..., D], w [D]: exact, open in x and in the result; one number, eps
/// test.closed_norm   the same, closed
/// test.rotate        x float [..., D] -> [..., D]: element i is that at i + 1 of the row (closed)
/// test.fold          x float [..., D] -> [..., D/2]: element i plus element i + D/2; open
/// test.choose        x i32 [N], m i1 [N] -> i32 [N]: m ? x : the number; open
/// test.above         x float [N, 4] -> i1 [N, 4]: x > 0, one block computes all; open
/// test.scale         x float [..., D], w [D]: x * w, in chunks where D is a multiple of 8; open in
/// x
///                    and in the result
/// test.loose_norm    test.rms_norm with a tolerance in place of exactness
void register_custom_ops();

/// The record of test.rms_norm, under another name.
CustomOp norm_op(std::string name);

}  // namespace sinter::test
