// Independent texts, as many to a call of `prefill` or `encode` as the plan takes.
#pragma once

#include "driver/generate/decoder.h"
#include "frontends/model/model_spec.h"

namespace sinter {

using TextList = llvm::ArrayRef<std::vector<int32_t>>;

/// The texts of each call, in order: together they have no more rows than one text may have, and
/// their caches fit R. `invariant`: of an encoder's plan (text_begin). Errors: a text without
/// tokens, or of more than the model has positions; `place` is the texts' origin.
Result<std::vector<TextList>> text_calls(const ModelSpec& spec, llvm::ArrayRef<Symbol> symbols,
                                         TextList texts, std::string_view place,
                                         bool invariant = false);

/// The rows of all tensors, one tensor after the other. They differ in their first extent alone.
HostTensor joined_rows(llvm::ArrayRef<const HostTensor*> tensors);
/// The first output of all calls, joined.
HostTensor joined_outputs(llvm::ArrayRef<RunResult> calls);

}  // namespace sinter
