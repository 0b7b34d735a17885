// Logits that choose no token: a NaN among them, a largest of +infinity, or -infinity alone
// (kernels/sample/order.h).
#pragma once

#include "frontends/load_model.h"

namespace sinter {

/// An error, with exit code 3, if `token` is none. `length`: tokens of the text before it; `label`:
/// which of several texts it is, or empty.
Status check_chosen(int32_t token, int64_t length, std::string_view label = {});
/// The same for the tokens of sequences, before each of which stand before[s] + more tokens.
Status check_chosen(llvm::ArrayRef<int32_t> tokens, llvm::ArrayRef<int32_t> before, int64_t more);

/// The error of check_chosen with its cause: the first weight that is not finite in the type in
/// which the model computes, for which it reads the weights; other errors as they are.
Error with_cause(Error error, const Model& model);

/// A result whose error has its cause.
template <typename T>
Result<T> explained(Result<T> result, const Model& model) {
  if (!result) return tl::make_unexpected(with_cause(std::move(result.error()), model));
  return result;
}

}  // namespace sinter
