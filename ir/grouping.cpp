#include "ir/grouping.h"

#include "ir/op_roles.h"

namespace sinter {

bool is_never_empty(const Graph& group, llvm::ArrayRef<Symbol> symbols) {
  return llvm::all_of(group.outputs, [&](ValueId output) {
    return llvm::all_of(written_type(group, group[output]).dims, [&](Dim dim) {
      return (dim.is_constant() ? dim.constant() : symbols[dim.symbol().index].low) > 0;
    });
  });
}

}  // namespace sinter
