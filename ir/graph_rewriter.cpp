#include "ir/graph_rewriter.h"

namespace sinter {

void GraphRewriter::check_reads() {
  for (; checked_ < into_.size(); ++checked_) {
    const Op& op = into_.ops()[checked_];
    if (op_class(op) == OpClass::view) continue;  // reads where its users read
    for (ValueId read : op.operands) {
      const ValueId writer = new_writers_.writer_of(read);
      SINTER_CHECK(!(writer < ValueId{checked_}), "{} reads {} behind {}, which overwrites it",
                   op.name, into_[read].name, into_[writer].name);
    }
  }
}

}  // namespace sinter
