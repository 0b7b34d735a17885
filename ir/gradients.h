// The gradients of a graph, as ops of the graph: reverse-mode differentiation.
#pragma once

#include "ir/builder.h"

namespace sinter {

/// Appends the gradients of `wanted`, values of the builder's graph, given `gradient`, the gradient
/// of `output` and of its type. Each result has the type of its wanted value, which is a float
/// type; zeros where the output does not depend on it. Every op between them is a primitive: call
/// decompose_all first. An op without a gradient is an error that names the op.
///
/// The gradient of a value is the sum over its readers, from the last to the first, in float32,
/// rounded once to the value's type. Elementwise readers and sums over broadcast axes give float32
/// that is not rounded before; products give their result, which is rounded to its type. Common
/// subexpressions and dead ops are left to the passes.
///
/// Composites are differentiated by their decompositions. A rule of their own would be worth its
/// lines for softmax and attention_softmax (from the result alone), for layer_norm and rms_norm
/// (from the row's deviation), and for a cross-entropy of logits (softmax minus label), which is no
/// op yet. attention has one, as it is no composite. relu has at 0 the slope of `maximum`, 1/2; in
/// PyTorch it is 0.
Result<std::vector<ValueId>> add_gradients(Builder& builder, ValueId output, ValueId gradient,
                                           llvm::ArrayRef<ValueId> wanted);

}  // namespace sinter
