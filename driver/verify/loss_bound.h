// How far the mean loss of a model's predictions may be from the mean loss in float64.
//
// The derivation, for a plan that rounds where its graph says so:
//
// - A result that is rounded to a type of unit roundoff u is off by a relative error whose variance
//   is u^2 / 3 at most. A sum of n terms in float32 rounds n times; where the terms differ in sign
//   its partial sums grow as the square root of their number, which adds 2^-48 n / 2 / 3.
// - Errors of ops that follow one another are independent, so that their variances add up: the
//   relative error of the logits has the variance V of the chain of ops, from an input to the
//   logits, whose sum is the largest. Branches beside that chain only dilute it.
// - A loss, log(sum exp(logits)) - logit of the token, does not change when a number is added to
//   all logits. So the error that counts is relative to the standard deviation s of a row of
//   logits. A loss is a difference of two of them and has an error of the variance 2 V s^2; the
//   mean of T losses has one of 2 V s^2 / T.
//
// The bound is four standard deviations: 4 s sqrt(2 V / T).
//
// The hidden states of an encoder are no losses: an element's error has the variance V s^2, s the
// standard deviation of its row. The root mean square of the errors of a call is bounded by four
// such deviations, 4 s sqrt(V): errors of one row depend on each other, so that their number does
// not lower the bound.
#pragma once

#include "ir/graph.h"
#include "runtime/evaluate/host_tensor.h"

namespace sinter {

/// V for the graph's first output. Composites count with all their primitives.
double relative_variance(const Graph& graph, llvm::ArrayRef<Symbol> symbols,
                         llvm::ArrayRef<int64_t> symbol_values);

/// The bound for the mean over the rows of `logits` [T, vocabulary], which float64 gave.
double loss_bound(double relative_variance, const HostTensor& logits);

/// The bound for the root mean square error of `hidden` [T, width], which float64 gave.
double hidden_bound(double relative_variance, const HostTensor& hidden);

}  // namespace sinter
