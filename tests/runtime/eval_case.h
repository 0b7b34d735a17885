// Evaluating a few lines of text IR in a test.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "runtime/evaluate/evaluate.h"

namespace sinter {

/// A tensor of these values, rounded to `dtype`.
HostTensor tensor(DType dtype, std::vector<int64_t> dims, const std::vector<double>& values);
/// `tensor` of uniform values in [low, high), whole numbers for integers and i1.
HostTensor random_tensor(DType dtype, std::vector<int64_t> dims, double low, double high,
                         uint64_t seed);
/// Its elements, widened.
std::vector<double> values_of(const HostTensor& tensor);
/// Distance of neighbouring values of `dtype` at `x`.
double ulp(DType dtype, double x);

/// The module "symbol N in [0, 4096], symbol M in [0, 4096], states, entry @e(parameters) ->
/// (results)". States that the entry uses are inputs of its graph, after the parameters.
Module module_of(std::string_view parameters, std::string_view ops, std::string_view results = "%y",
                 std::string_view states = "");
/// Evaluates its entry with N = symbols[0], M = symbols[1].
Result<std::vector<HostTensor>> try_evaluate(const Module& module,
                                             const std::vector<HostTensor>& inputs,
                                             std::vector<int64_t> symbols = {0, 0},
                                             const EvalOptions& options = {});
/// The same, which must succeed; the first result.
HostTensor evaluated(const Module& module, const std::vector<HostTensor>& inputs,
                     std::vector<int64_t> symbols = {0, 0}, const EvalOptions& options = {});
/// The error of an evaluation that must fail.
std::string eval_error(const Module& module, const std::vector<HostTensor>& inputs,
                       std::vector<int64_t> symbols = {0, 0}, const EvalOptions& options = {});

/// The attribute of an order of attention; nothing for "attention".
inline std::string order_text(std::string_view algorithm) {
  return algorithm == "attention" ? "" : fmt::format("order = {}, ", algorithm);
}

}  // namespace sinter
