// The least bytes and operations of a language model's calls, whatever the plan.
#pragma once

#include "frontends/model/model_spec.h"

namespace sinter {

/// Bytes that one decode step reads at the least: every weight that `decode` or `sample` reads (of
/// tables that are only looked up in, the looked-up rows; of each layer's experts the matrices of
/// `experts`), and of each cache the rows that `sequences` sequences see, `visible_rows` each.
/// Activations do not count.
double decode_bytes(const Module& module, const ModelSpec& spec, int64_t sequences,
                    double visible_rows, double experts = 0);

/// Floating-point operations of a prefill of `length` tokens in each of `sequences` sequences with
/// one row of logits each: two for every multiplication of the linears, and for every query and key
/// that it sees 4 * head_dim a head. `module` is one whose linears are still ops.
double prefill_operations(const Module& module, const ModelSpec& spec, int64_t sequences,
                          int64_t length);

}  // namespace sinter
