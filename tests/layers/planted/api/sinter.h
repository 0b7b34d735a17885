// Forbidden in a public header; the tests see both reported.
#include <llvm/ADT/SmallVector.h>

#include "ir/inner.h"
