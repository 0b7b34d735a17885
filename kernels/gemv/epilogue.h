// The text of a gemv's epilogue.
#pragma once

#include "kernels/common/sums_epilogue.h"

namespace sinter {

/// The kernel's form.
struct GemvEpilogueForm {
  int64_t blocks, threads;
  bool loads_ahead;  // what needs no sums may be loaded before the product is computed
  std::string wait;  // statements between the product and all that follows it
};
struct GemvEpilogueText {
  std::string globals;  // definitions before the function
  /// Calls product.run(). Inputs are named x0, x1, ..., results y0, y1, ...
  std::string body;
};
Result<GemvEpilogueText> emit_gemv_epilogue(const SumsEpilogue& epilogue,
                                            llvm::ArrayRef<SymbolId> parameters,
                                            const GemvEpilogueForm& form);

}  // namespace sinter
