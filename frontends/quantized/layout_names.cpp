#include "frontends/quantized/layout_names.h"

#include <llvm/ADT/STLExtras.h>

namespace sinter {

const LayoutNames& names_of(WeightLayout layout) {
  return *llvm::find_if(kLayoutNames,
                        [&](const LayoutNames& names) { return names.layout == layout; });
}

}  // namespace sinter
