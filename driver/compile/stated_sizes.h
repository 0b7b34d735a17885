// The sizes at which reports state bytes and times: a value for each symbol.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/program.h"

namespace sinter {

/// Values of symbols by name, as `--symbol N=512` gives them.
using GivenSizes = std::vector<std::pair<std::string, int64_t>>;

/// Calls as people meet them: a prefill of 512 tokens of which the last one's logits are wanted, a
/// decode step of one token, 1024 rows of cache, all within the symbols' ranges; other symbols 512.
std::vector<int64_t> usual_sizes(llvm::ArrayRef<Symbol> symbols);
/// The same, with the given values in place of the usual ones. Errors, of usage: a name that is no
/// symbol's; a value that the symbol cannot have.
Result<std::vector<int64_t>> stated_sizes(llvm::ArrayRef<Symbol> symbols, const GivenSizes& given);

/// "N=512 K=1024": the sizes that an entry's values depend on.
std::string show_sizes(const Program& program, const EntryPlan& entry,
                       llvm::ArrayRef<int64_t> sizes);

}  // namespace sinter
